//! A request as the handlers of the REST API see it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestExt as _;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{FromRequest, Path, Request};
use axum::http::{Method, Uri};

use super::fields::Fields;
use crate::access_log::Entry;
use crate::app::App;
use crate::auth;
use crate::gate::Staleness;
use crate::problem::{Kind, Problem};

/// The largest body that the management APIs take.
pub(crate) const BODY_MAX: usize = 1 << 20;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// A request.
pub(crate) struct Ask {
    pub(crate) app: Arc<App>,
    pub(crate) entry: Entry,
    /// How old a write must be for lists to show it.
    pub(crate) stale_ms: i64,
    /// The id in the path; empty where there is none.
    pub(crate) id: String,
    uri: Uri,
    body: Bytes,
}

impl Ask {
    /// The fields of the JSON body.
    pub(crate) fn fields(&self) -> Result<Fields, Problem> {
        Fields::parse(&self.body)
    }

    /// Whether a parameter of the query string says true.
    pub(crate) fn wants(&self, parameter: &str) -> bool {
        auth::query(&self.uri, parameter).is_some_and(|value| value == "true" || value == "1")
    }
}

impl FromRequest<Arc<App>> for Ask {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<App>) -> Result<Ask, Problem> {
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
        let body =
            if takes_body { read(request.into_body(), BODY_MAX).await? } else { Bytes::new() };
        Ok(Ask { app: Arc::clone(app), entry, stale_ms, id, uri, body })
    }
}

/// Reads a body up to a limit. One that announces more is refused without being read.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let megabytes = limit >> 20;
        Problem::new(Kind::TooLarge, format!("the request body is larger than {megabytes} MB"))
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_limit(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::invalid("the request body could not be read")),
        Err(_) => Err(Problem::invalid("the request body did not arrive in time")),
    }
}

fn is_limit(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.and_then(|source| source.downcast_ref::<http_body_util::LengthLimitError>()).is_some()
}
