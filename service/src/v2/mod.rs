//! Version 2 of the REST management API, under `/v2`. It has the same objects as version 1: an
//! object made in one version is shown in the other. The job API has the same prefix, with the id
//! of an endpoint in the place of the name of a group. No id of an endpoint equals the name of a
//! group.

mod account;
mod billing;
mod catalog;
mod container;
mod elsewhere;
mod endpoints;
mod logs;
mod pods;
pub(crate) mod problem;
mod registries;
mod tags;
mod templates;
mod volumes;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::any;
use serde_json::{Value, json};

use crate::app::App;
use crate::description::operation::{self, Operation, RequestRules};
use crate::description::{self, ApiInfo};
use crate::gate;
use crate::problem::{Kind, Problem};
use crate::rest::answer;
use elsewhere::nowhere;

/// The description of the API.
const ABOUT: ApiInfo = ApiInfo {
    title: "Serverless compute service, REST API",
    version: "2.0.0",
    summary: "Endpoints, pods, templates, network volumes, registries, secrets, tags, the catalog and costs.",
    prefix: "/v2",
    problems: &[
        (400, "The request breaks a rule"),
        (401, "The key is missing or wrong"),
        (403, "The key does not allow it"),
        (404, "There is no such object"),
        (409, "The name is taken, or the object is in another condition"),
        (413, "The body is too large"),
        (422, "The request is not as described"),
        (429, "Too many requests"),
    ],
    problem: problem::shape,
    problem_media: problem::MEDIA,
};

/// The most bytes of a body, also after the settings of a template have been added.
const BODY_MAX: usize = 102_400;

const MANNER: RequestRules = RequestRules { refusal: Kind::Unprocessable, body_max: BODY_MAX };

/// The groups of the real service that this service does not have, each with the explanation in the
/// answer.
const ABSENT: &[(&str, &str)] = &[
    ("clusters", "This service has no clusters: all it has runs on one machine."),
    ("sandboxes", "This service has no sandboxes."),
    ("cost-centers", "This service has no cost centers: it has one account."),
];

fn operations() -> Vec<Operation> {
    let groups = [
        operation::group("Serverless", "id", endpoints::operations()),
        operation::group("Serverless", "id", workers::operations()),
        operation::group("Pods", "id", pods::operations()),
        operation::group("Templates", "id", templates::operations()),
        operation::group("Network Volumes", "id", volumes::operations()),
        operation::group("Registries", "id", registries::operations()),
        operation::group("Account", "id", account::operations()),
        operation::group("Tags", "id", tags::operations()),
        operation::group("Catalog", "id", catalog::operations()),
        operation::group("Billing", "id", billing::operations()),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns the router of the paths under `/v2`, without those of the job API.
pub(crate) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let operations = operations();
    let documents = description::documents(&ABOUT, &operations, app.base_url());
    let mut router = operation::router(operations, MANNER).route("/", any(nowhere));
    for &(group, why) in ABSENT {
        let absent = move || async move { Problem::new(Kind::NotImplemented, why) };
        router = router
            .route(&format!("/{group}"), any(absent))
            .route(&format!("/{group}/{{*rest}}"), any(absent));
    }
    router
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), gate::v2))
        .merge(documents)
}

/// Adds to the job API the answer at paths below the groups of version 2 that are not an operation.
pub(crate) fn beside(app: &Arc<App>, jobs: Router<Arc<App>>) -> Router<Arc<App>> {
    elsewhere::layer(app, jobs, groups(&operations()))
}

/// Returns the first parts of the paths of operations.
fn groups(operations: &[Operation]) -> BTreeSet<&'static str> {
    operations.iter().filter_map(|operation| operation.path().split('/').nth(1)).collect()
}

async fn wrong_method() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "The requested method is not allowed for this path.")
}

/// Returns the answer of a create.
fn created(value: &Value) -> Response {
    answer::json_response(axum::http::StatusCode::CREATED, value)
}

/// Adds the fields of the second object to the first one.
fn extend(shown: &mut Value, more: Value) {
    if let (Some(shown), Value::Object(more)) = (shown.as_object_mut(), more) {
        shown.extend(more);
    }
}

/// Returns a list in a field of this name.
fn listed(app: &App, name: &str, mut values: Vec<Value>) -> Response {
    answer::present(app, &mut values);
    answer::shown(app, json!({ name: values }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No name of a group can be the id of an endpoint; requests to such an endpoint would get the
    /// answers of the group.
    #[test]
    fn no_endpoint_has_the_name_of_a_group() {
        let absent = ABSENT.iter().map(|(group, _)| *group);
        for group in groups(&operations()).into_iter().chain(absent).chain(["openapi.json", "docs"])
        {
            assert!(!crate::ids::is_long(group), "{group}");
        }
    }
}
