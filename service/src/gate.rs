//! The middleware of every request: all that happens before and after its handler.
//!
//! In this order: the entry of the access log is opened, the key is checked, the request is counted
//! against the rate, the faults are applied, and the entry is closed with the answer that the
//! client gets. GraphQL goes the same way with one difference: its operation is known only after
//! the body was read, so its handler calls [`guarded`] itself.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, OriginalUri, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::access_log::Entry;
use crate::app::App;
use crate::faults::{Call, FaultKind, Mishap};
use crate::keys::{Access, Interface};
use crate::problem::{Kind, Problem};
use crate::quirks::Quirk;
use crate::rate::Quotas;
use crate::rest::answer;

/// The age in milliseconds that a write must have before the lists of one request show it; 0 shows
/// all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staleness(pub(crate) i64);

/// The mark of an answer that is not sent: the connection is cut instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut;

/// The middleware of the REST management API.
pub(crate) async fn rest(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let entry = app.access.entry(request.method().as_str(), &whole_path(&request));
    let call = rest_call(&request);
    entry.call(&call);
    let gone = app.quirks.has(Quirk::Gone410);
    let retired = || Problem::new(Kind::Gone, "this version of the API is retired; use version 2");
    let admitted = admit(&app, &request, &call)
        .and_then(|()| if gone { Err(retired()) } else { take_rate(&app) });
    let response = match admitted {
        Err(problem) => answer::plain_problem(&problem),
        Ok(()) => through(&app, &call, &entry, request, next).await,
    };
    finished(&entry, answer::disguise(&app, response))
}

/// The middleware of version 2 of the management API.
pub(crate) async fn v2(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let entry = app.access.entry(request.method().as_str(), &whole_path(&request));
    let call = rest_call(&request);
    entry.call(&call);
    let (admitted, quotas) = admit_v2(&app, &request, &call);
    let response = match admitted {
        Err(problem) => answer::plain_problem(&problem),
        Ok(()) => through(&app, &call, &entry, request, next).await,
    };
    let mut response = crate::v2::problem::dressed(response);
    quotas.stamp(response.headers_mut());
    finished(&entry, response)
}

/// Refuses a request of version 2 that has no known key, comes too often, or needs a right that its
/// key lacks. A client with a known key is told in headers what is left of the rate.
fn admit_v2(app: &App, request: &Request, call: &Call) -> (Result<(), Problem>, Quotas) {
    let principal = match app.keys.authenticate(Interface::Rest, request.headers(), request.uri()) {
        Ok(principal) => principal,
        Err(problem) => return (Err(problem), Quotas::default()),
    };
    let (taken, quotas) = app.take_rate();
    let permitted = || {
        principal.permit(rest_access(call)).map_err(|mut problem| {
            problem.kind = Kind::Forbidden;
            problem
        })
    };
    (taken.and_then(|()| permitted()), quotas)
}

/// Refuses a request of the management APIs above their rate.
pub(crate) fn take_rate(app: &App) -> Result<(), Problem> {
    app.take_rate().0
}

/// Refuses a REST request whose key does not allow it.
fn admit(app: &App, request: &Request, call: &Call) -> Result<(), Problem> {
    let principal = app.keys.authenticate(Interface::Rest, request.headers(), request.uri())?;
    principal.permit(rest_access(call))
}

fn rest_access(call: &Call) -> Access<'static> {
    Access { interface: Interface::Rest, changes: call.mutating, endpoint: None }
}

/// Runs the handler of a request under the faults that strike the request.
pub(crate) async fn through(
    app: &App,
    call: &Call,
    entry: &Entry,
    mut request: Request,
    next: Next,
) -> Response {
    let mishap = app.faults.strike(call);
    request.extensions_mut().insert(entry.clone());
    request.extensions_mut().insert(staleness(app, &mishap));
    guarded(&mishap, async move { next.run(request).await }).await
}

/// Returns the staleness of the lists of this request: the larger one of quirk and fault.
pub(crate) fn staleness(app: &App, mishap: &Mishap) -> Staleness {
    Staleness(app.quirks.stale_lists_ms().max(mishap.stale_ms))
}

/// Runs a handler under a mishap, which may delay, replace or suppress the answer.
pub(crate) async fn guarded(mishap: &Mishap, run: impl Future<Output = Response>) -> Response {
    if !mishap.latency.is_zero() {
        tokio::time::sleep(mishap.latency).await;
    }
    match mishap.kind {
        None | Some(FaultKind::Latency(_) | FaultKind::StaleList(_)) => run.await,
        Some(FaultKind::Status429(seconds)) => {
            let after = Kind::TooMany(Duration::from_secs(seconds));
            answer::plain_problem(&Problem::new(after, "too many requests"))
        }
        Some(FaultKind::Error500Before) => answer::plain_problem(&Problem::internal()),
        Some(FaultKind::Error500After) => {
            drop(run.await);
            answer::plain_problem(&Problem::internal())
        }
        Some(FaultKind::Lost) => {
            drop(run.await);
            cut()
        }
        Some(FaultKind::Cut) => cut(),
        Some(FaultKind::Hang) => std::future::pending().await,
    }
}

/// Closes the entry with the answer that the client gets, and passes that answer on.
pub(crate) fn finished(entry: &Entry, response: Response) -> Response {
    let cut = response.extensions().get::<Cut>().is_some();
    entry.close((!cut).then(|| response.status().as_u16()));
    response
}

fn cut() -> Response {
    let mut response = ().into_response();
    response.extensions_mut().insert(Cut);
    response
}

/// Returns the operation of a REST request: its method and its path with `{id}` for the id.
fn rest_call(request: &Request) -> Call {
    let path = request.uri().path();
    let matched = request.extensions().get::<MatchedPath>().map_or(path, MatchedPath::as_str);
    let short = |path: &str| format!("{} {}", request.method(), strip_version(path));
    Call {
        operations: vec![short(matched)],
        literal: short(path),
        mutating: request.method() != Method::GET && request.method() != Method::HEAD,
        list: request.method() == Method::GET && !matched.contains('{'),
        internal: false,
    }
}

/// Returns the path as the client wrote it, before the router took prefixes off.
pub(crate) fn whole_path(request: &Request) -> String {
    let original = request.extensions().get::<OriginalUri>();
    original.map_or(request.uri().path(), |uri| uri.path()).to_owned()
}

fn strip_version(path: &str) -> &str {
    path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// Returns true for the operations of the job API on one job. Faults may also name them without the
/// id.
pub(crate) fn is_job_operation(operation: &str) -> bool {
    const NAMES: &[&str] = &["/status/", "/status-sync/", "/stream/"];
    NAMES.iter().any(|name| operation.contains(name))
}
