//! Every path of the service in one place.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::app::App;
use crate::auth::Principal;
use crate::keys::Interface;
use crate::problem::{Kind, Problem};
use crate::rest::answer;
use crate::{
    balancer, console, cors, gate, graphql, jobs, metrics, readiness, request_id, rest, v2,
};

/// Returns the router of the whole service.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let api = Router::new()
        .nest("/v1", rest::router(app))
        .nest("/v2", v2::router(app))
        .nest("/v2/{endpoint}", v2::beside(app, jobs::router(app)))
        .merge(balancer::router());
    let console = console::router(app, api.clone().with_state(Arc::clone(app)));
    let routes = api
        .route("/graphql", axum::routing::any(graphql::handle))
        .route("/lease", get(lease))
        .route("/healthz", get(readiness::alive))
        .route("/readyz", get(readiness::ready))
        .route("/metrics", get(metrics::answer))
        .merge(console)
        .fallback(nowhere);
    let origins = &app.options.cors;
    let routes = if origins.is_empty() { routes } else { routes.layer(cors::layer(origins)) };
    routes.layer(from_fn_with_state(Arc::clone(app), observe)).with_state(Arc::clone(app))
}

/// The middleware of every request: gives it an id, and counts it.
async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let measured = app.requests.begin(request.uri().path());
    let id = request_id::of(request.headers());
    let mut response = request_id::scope(Arc::clone(&id), next.run(request)).await;
    request_id::stamp(response.headers_mut(), &id);
    if response.extensions().get::<gate::Cut>().is_none() {
        measured.answered(response.status().as_u16());
    }
    response
}

/// The refusal of a lease to a key that is not the account's.
const ACCOUNT_ONLY: &str = "only the key of the account takes leases";

/// Grants a lease: an answer that stays open until the client closes the connection.
async fn lease(State(app): State<Arc<App>>, request: Request) -> Response {
    let entry = app.access.entry("GET", "/lease");
    let lease = app
        .keys
        .authenticate(Interface::Rest, request.headers(), request.uri())
        .and_then(|principal| match principal {
            Principal::Account => Ok(()),
            Principal::Limited { .. } => Err(Problem::new(Kind::Unauthorized, ACCOUNT_ONLY)),
        })
        .and_then(|()| {
            let stopping = || Problem::new(Kind::Unavailable, "the service is stopping");
            app.leases.grant().ok_or_else(stopping)
        });
    let response = match lease {
        Ok(body) => body.into_response(),
        Err(problem) => answer::plain_problem(&problem),
    };
    gate::finished(&entry, response)
}

async fn nowhere(State(app): State<Arc<App>>, request: Request) -> Response {
    let entry = app.access.entry(request.method().as_str(), request.uri().path());
    let response = answer::plain_problem(&Problem::not_found("path"));
    // A path that ends in a slash matches no parameter of a route, so it comes here.
    let is_v2 = request.uri().path().starts_with("/v2/");
    gate::finished(&entry, if is_v2 { v2::problem::dressed(response) } else { response })
}
