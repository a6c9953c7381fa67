//! The console: one page for people, and the routes for this page only.
//!
//! The page holds no key. Signing in with a key opens a [`session`]: a cookie that scripts cannot
//! read, and a token that only scripts of this address can read. With both, [`forward`] passes
//! calls on to the REST APIs and the job API, with the key of the session and so with its rights.
//! [`events`] sends changes, and [`reads`] answers the questions that no API answers.

mod assets;
mod events;
mod forward;
mod origin;
mod reads;
mod session;
mod snapshot;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::gate;
use session::Sessions;

/// The content security policy: the page may load files of this address only, and no text can
/// become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The most event streams that are open at once.
const STREAMS_MAX: usize = 64;

/// The state of the console.
struct Console {
    app: Arc<App>,
    sessions: Sessions,
    /// The router of the APIs, which gets the calls of the page.
    api: TowerToHyperService<Router>,
    streams: Arc<Semaphore>,
}

type Shared = State<Arc<Console>>;

/// Returns the router of the page at `/` and of the routes under `/console`. `api` is the router of
/// the APIs.
pub(crate) fn router(app: &Arc<App>, api: Router) -> Router<Arc<App>> {
    let console = Arc::new(Console {
        app: Arc::clone(app),
        sessions: Sessions::default(),
        api: TowerToHyperService::new(api),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
    });
    let signed_in = Router::new()
        .route("/console/api/{*path}", any(forward::pass))
        .route("/console/events", get(events::follow))
        .route("/console/jobs/{endpoint}/{id}/{part}", get(reads::job_part))
        .route("/console/logs/{endpoint}", get(reads::logs))
        .route("/console/usage", get(reads::usage))
        .route("/console/keys", get(reads::keys))
        .layer(from_fn_with_state(Arc::clone(&console), session::require));
    Router::new()
        .route("/", get(assets::page))
        .route("/console/{name}", get(assets::asset))
        .route("/console/session", get(session::show).post(session::open).delete(session::close))
        .merge(signed_in)
        .layer(from_fn_with_state(Arc::clone(&console), guard))
        .with_state(console)
}

/// The middleware of all routes of the console: refuses foreign origins, logs requests, and sets
/// the headers that confine the page.
async fn guard(State(console): Shared, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // A call that is passed on gets its entry from the API.
    let entry = (!path.starts_with(forward::PREFIX))
        .then(|| console.app.access.entry(request.method().as_str(), path));
    let mut response = match origin::check(request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    match entry {
        Some(entry) => gate::finished(&entry, response),
        None => response,
    }
}
