//! The middleware of the job API: keys, faults, the access log.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::queue;
use crate::app::App;
use crate::auth;
use crate::faults::Call;
use crate::gate::{self, guarded};
use crate::keys::{Access, Interface};
use crate::problem::Problem;

/// The middleware of the calls of clients.
pub(super) async fn clients(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (call, path) = call(&request, false);
    let entry = app.access.entry(request.method().as_str(), &path);
    entry.call(&call);
    let response = match admit(&app, &request, &call, &path) {
        Ok(()) => gate::through(&app, &call, &entry, request, next).await,
        Err(problem) => problem.into_response(),
    };
    gate::finished(&entry, response)
}

/// Refuses a request whose key does not allow it, or whose endpoint has no jobs. The path is
/// `/v2/ENDPOINT/…`.
fn admit(app: &App, request: &Request, call: &Call, path: &str) -> Result<(), Problem> {
    let principal = app.keys.authenticate(Interface::Jobs, request.headers(), request.uri())?;
    let endpoint = path.split('/').nth(2);
    let changes = !only_reads(call, request.uri());
    principal.permit(Access { interface: Interface::Jobs, changes, endpoint })?;
    lacks_queue(app, call, endpoint).map_or(Ok(()), Err)
}

/// Returns true for calls that change nothing. Some GET requests do change something: `/openai/…`
/// makes a job, `/stream` removes the chunks that it returns, and `ttl` changes the time that a job
/// is kept.
fn only_reads(call: &Call, uri: &Uri) -> bool {
    const READS: [&str; 4] = ["/status/{id}", "/status-sync/{id}", "/health", "/requests"];
    let is_read = |operation: &String| {
        let path = operation.strip_prefix("GET ").or(operation.strip_prefix("HEAD "));
        path.is_some_and(|path| READS.contains(&path))
    };
    call.operations.iter().all(is_read) && auth::query(uri, "ttl").is_none()
}

/// Returns a problem for an operation on jobs at an endpoint without a queue. `/health` works at
/// all endpoints.
fn lacks_queue(app: &App, call: &Call, endpoint: Option<&str>) -> Option<Problem> {
    if call.operations.iter().any(|operation| operation.ends_with("/health")) {
        return None;
    }
    let endpoint = endpoint?;
    let is_balanced = app.fleet.wanted(endpoint)?.endpoint.is_balanced();
    is_balanced.then(|| queue::no_queue(endpoint))
}

/// The middleware of the calls of workers. Each call checks the worker's token itself. Workers are
/// not clients, so their calls are not in the access log.
pub(super) async fn workers(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (call, _) = call(&request, true);
    let mishap = app.faults.strike(&call);
    guarded(&mishap, next.run(request)).await
}

/// Returns the call, and its path as the client wrote it.
fn call(request: &Request, internal: bool) -> (Call, String) {
    const PREFIX: &str = "/v2/{endpoint}";
    let path = request.uri().path();
    let matched = request.extensions().get::<MatchedPath>().map_or(path, MatchedPath::as_str);
    let method = request.method();
    let mut operation = format!("{method} {}", matched.strip_prefix(PREFIX).unwrap_or(matched));
    if internal {
        // The operations of workers are named by their first word: `GET /job-take`.
        let end = operation.find("/{").unwrap_or(operation.len());
        operation.truncate(end);
    }
    let original = gate::whole_path(request);
    let call = Call {
        operations: vec![operation],
        literal: format!("{method} {original}"),
        mutating: !internal && method == Method::POST,
        list: false,
        internal,
    };
    (call, original)
}
