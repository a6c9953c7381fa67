//! The job API of queue-based endpoints, under `/v2/<endpoint>`, and the channel of their workers.
//!
//! [`queue`] and [`upkeep`] change jobs in the store. [`projection`] holds counts and subscriptions
//! in memory, so that others need not read the store. [`client`] and [`openai`] answer clients,
//! [`channel`] answers workers. [`sweep`] ends jobs whose time is up, and [`webhooks`] reports
//! ended jobs to the addresses that clients gave.

mod channel;
mod client;
mod gate;
#[cfg(test)]
mod model;
mod named;
mod openai;
pub(crate) mod output;
pub(crate) mod projection;
pub(crate) mod queue;
pub(crate) mod rates;
pub(crate) mod record;
mod submission;
pub(crate) mod sweep;
pub(crate) mod upkeep;
mod waiting_client;
pub(crate) mod webhooks;

use std::sync::Arc;

use axum::Router;
use axum::http::header::{ALLOW, HeaderMap, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::App;
use crate::problem::{Kind, Problem};

/// Returns the router of the paths under `/v2/{endpoint}`.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let clients = Router::new()
        .route("/run", post(client::run))
        .route("/runsync", post(client::runsync))
        .route("/status/{id}", get(client::status))
        .route("/status-sync/{id}", get(client::status_sync))
        .route("/stream/{id}", get(client::stream))
        .route("/cancel/{id}", post(client::cancel))
        .route("/retry/{id}", post(client::retry))
        .route("/purge-queue", post(client::purge))
        .route("/health", get(client::health))
        .route("/requests", get(client::requests))
        .route("/openai/{*route}", get(openai::pass).post(openai::pass).head(no_head))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), gate::clients));
    let workers = Router::new()
        .route("/job-take/{worker}", get(channel::take).head(no_head))
        .route("/job-take-batch/{worker}", get(channel::take).head(no_head))
        .route("/job-stop/{worker}", get(channel::stop).head(no_head))
        .route("/job-done/{worker}/{job}", post(channel::done))
        .route("/job-stream/{worker}/{job}", post(channel::stream))
        .route("/ping/{worker}", get(channel::ping))
        .layer(from_fn_with_state(Arc::clone(app), gate::workers));
    workers.merge(clients)
}

/// Refuses HEAD where GET removes the data that it returns: a HEAD request would lose that data.
async fn no_head() -> (HeaderMap, Problem) {
    (HeaderMap::from_iter([(ALLOW, HeaderValue::from_static("GET, POST"))]), wrong_method().await)
}

async fn nowhere() -> Problem {
    Problem::not_found("path")
}

async fn wrong_method() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "method not allowed")
}
