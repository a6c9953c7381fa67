//! Every path of the service in one place.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::app::App;
use crate::problem::{Kind, Problem};
use crate::rest::answer;
use crate::{gate, graphql, jobs, rest, v2};

/// The router of the whole service.
pub(crate) fn router(app: &Arc<App>) -> Router {
    Router::new()
        .nest("/v1", rest::router(app))
        .nest("/v2", v2::router(app))
        .nest("/v2/{endpoint}", jobs::router(app))
        .route("/graphql", axum::routing::any(graphql::handle))
        .route("/lease", get(lease))
        .fallback(nowhere)
        .with_state(Arc::clone(app))
}

/// Grants a lease: an answer that stays open until the client lets go.
async fn lease(State(app): State<Arc<App>>, request: Request) -> Response {
    let entry = app.access.entry("GET", "/lease");
    let response = if app.key.bearer(request.headers()) {
        match app.leases.grant() {
            Some(body) => body.into_response(),
            None => {
                answer::plain_problem(&Problem::new(Kind::Unavailable, "the service is stopping"))
            }
        }
    } else {
        answer::plain_problem(&Problem::unauthorized())
    };
    gate::finished(&entry, response)
}

async fn nowhere(State(app): State<Arc<App>>, request: Request) -> Response {
    let entry = app.access.entry(request.method().as_str(), request.uri().path());
    let problem = Problem::not_found("path");
    gate::finished(&entry, answer::plain_problem(&problem))
}
