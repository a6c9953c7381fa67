//! The answers of the REST API: JSON, problems, and the changes that quirks make.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::app::App;
use crate::ids;
use crate::problem::{Kind, Problem};
use crate::quirks::Quirk;

/// The fields whose text is `""` instead of null with the quirk `null-as-empty`.
const NULLABLE_TEXTS: &[&str] = &["networkVolumeId", "containerRegistryAuthId", "minCudaVersion"];

/// Returns a 200 with JSON.
pub(crate) fn shown(app: &App, mut value: Value) -> Response {
    polish(app, &mut value);
    json_response(StatusCode::OK, &value)
}

/// Returns the answer of a create: 200 as in the documents.
pub(crate) fn created(app: &App, mut value: Value) -> Response {
    polish(app, &mut value);
    let status =
        if app.quirks.has(Quirk::Created201) { StatusCode::CREATED } else { StatusCode::OK };
    json_response(status, &value)
}

/// Returns the answer of an update.
pub(crate) fn updated(app: &App, value: Value) -> Response {
    if app.quirks.has(Quirk::NoBody) {
        return StatusCode::NO_CONTENT.into_response();
    }
    shown(app, value)
}

/// Returns a list, changed by the quirks.
pub(crate) fn listed(app: &App, mut values: Vec<Value>) -> Response {
    present(app, &mut values);
    shown(app, Value::Array(values))
}

/// Returns the answer of a delete: 204 without a body.
pub(crate) fn deleted() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Replaces an error by an HTML page, with the quirk `html-errors`. This is the last step of a REST
/// answer.
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

/// Returns a problem as JSON: `{"error": …, "status": …}`.
pub(crate) fn plain_problem(problem: &Problem) -> Response {
    let body = json!({ "error": problem.message, "status": problem.status() });
    let status = StatusCode::from_u16(problem.status()).expect("each kind has a valid status");
    let mut response = json_response(status, &body);
    if let Kind::TooMany(after) = problem.kind {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    // An API whose problems have another form makes its answer from this extension.
    response.extensions_mut().insert(problem.clone());
    response
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        plain_problem(&self)
    }
}

/// Returns any JSON with any status.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response {
    let mut response = json_text(value.to_string());
    *response.status_mut() = status;
    response
}

/// Returns a 200 with a text that is JSON already.
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

/// Puts a list into a random order, which is never the original one for two or more elements.
pub(crate) fn shuffle<T>(values: &mut [T]) {
    let mut seed = ids::seed();
    for last in (1..values.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Sattolo's algorithm: no element keeps its place.
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
