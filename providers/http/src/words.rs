//! The words of a failure: the text in the body of an answer, and its status. No conclusions are drawn here.

use serde_json::Value as Json;

use crate::descriptor::model::Api;
use crate::wire::at;

/// The keys of an error's message in a body, the most informative first.
const KEYS: [&str; 11] = [
    "message",
    "error",
    "detail",
    "title",
    "error_description",
    "description",
    "reason",
    "error_message",
    "errorMessage",
    "msg",
    "code",
];

/// Returns the message in an error's body: at the place that the descriptor gives, or else at the usual
/// places; none if there is none.
pub(crate) fn message(json: &Json, api: &Api) -> Option<String> {
    declared(json, api)
        .or_else(|| {
            KEYS.iter().find_map(|key| {
                let value = json.get(key)?;
                text(value).or_else(|| inner(value))
            })
        })
        .or_else(|| {
            let first = json.get("errors")?.get(0)?;
            text(first).or_else(|| inner(first))
        })
        .or_else(|| text(json))
}

/// Returns the text at the place that the descriptor gives for the message of an error.
pub(crate) fn declared(json: &Json, api: &Api) -> Option<String> {
    api.message_at.iter().find_map(|path| at(json, path).and_then(text))
}

/// Returns the title of a web page, or its first heading, without markup; none if it has none.
pub(crate) fn page_heading(text: &str) -> Option<&str> {
    let between = |open: &str, close: &str| {
        let small = text.to_ascii_lowercase();
        let start = small.find(open)? + open.len();
        let end = start + small[start..].find(close)?;
        Some(text[start..end].trim()).filter(|words| !words.is_empty() && !words.contains('<'))
    };
    between("<title>", "</title>").or_else(|| between("<h1>", "</h1>"))
}

fn inner(json: &Json) -> Option<String> {
    KEYS.iter().find_map(|key| json.get(key).and_then(text))
}

fn text(json: &Json) -> Option<String> {
    json.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns a status as people know it.
pub(crate) fn status_words(status: u16) -> String {
    let reason = match status {
        300..400 => "a redirect",
        400 => "bad request",
        401 => "unauthorized",
        402 => "payment required",
        403 => "forbidden",
        404 => "not found",
        406 => "not acceptable",
        408 => "request timeout",
        409 => "conflict",
        410 => "gone",
        412 => "precondition failed",
        413 => "too large",
        422 => "unprocessable",
        423 => "locked",
        428 => "precondition required",
        429 => "too many requests",
        451 => "unavailable for legal reasons",
        500 => "internal error",
        502 => "bad gateway",
        503 => "unavailable",
        504 => "gateway timeout",
        _ => return status.to_string(),
    };
    format!("{status} ({reason})")
}
