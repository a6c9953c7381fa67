//! The REST management API: paths, bodies, answers. The rules stand with the resources.

pub(crate) mod answer;
mod endpoints;
pub(crate) mod fields;
mod registries;
mod request;
mod templates;
mod volumes;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::App;
use crate::gate;
use crate::problem::{Kind, Problem};

/// The routes under `/v1`.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/networkvolumes", get(volumes::list).post(volumes::create))
        .route(
            "/networkvolumes/{id}",
            get(volumes::read).patch(volumes::update).delete(volumes::delete),
        )
        .route("/networkvolumes/{id}/update", post(volumes::update))
        .route("/templates", get(templates::list).post(templates::create))
        .route(
            "/templates/{id}",
            get(templates::read).patch(templates::update).delete(templates::delete),
        )
        .route("/templates/{id}/update", post(templates::update))
        .route("/endpoints", get(endpoints::list).post(endpoints::create))
        .route(
            "/endpoints/{id}",
            get(endpoints::read).patch(endpoints::update).delete(endpoints::delete),
        )
        .route("/endpoints/{id}/update", post(endpoints::update))
        .route("/containerregistryauth", get(registries::list).post(registries::create))
        .route("/containerregistryauth/{id}", get(registries::read).delete(registries::delete))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), gate::rest))
}

async fn nowhere() -> Problem {
    Problem::not_found("path")
}

async fn wrong_method() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "method not allowed")
}
