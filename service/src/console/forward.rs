//! The page's calls of the APIs, passed on with the key of the session.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, SET_COOKIE};
use axum::response::Response;
use hyper::service::Service as _;

use super::Shared;
use super::session::{SignedIn, bearer};
use crate::problem::Problem;

/// The prefix of the paths of such calls: `/console/api/v1/endpoints` stands for `/v1/endpoints`.
pub(super) const PREFIX: &str = "/console/api";

/// The headers of a request that are passed on.
const PASSED: [HeaderName; 3] = [ACCEPT, CONTENT_TYPE, HeaderName::from_static("last-event-id")];

/// `ANY /console/api/…`
pub(super) async fn pass(
    State(console): Shared,
    Extension(signed_in): Extension<SignedIn>,
    request: Request,
) -> Result<Response, Problem> {
    let nowhere = || Problem::not_found("path");
    let whole = request.uri().path_and_query().map_or("", |path| path.as_str());
    let path = whole.strip_prefix(PREFIX).ok_or_else(nowhere)?;
    if !["/v1/", "/v2/", "/lb/"].iter().any(|version| path.starts_with(version)) {
        return Err(nowhere());
    }
    let mut passed = Request::builder().method(request.method().clone()).uri(path);
    for name in PASSED {
        if let Some(value) = request.headers().get(&name) {
            passed = passed.header(name, value.clone());
        }
    }
    let key = bearer(&signed_in.key).ok_or_else(Problem::unauthorized)?;
    let body: Body = request.into_body();
    let passed = passed.header(AUTHORIZATION, key).body(body).map_err(|_| nowhere())?;
    let Ok(mut response) = console.api.call(passed).await;
    if response.status() == StatusCode::UNAUTHORIZED {
        // The session is open, so its key is known; it lacks the right. The status 401 would end
        // the session in the page.
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    // A worker of a load balancing endpoint must not set a cookie of the console.
    response.headers_mut().remove(SET_COOKIE);
    Ok(response)
}
