//! The problems of version 2: `application/problem+json` (RFC 9457).

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use serde_json::json;

use crate::description::shape::{Shape, count, may, must, named, object, text, texts};
use crate::problem::Problem;

/// The media type of a problem.
pub(super) const MEDIA: &str = "application/problem+json";

/// Returns the shape of a problem.
pub(super) fn shape() -> Shape {
    let problem = object([
        must("title", text()),
        must("status", count()),
        must("detail", text()),
        may("errors", texts().note("Each single fault of the request")),
    ]);
    named("ErrorResponse", problem)
}

/// Returns an answer in which a problem has the form of version 2. Other answers stay as they are.
pub(crate) fn dressed(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let (mut parts, _) = response.into_parts();
    let title = parts.status.canonical_reason().unwrap_or("Error");
    let mut body =
        json!({ "title": title, "status": problem.status(), "detail": problem.message_two() });
    if !problem.faults.is_empty() {
        body["errors"] = json!(problem.faults);
    }
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, body.to_string().into())
}
