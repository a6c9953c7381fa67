//! A request as the handlers of the REST API see it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Request};
use axum::http::{Method, Uri};

use super::fields::Fields;
use crate::access_log::Entry;
use crate::app::App;
use crate::auth;
use crate::body::{self, BODY_MAX};
use crate::gate::Staleness;
use crate::problem::Problem;

/// A request.
pub(crate) struct RestRequest {
    pub(crate) app: Arc<App>,
    pub(crate) entry: Entry,
    /// How old a write must be for lists to show it.
    pub(crate) stale_ms: i64,
    /// The id in the path; empty where there is none.
    pub(crate) id: String,
    uri: Uri,
    body: Bytes,
}

impl RestRequest {
    /// The fields of the JSON body.
    pub(crate) fn fields(&self) -> Result<Fields, Problem> {
        Fields::parse(&self.body)
    }

    /// Returns true if a parameter of the query string says true.
    pub(crate) fn wants(&self, parameter: &str) -> bool {
        auth::query(&self.uri, parameter).is_some_and(|value| value == "true" || value == "1")
    }
}

impl FromRequest<Arc<App>> for RestRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<App>) -> Result<RestRequest, Problem> {
        let parameters: Path<HashMap<String, String>> =
            request.extract_parts().await.map_err(|_| Problem::not_found("path"))?;
        let id = parameters.0.into_values().next().unwrap_or_default();
        let entry = request.extensions().get::<Entry>().cloned().ok_or_else(Problem::internal)?;
        if !id.is_empty() {
            entry.object(&id);
        }
        let stale = request.extensions().get::<Staleness>();
        let stale_ms = stale.map_or(0, |stale| stale.0);
        let takes_body = matches!(*request.method(), Method::POST | Method::PATCH);
        let uri = request.uri().clone();
        let body = if takes_body {
            body::read(request.into_body(), BODY_MAX).await?
        } else {
            Bytes::new()
        };
        Ok(RestRequest { app: Arc::clone(app), entry, stale_ms, id, uri, body })
    }
}
