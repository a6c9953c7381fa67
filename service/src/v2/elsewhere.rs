//! Paths under `/v2` that are neither an operation of version 2 nor of an endpoint. The router gives
//! them to the job API, which would take the name of a group for an endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use crate::app::App;
use crate::gate;
use crate::problem::Problem;

/// The groups of version 2, and their answer at other paths than those of their operations.
struct Elsewhere {
    groups: BTreeSet<&'static str>,
    answer: TowerToHyperService<Router>,
}

/// Makes version 2 answer the requests below its groups that come to the job API.
pub(super) fn layer(
    app: &Arc<App>,
    jobs: Router<Arc<App>>,
    groups: BTreeSet<&'static str>,
) -> Router<Arc<App>> {
    let answer = Router::new()
        .fallback(nowhere)
        .layer(from_fn_with_state(Arc::clone(app), gate::v2))
        .with_state(());
    jobs.layer(from_fn_with_state(
        Arc::new(Elsewhere { groups, answer: TowerToHyperService::new(answer) }),
        divert,
    ))
}

async fn divert(State(elsewhere): State<Arc<Elsewhere>>, request: Request, next: Next) -> Response {
    if !elsewhere.has(&gate::whole_path(&request)) {
        return next.run(request).await;
    }
    let Ok(response) = elsewhere.answer.call(request).await;
    response
}

impl Elsewhere {
    /// Returns true if a path is below a group, or names nothing below an endpoint.
    fn has(&self, path: &str) -> bool {
        let mut parts = path.split('/').skip(2);
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        second.is_none() || self.groups.contains(first)
    }
}

pub(super) async fn nowhere() -> Problem {
    Problem::not_found("path")
}
