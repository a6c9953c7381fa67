//! GraphQL: the second API for management, with the same objects and rules as REST.
//!
//! Requests are parsed and validated against a schema. Variables, aliases, fragments and directives
//! work, and mistakes are reported in GraphQL's form. A document that cannot be parsed or validated
//! is answered 400. A failed operation is answered 200 with `errors`, and with null in the place of
//! the field. A field of the real service that has no meaning here is null.

mod account;
mod catalog;
mod cpus;
mod document;
mod endpoints;
mod flash;
mod inputs;
mod mutation;
mod pod_inputs;
mod pods;
mod query;
mod templates;

use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use juniper::http::GraphQLRequest;
use juniper::{DefaultScalarValue, EmptySubscription, FieldError, RootNode, graphql_value};
use serde_json::{Value, json};

use crate::access_log::Entry;
use crate::app::App;
use crate::body;
use crate::gate::{self, guarded};
use crate::keys::{Access, Interface};
use crate::problem::{Kind, Problem};
use crate::resources::number;
use crate::rest::answer;
use mutation::Mutation;
use query::Query;

type Schema = RootNode<Query, Mutation, EmptySubscription<Ctx>>;

/// The schema. It is the same for all requests.
static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema::new(Query, Mutation, EmptySubscription::new()));

/// The context of one request, which every resolver gets.
pub(crate) struct Ctx {
    app: Arc<App>,
    entry: Entry,
    stale_ms: i64,
}

impl juniper::Context for Ctx {}

/// `/graphql`
pub(crate) async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let entry = app.access.entry(request.method().as_str(), request.uri().path());
    let response = match admitted(&app, request).await {
        Ok(asked) => answered(&app, &entry, asked).await,
        Err(problem) => refused(&problem),
    };
    gate::finished(&entry, response)
}

/// Checks key and rate, reads the request, and checks that the key allows the operations of the
/// document.
async fn admitted(app: &App, request: Request) -> Result<GraphQLRequest, Problem> {
    let access = |changes| Access { interface: Interface::Graphql, changes, endpoint: None };
    let principal = app.keys.authenticate(Interface::Graphql, request.headers(), request.uri())?;
    principal.permit(access(false))?;
    let asked = read(app, request).await?;
    principal.permit(access(document::has_mutation(&asked, &SCHEMA)))?;
    Ok(asked)
}

/// Checks the rate, and reads the request.
async fn read(app: &App, request: Request) -> Result<GraphQLRequest, Problem> {
    gate::take_rate(app)?;
    if request.method() != Method::POST {
        return Err(Problem::new(Kind::MethodNotAllowed, "GraphQL takes POST requests"));
    }
    let body = body::read(request.into_body(), body::BODY_MAX).await?;
    let asked: GraphQLRequest = serde_json::from_slice(&body).map_err(|error| {
        Problem::invalid(format!("the request body must be JSON with a query: {error}"))
    })?;
    if asked.variables.as_ref().is_some_and(|given| given.to_object_value().is_none()) {
        // The library would ignore such variables.
        return Err(Problem::invalid("`variables` must be an object"));
    }
    Ok(asked)
}

async fn answered(app: &Arc<App>, entry: &Entry, asked: GraphQLRequest) -> Response {
    let call = document::call(&asked, &SCHEMA);
    entry.call(&call);
    let mishap = app.faults.strike(&call);
    let stale_ms = gate::staleness(app, &mishap).0;
    let ctx = Ctx { app: Arc::clone(app), entry: entry.clone(), stale_ms };
    guarded(&mishap, async move {
        if let Some(name) = document::unknown_type(&asked, &SCHEMA) {
            let mut body = json!({ "errors": [{ "message": format!("Unknown type \"{name}\"") }] });
            add_code(&mut body);
            return answer::json_response(StatusCode::BAD_REQUEST, &body);
        }
        let result = asked.execute(&SCHEMA, &ctx).await;
        let valid = result.is_ok();
        let mut body = serde_json::to_value(&result).unwrap_or(Value::Null);
        if let Some(data) = body.get_mut("data") {
            whole_numbers(data);
        }
        if !valid {
            add_code(&mut body);
        }
        let status = if valid { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        answer::json_response(status, &body)
    })
    .await
}

/// Turns floating-point numbers without a fraction into whole ones, as other GraphQL servers do: a
/// client that expects an integer cannot read 4.0.
fn whole_numbers(data: &mut Value) {
    match data {
        Value::Number(found) if found.is_f64() => {
            *data = number(found.as_f64().unwrap_or_default());
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Adds a code to errors of the document. Errors of resolvers have one already.
fn add_code(body: &mut Value) {
    for error in body["errors"].as_array_mut().into_iter().flatten() {
        if error.get("extensions").is_none() {
            error["extensions"] = json!({ "code": "GRAPHQL_VALIDATION_FAILED" });
        }
    }
}

fn refused(problem: &Problem) -> Response {
    let code = match problem.kind {
        Kind::Unauthorized => "UNAUTHENTICATED",
        Kind::Invalid => "BAD_REQUEST",
        _ => "RUNPOD",
    };
    let error = json!({ "message": problem.message, "extensions": { "code": code } });
    let mut response = answer::plain_problem(problem);
    *response.body_mut() = json!({ "errors": [error] }).to_string().into();
    response
}

impl From<Problem> for FieldError {
    fn from(problem: Problem) -> FieldError {
        let code = match problem.kind {
            Kind::Internal => "INTERNAL_SERVER_ERROR",
            _ => "RUNPOD",
        };
        let extensions: juniper::Value<DefaultScalarValue> = graphql_value!({ "code": code });
        FieldError::new(problem.message, extensions)
    }
}

/// Returns a number of the store as GraphQL's 32-bit integer; a larger one becomes the largest.
fn int(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}
