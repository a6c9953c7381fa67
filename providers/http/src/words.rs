//! What an answer says went wrong: the text in its body, and its status in words. Nothing is concluded here.

use serde_json::Value as Json;

use crate::descriptor::model::Api;
use crate::wire::at;

/// The message in an error's body: where the descriptor says, else where APIs put it.
pub(crate) fn message(json: &Json, api: &Api) -> Option<String> {
    declared(json, api)
        .or_else(|| {
            ["message", "error", "detail", "title"].iter().find_map(|key| {
                let value = json.get(key)?;
                text(value).or_else(|| value.get("message").and_then(text))
            })
        })
        .or_else(|| text(json.get("errors")?.get(0)?.get("message")?))
        .or_else(|| text(json))
}

/// The text where the descriptor says that the message of an error stands.
pub(crate) fn declared(json: &Json, api: &Api) -> Option<String> {
    api.message_at.iter().find_map(|path| at(json, path).and_then(text))
}

fn text(json: &Json) -> Option<String> {
    json.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A status, as people know it.
pub(crate) fn status_words(status: u16) -> String {
    let reason = match status {
        300..400 => "a redirect",
        400 => "bad request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        409 => "conflict",
        410 => "gone",
        413 => "too large",
        422 => "unprocessable",
        429 => "too many requests",
        500 => "internal error",
        502 => "bad gateway",
        503 => "unavailable",
        504 => "gateway timeout",
        _ => return status.to_string(),
    };
    format!("{status} ({reason})")
}
