//! A request, in the form that handlers of the REST API get.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::extract::{FromRequest, Path, Request};
use axum::http::{HeaderMap, Method, Uri};

use super::fields::Fields;
use crate::access_log::Entry;
use crate::app::App;
use crate::auth;
use crate::body::{self, Received};
use crate::description::operation::Form;
use crate::gate::Staleness;
use crate::problem::Problem;
use crate::resources::comma_list;

/// A request.
pub(crate) struct RestRequest {
    pub(crate) app: Arc<App>,
    pub(crate) entry: Entry,
    /// The age in milliseconds that a write must have before lists show it; 0 shows all.
    pub(crate) stale_ms: i64,
    /// The id in the path; empty if the path has none.
    pub(crate) id: String,
    /// All parameters of the path, in their order.
    places: Vec<String>,
    pub(crate) headers: HeaderMap,
    uri: Uri,
    body: Received,
    form: Arc<Form>,
}

impl RestRequest {
    /// Reads the fields of the JSON body.
    pub(crate) fn fields(&self) -> Result<Fields, Problem> {
        Fields::parse(&self.body, &self.form)
    }

    /// Returns a parameter of the path, counted from 0; an empty text if there is none.
    pub(crate) fn place(&self, number: usize) -> &str {
        self.places.get(number).map_or("", String::as_str)
    }

    /// Returns a parameter of the query string; `None` if it is missing.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        auth::query(&self.uri, name)
    }

    /// Returns a list parameter of the query string: given several times, or with commas.
    pub(crate) fn parameters(&self, name: &str) -> Vec<String> {
        auth::query_all(&self.uri, name).iter().flat_map(|text| comma_list(text)).collect()
    }

    /// Returns true if a parameter of the query string is `true` or `1`.
    pub(crate) fn wants(&self, parameter: &str) -> bool {
        auth::query(&self.uri, parameter).is_some_and(|value| value == "true" || value == "1")
    }
}

impl FromRequest<Arc<App>> for RestRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<App>) -> Result<RestRequest, Problem> {
        let Path(ids): Path<Vec<(String, String)>> =
            request.extract_parts().await.map_err(|_| Problem::not_found("path"))?;
        let places: Vec<String> = ids.into_iter().map(|(_, id)| id).collect();
        let id = places.first().cloned().unwrap_or_default();
        let form = request.extensions().get::<Arc<Form>>().cloned();
        let form = form.ok_or_else(Problem::internal)?;
        let entry = request.extensions().get::<Entry>().cloned().ok_or_else(Problem::internal)?;
        if !id.is_empty() {
            entry.object(&id);
        }
        let stale = request.extensions().get::<Staleness>();
        let stale_ms = stale.map_or(0, |stale| stale.0);
        let takes_body = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
        let (uri, headers) = (request.uri().clone(), request.headers().clone());
        let body = if takes_body {
            body::read(request.into_body(), form.body_max()).await?
        } else {
            Received::default()
        };
        Ok(RestRequest {
            app: Arc::clone(app),
            entry,
            stale_ms,
            id,
            places,
            headers,
            uri,
            body,
            form,
        })
    }
}
