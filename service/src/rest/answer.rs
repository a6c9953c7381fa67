//! Answers of the REST API: JSON, problems, and what the quirks make of them.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::app::App;
use crate::ids;
use crate::problem::{Kind, Problem};
use crate::quirks::Quirk;

/// The texts that are `""` instead of null under the quirk.
const NULLABLE_TEXTS: &[&str] = &["networkVolumeId", "containerRegistryAuthId", "minCudaVersion"];

/// 200 with JSON.
pub(crate) fn shown(app: &App, mut value: Value) -> Response {
    polish(app, &mut value);
    json_response(StatusCode::OK, &value)
}

/// The answer of a create: 200 by the documents.
pub(crate) fn created(app: &App, mut value: Value) -> Response {
    polish(app, &mut value);
    let status =
        if app.quirks.has(Quirk::Created201) { StatusCode::CREATED } else { StatusCode::OK };
    json_response(status, &value)
}

/// The answer of an update.
pub(crate) fn updated(app: &App, value: Value) -> Response {
    if app.quirks.has(Quirk::NoBody) {
        return StatusCode::NO_CONTENT.into_response();
    }
    shown(app, value)
}

/// A list, as the quirks show it.
pub(crate) fn listed(app: &App, mut values: Vec<Value>) -> Response {
    present(app, &mut values);
    shown(app, Value::Array(values))
}

/// The answer of a delete: nothing.
pub(crate) fn deleted() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Makes an answer what the quirks say it is. The last thing that happens to a REST answer.
pub(crate) fn disguise(app: &App, response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || !app.quirks.has(Quirk::HtmlErrors) {
        return response;
    }
    let page = format!(
        "<html><head><title>{status}</title></head><body><center><h1>{status}</h1></center>\
         </body></html>\n"
    );
    let (parts, _) = response.into_parts();
    let mut response = Response::from_parts(parts, page.into());
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

/// A problem as JSON: `{"error": …, "status": …}`.
pub(crate) fn plain_problem(problem: &Problem) -> Response {
    let body = json!({ "error": problem.message, "status": problem.status() });
    let status = StatusCode::from_u16(problem.status()).expect("each kind has a valid status");
    let mut response = json_response(status, &body);
    if let Kind::TooMany(after) = problem.kind {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    // An API with problems of another form makes its own of it.
    response.extensions_mut().insert(problem.clone());
    response
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        plain_problem(&self)
    }
}

/// Any JSON with any status.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response {
    let mut response = json_text(value.to_string());
    *response.status_mut() = status;
    response
}

/// 200 with JSON that is text already.
pub(crate) fn json_text(text: String) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Applies the quirks that concern lists.
pub(crate) fn present<T: Clone>(app: &App, values: &mut Vec<T>) {
    if app.quirks.has(Quirk::ListOmitsOne) {
        let number = app.lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number.is_multiple_of(2) {
            values.pop();
        }
    }
    if app.quirks.has(Quirk::ListDoublesOne) {
        values.extend(values.first().cloned());
    }
    if app.quirks.has(Quirk::ShuffledLists) {
        shuffle(values);
    }
}

/// Puts a list into a random order, and never leaves two or more as they were.
pub(crate) fn shuffle<T>(values: &mut [T]) {
    let mut seed = ids::seed();
    for last in (1..values.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Sattolo's way: an element never stays where it was.
        values.swap(last, usize::try_from(seed >> 33).unwrap_or(0) % last);
    }
}

fn polish(app: &App, value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| polish(app, value)),
        Value::Object(fields) if app.quirks.has(Quirk::NullAsEmpty) => {
            for (name, field) in fields.iter_mut() {
                if field.is_null() && NULLABLE_TEXTS.contains(&name.as_str()) {
                    *field = Value::from("");
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shuffle_moves_everything_and_loses_nothing() {
        for length in [2usize, 3, 50] {
            let mut values: Vec<usize> = (0..length).collect();
            super::shuffle(&mut values);
            assert!(values.iter().enumerate().all(|(at, value)| at != *value), "{values:?}");
            values.sort_unstable();
            assert_eq!(values, (0..length).collect::<Vec<_>>());
        }
    }
}
