//! `/healthz` and `/readyz`: the probes for supervisors of the service. They take no key and tell
//! nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tokio::sync::Mutex;

use crate::app::App;
use crate::rest::answer::json_response;
use crate::store::Store;

/// The time for which the result of a test write is reused, so that probes do not keep the disk
/// busy.
const FRESH: Duration = Duration::from_secs(1);
/// The time after which a store that has not finished a test write counts as unable to write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of the last test write; `None` before the first one.
#[derive(Default)]
pub(crate) struct Readiness {
    last: Mutex<Option<Probe>>,
}

/// The time and the result of a test write.
#[derive(Clone, Copy)]
struct Probe {
    at: Instant,
    is_writable: bool,
}

impl Readiness {
    /// Returns true if the store takes writes. Makes a test write, unless there was one less than
    /// [`FRESH`] ago.
    async fn is_writable(&self, store: &Store) -> bool {
        let mut last = self.last.lock().await;
        if let Some(probe) = last.filter(|probe| probe.at.elapsed() < FRESH) {
            return probe.is_writable;
        }
        let written = tokio::time::timeout(WRITE_TIMEOUT, store.touch()).await;
        let is_writable = matches!(written, Ok(Ok(())));
        *last = Some(Probe { at: Instant::now(), is_writable });
        is_writable
    }
}

/// `GET /healthz`: the process answers.
pub(crate) async fn alive() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

/// `GET /readyz`: the service takes new work.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let why = if app.closing.is_cancelled() || app.draining.is_cancelled() {
        Some("stopping")
    } else if app.readiness.is_writable(&app.store).await {
        None
    } else {
        Some("the store cannot be written")
    };
    match why {
        None => json_response(StatusCode::OK, &json!({ "status": "ok" })),
        Some(why) => json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": why })),
    }
}
