//! The operations of an API. An operation holds its description, the form that its requests are
//! checked against, and the route that serves it. So every route has a description, and every
//! description has a route.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::Value;

use super::shape::Shape;
use crate::app::App;
use crate::auth;
use crate::problem::{Kind, Problem};

/// An operation.
pub(crate) struct Operation {
    pub(super) path: &'static str,
    pub(super) group: &'static str,
    /// The name that the description uses for the `{id}` of the path.
    pub(super) id_name: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) form: Form,
    route: MethodRouter<Arc<App>, Infallible>,
}

/// The form of the requests and the answers of an operation.
pub(crate) struct Form {
    pub(super) method: Method,
    pub(super) query: Vec<Parameter>,
    pub(super) body: Option<Shape>,
    pub(super) answers: Vec<Answer>,
    manner: RequestRules,
}

/// The treatment of requests that do not match the description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestRules {
    /// The kind of problem for such a request.
    pub(crate) refusal: Kind,
    /// The most bytes of a body.
    pub(crate) body_max: usize,
}

/// A parameter of the query string.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
}

/// An answer. Without a shape it has no body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) media: &'static str,
    pub(super) shape: Option<Shape>,
}

/// The media type of JSON.
const JSON: &str = "application/json";

fn operation<H, T>(
    method: Method,
    path: &'static str,
    name: (&'static str, &'static str),
    handler: H,
) -> Operation
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
    let manner = RequestRules { refusal: Kind::Invalid, body_max: 0 };
    let form = Form { method, query: Vec::new(), body: None, answers: Vec::new(), manner };
    let (id, summary) = name;
    Operation { path, group: "", id_name: "id", id, summary, form, route: on(filter, handler) }
}

macro_rules! by_method {
    ($($name:ident $method:ident),*) => {$(
        /// Makes an operation of this method from its path, its name, a summary, and its handler.
        pub(crate) fn $name<H, T>(
            path: &'static str,
            id: &'static str,
            summary: &'static str,
            handler: H,
        ) -> Operation
        where
            H: Handler<T, Arc<App>>,
            T: 'static,
        {
            operation(Method::$method, path, (id, summary), handler)
        }
    )*};
}

by_method!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

impl Operation {
    /// Returns the path of the operation in the API.
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// Adds an optional parameter of the query string.
    pub(crate) fn query(mut self, name: &'static str, shape: Shape) -> Operation {
        self.form.query.push(Parameter { name, shape });
        self
    }

    /// Sets the shape of the body.
    pub(crate) fn takes(mut self, body: Shape) -> Operation {
        self.form.body = Some(body);
        self
    }

    /// Adds an answer with a JSON body.
    pub(crate) fn gives(mut self, status: u16, shape: Shape) -> Operation {
        self.form.answers.push(Answer { status, media: JSON, shape: Some(shape) });
        self
    }

    /// Adds an answer without a body.
    pub(crate) fn gives_nothing(mut self, status: u16) -> Operation {
        self.form.answers.push(Answer { status, media: JSON, shape: None });
        self
    }

    /// Adds an answer whose body is a text of this media type.
    pub(crate) fn gives_text(mut self, media: &'static str, shape: Shape) -> Operation {
        self.form.answers.push(Answer { status: 200, media, shape: Some(shape) });
        self
    }
}

/// Puts operations into a group of the description, which uses `id_name` for the `{id}` of their
/// paths.
pub(crate) fn group(
    name: &'static str,
    id_name: &'static str,
    operations: Vec<Operation>,
) -> Vec<Operation> {
    let grouped = |operation| Operation { group: name, id_name, ..operation };
    operations.into_iter().map(grouped).collect()
}

/// Returns the router of operations.
pub(crate) fn router(operations: Vec<Operation>, manner: RequestRules) -> Router<Arc<App>> {
    let mut router = Router::new();
    for Operation { path, mut form, route, .. } in operations {
        form.manner = manner;
        let route = route.route_layer(from_fn_with_state(Arc::new(form), described));
        router = router.route(path, route);
    }
    router
}

/// Checks the query string. Then the form is in the extensions of the request, for the code that
/// reads the body.
async fn described(State(form): State<Arc<Form>>, mut request: Request, next: Next) -> Response {
    let faults = form.query_faults(request.uri());
    if !faults.is_empty() {
        return form.refused(faults).into_response();
    }
    request.extensions_mut().insert(Arc::clone(&form));
    let response = next.run(request).await;
    #[cfg(debug_assertions)]
    let response = form.checked(response).await;
    response
}

impl Form {
    /// Checks a body, and returns the names of the fields that its shape has.
    pub(crate) fn check_body(&self, body: &Value) -> Result<Vec<&'static str>, Problem> {
        let Some(shape) = &self.body else { return Ok(Vec::new()) };
        let faults = shape.faults(body);
        if !faults.is_empty() {
            return Err(self.refused(faults));
        }
        Ok(shape.fields().iter().map(super::shape::Field::name).collect())
    }

    /// Returns the most bytes that a body may have.
    pub(crate) fn body_max(&self) -> usize {
        self.manner.body_max
    }

    fn refused(&self, faults: Vec<String>) -> Problem {
        Problem::faulty(self.manner.refusal, faults)
    }

    fn query_faults(&self, uri: &Uri) -> Vec<String> {
        let faults = self.query.iter().flat_map(|parameter| {
            let given = auth::query_all(uri, parameter.name);
            if given.is_empty() {
                return Vec::new();
            }
            let named = |fault: String| match fault.strip_prefix("the body") {
                Some(rest) => format!("{}{rest}", parameter.name),
                None => format!("{}{fault}", parameter.name),
            };
            let value = parameter.shape.read_texts(&given);
            parameter.shape.faults(&value).into_iter().map(named).collect()
        });
        faults.collect()
    }

    /// Replaces an answer that does not match the description by an error, in builds with debug
    /// assertions.
    #[cfg(debug_assertions)]
    async fn checked(&self, response: Response) -> Response {
        use axum::body::{Body, to_bytes};
        let status = response.status().as_u16();
        let described = self.answers.iter().find(|answer| answer.status == status);
        let Some(Answer { media: JSON, shape: Some(shape), .. }) = described else {
            return response;
        };
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let faults = shape.faults(&value);
        if faults.is_empty() {
            return Response::from_parts(parts, Body::from(bytes));
        }
        let faults = faults.join("; ");
        Problem::new(Kind::Internal, format!("the answer is not as described: {faults}"))
            .into_response()
    }
}
