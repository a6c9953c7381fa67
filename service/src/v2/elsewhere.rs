//! The answer at paths under `/v2` that belong neither to an operation of version 2 nor to an
//! endpoint. The router gives such paths to the job API, which would take the name of a group for
//! the id of an endpoint.

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

/// The groups of version 2, and the answer at paths of theirs that are not an operation.
struct Elsewhere {
    groups: BTreeSet<&'static str>,
    answer: TowerToHyperService<Router>,
}

/// Adds a layer to the job API, which answers requests below a group of version 2.
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
    /// Returns true if a path is below a group, or has no part after the first one.
    fn has(&self, path: &str) -> bool {
        let mut parts = path.split('/').skip(2);
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        second.is_none() || self.groups.contains(first)
    }
}

pub(super) async fn nowhere() -> Problem {
    Problem::not_found("path")
}
