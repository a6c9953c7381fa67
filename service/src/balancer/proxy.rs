//! The passing of one request to a worker, and of its answer back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{HOST, HeaderMap, HeaderValue};
use axum::http::uri::PathAndQuery;
use axum::http::{Method, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::upgrade::{self, OnUpgrade};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::capped_body::CappedBody;
use super::refusal::Refusal;
use super::rotation::Slot;
use super::{headers, target, tunnel};
use crate::app::App;
use crate::workers::http_server::{HttpServer, connect};

/// The largest body of a request, and of an answer.
const BODY_MAX: u64 = 30 << 20;

/// A request that a worker handles: its slot, and the connection to the worker, which ends when
/// this is dropped.
struct Exchange {
    slot: Slot,
    connection: AbortHandle,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Refuses a request that announces a body which is too large.
pub(super) fn check_length(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers::length(headers) {
        Some(length) if length > BODY_MAX => Err(too_large()),
        _ => Ok(()),
    }
}

/// Passes a request to a worker, and returns its answer, whose body follows as the worker sends it.
pub(super) async fn forward(
    app: &Arc<App>,
    slot: Slot,
    mut request: Request,
) -> Result<Response<Body>, Refusal> {
    let due = Instant::now() + app.options.timing.request;
    let wants_upgrade = headers::upgrade(request.headers()).is_some();
    let client = wants_upgrade.then(|| upgrade::on(&mut request));
    let method = request.method().clone();
    let request = for_worker(request)?;
    let request = request.map(|body| CappedBody::new(body, BODY_MAX, due, ()));
    let was_too_large = request.body().was_too_large();
    let port = slot.worker().server.get().map_or(0, HttpServer::port);
    let (mut sender, connection) = connect(port).await.map_err(|error| unreached(&slot, &error))?;
    let connection = tokio::spawn(connection.with_upgrades()).abort_handle();
    let exchange = Exchange { slot, connection };
    match timeout_at(due, sender.send_request(request)).await {
        Ok(Ok(response)) => {
            app.fleet.forget_crashes(&exchange.slot.worker().endpoint);
            answer(app, exchange, response, Asked { method, client, due })
        }
        Ok(Err(_)) if was_too_large.load(SeqCst) => Err(too_large()),
        Ok(Err(error)) if Instant::now() < due => Err(unanswered(&exchange.slot, &error)),
        Ok(Err(_)) | Err(_) => {
            let limit = app.options.timing.request.as_secs();
            let message = format!("the worker has not answered within {limit} s");
            Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, message))
        }
    }
}

/// The parts of a request that the handling of its answer needs.
struct Asked {
    method: Method,
    /// The upgradable connection of the client; `None` if the client asks for no other protocol.
    client: Option<OnUpgrade>,
    due: Instant,
}

fn answer(
    app: &Arc<App>,
    exchange: Exchange,
    mut response: Response<Incoming>,
    asked: Asked,
) -> Result<Response<Body>, Refusal> {
    let id = exchange.slot.worker().id.clone();
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    headers::keep_those_of_client(response.headers_mut(), &id, switches);
    match (switches, asked.client) {
        (true, Some(client)) => {
            let worker = upgrade::on(&mut response);
            tunnel::join(Arc::clone(app), client, worker, exchange);
            return Ok(response.map(|_| Body::empty()));
        }
        (true, None) => {
            let message = format!("worker {id} answers 101 to a request that asks for no upgrade");
            return Err(Refusal::bad_gateway(message));
        }
        (false, _) => {}
    }
    let length = headers::length(response.headers()).filter(|_| asked.method != Method::HEAD);
    if length.is_some_and(|length| length > BODY_MAX) {
        let limit = BODY_MAX >> 20;
        let message = format!("the answer of worker {id} is larger than {limit} MB");
        return Err(Refusal::bad_gateway(message));
    }
    Ok(response.map(|body| Body::new(CappedBody::new(body, BODY_MAX, asked.due, exchange))))
}

/// Returns the request as the worker gets it.
fn for_worker(request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    let (_, path) = target(parts.uri.path());
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = PathAndQuery::try_from(format!("{path}{query}"));
    let path = path.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the path is malformed"))?;
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = parts.headers;
    headers::keep_those_of_worker(request.headers_mut());
    let local = HeaderValue::from_static("localhost");
    request.headers_mut().entry(HOST).or_insert(local);
    Ok(request)
}

fn too_large() -> Refusal {
    let limit = BODY_MAX >> 20;
    let message = format!("the body of the request is larger than {limit} MB");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Returns the refusal for a healthy worker at whose port nothing accepts connections.
fn unreached(slot: &Slot, error: &io::Error) -> Refusal {
    let worker = slot.worker();
    let port = worker.server.get().map_or(0, HttpServer::port);
    Refusal::bad_gateway(format!(
        "worker {} is healthy but does not take connections at its PORT, {port} ({error}): \
         its server must listen there",
        worker.id
    ))
}

fn unanswered(slot: &Slot, error: &hyper::Error) -> Refusal {
    let worker = slot.worker();
    let how = if worker.alive.load(SeqCst) { "closed the connection" } else { "ended" };
    Refusal::bad_gateway(format!("worker {} {how} before it answered: {error}", worker.id))
}
