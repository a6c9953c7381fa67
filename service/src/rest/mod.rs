//! The REST management API, version 1: paths, bodies, answers. The rules are in the modules of the
//! resources.

pub(crate) mod answer;
mod billing;
mod endpoints;
pub(crate) mod fields;
mod pods;
pub(crate) mod registries;
pub(crate) mod request;
mod templates;
mod volumes;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::app::App;
use crate::body::BODY_MAX;
use crate::description::operation::{self, RequestRules};
use crate::description::shape::{Shape, count, must, named, object, text};
use crate::description::{self, ApiInfo};
use crate::gate;
use crate::problem::{Kind, Problem};

/// The description of the API.
const ABOUT: ApiInfo = ApiInfo {
    title: "Serverless compute service, REST API",
    version: "0.1.0",
    summary: "Network volumes, templates, endpoints, pods, container registry credentials and costs.",
    prefix: "/v1",
    problems: &[
        (400, "The request is wrong, or breaks a rule"),
        (401, "The key is missing or wrong"),
        (404, "There is no such object"),
        (413, "The body is too large"),
        (429, "Too many requests"),
    ],
    problem,
    problem_media: "application/json",
};

fn problem() -> Shape {
    named("Problem", object([must("error", text()), must("status", count())]))
}

fn operations() -> Vec<operation::Operation> {
    let groups = [
        operation::group("endpoints", "endpointId", endpoints::operations()),
        operation::group("network volumes", "networkVolumeId", volumes::operations()),
        operation::group("templates", "templateId", templates::operations()),
        operation::group(
            "container registry auths",
            "containerRegistryAuthId",
            registries::operations(),
        ),
        operation::group("pods", "podId", pods::operations()),
        operation::group("billing", "id", billing::operations()),
    ];
    groups.into_iter().flatten().collect()
}

const MANNER: RequestRules = RequestRules { refusal: Kind::Invalid, body_max: BODY_MAX };

/// Returns the router of the paths under `/v1`.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let operations = operations();
    let documents = description::documents(&ABOUT, &operations, app.base_url());
    operation::router(operations, MANNER)
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), gate::rest))
        .merge(documents)
}

async fn nowhere() -> Problem {
    Problem::not_found("path")
}

async fn wrong_method() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "method not allowed")
}
