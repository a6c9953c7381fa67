//! A JSON reader that accepts single unreadable values.
//!
//! A service that truncates a name inside an emoji writes half of it (`"\ud83d"`), which a strict reader
//! refuses. The same is true for bytes that are not Unicode and for numbers out of range. Such a value
//! belongs to one object of a list, which may not even be Plumb's, and all other objects must stay readable.
//! So a mark replaces the value, and the code that needs it reports it. Valid JSON is read once, strictly.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value as Json;
use serde_json::value::RawValue;

/// The marks in place of values, and the reasons that these cannot be read. If a server itself sends such a
/// text, only that object cannot be read.
const MARKS: [(&str, &str); 3] = [
    (NO_TEXT, "it is a text that is no Unicode"),
    (NO_NUMBER, "it is a number that is too large"),
    (TOO_DEEP, "it is nested too deeply"),
];
const NO_TEXT: &str = "\0plumb: no text";
const NO_NUMBER: &str = "\0plumb: no number";
const TOO_DEEP: &str = "\0plumb: too deep";
/// The depth to which an unreadable value is searched. Each level reads the text once more.
const DEPTH_MAX: usize = 12;

/// Reads a body. The error is that of the strict reader.
pub(crate) fn read(body: &[u8]) -> serde_json::Result<Json> {
    let body = without_bom(body);
    serde_json::from_slice(body).or_else(|error| {
        let text = unicode(body);
        // A text that does not have the form of JSON is not read in parts.
        serde_json::from_str::<&RawValue>(&text)
            .map_or(Err(error), |raw| Ok(in_parts(raw.get(), DEPTH_MAX)))
    })
}

/// Returns a body without a byte order mark.
pub(crate) fn without_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Returns the reason that a value cannot be read if it contains a mark; else none.
pub(crate) fn unreadable(json: &Json) -> Option<&'static str> {
    match json {
        Json::String(text) if text.starts_with('\0') => {
            MARKS.iter().find(|(mark, _)| mark == text).map(|(_, why)| *why)
        }
        Json::Array(items) => items.iter().find_map(unreadable),
        Json::Object(entries) => entries.values().find_map(unreadable),
        _ => None,
    }
}

/// Returns the body as a text. Bytes that are not Unicode are replaced by an escape that is not Unicode
/// either.
fn unicode(body: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(body) {
        return text.into();
    }
    let mut text = String::with_capacity(body.len());
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push_str("\\ud800");
        }
    }
    text.into()
}

/// Reads a value in parts, with marks for those that cannot be read.
fn in_parts(text: &str, depth: usize) -> Json {
    let part = |raw: &RawValue| {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| in_parts(raw.get(), depth - 1))
    };
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth == 0 => TOO_DEEP.into(),
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => items.into_iter().map(part).collect(),
            Err(_) => TOO_DEEP.into(),
        },
        Some(b'{') => match serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
            Ok(entries) => entries.into_iter().map(|(key, raw)| (key, part(raw))).collect(),
            Err(_) => NO_TEXT.into(),
        },
        Some(b'"') => NO_TEXT.into(),
        _ => NO_NUMBER.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_cannot_be_read_are_marked() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (value, mark, why) in [
            (r#""\ud83d""#.as_bytes(), NO_TEXT, "it is a text that is no Unicode"),
            (b"\"\xff\xfe\"", NO_TEXT, "it is a text that is no Unicode"),
            (br#"{"\ud83d": 1}"#, NO_TEXT, "it is a text that is no Unicode"),
            (b"1e400", NO_NUMBER, "it is a number that is too large"),
        ] {
            let body = [br#"{"data": [{"id": 1}, {"id": 2, "x": "#, value, b"}], \"next\": 7}"];
            let read = read(&body.concat()).unwrap();
            let marked = json!({"id": 2, "x": mark});
            assert_eq!(read, json!({"data": [{"id": 1}, marked], "next": 7}));
            assert_eq!(unreadable(&read), Some(why));
            assert_eq!(unreadable(&read["data"][0]), None);
        }
        let read = read(format!(r#"[{{"id": 1, "x": {deep}}}]"#).as_bytes()).unwrap();
        assert_eq!(
            (&read[0]["id"], unreadable(&read)),
            (&json!(1), Some("it is nested too deeply"))
        );
    }

    #[test]
    fn a_body_that_is_no_json_is_refused() {
        for body in ["", "{", "[1, 2", "[1] 2", "yes", r#"{"a": "\x"}"#, "[01]"] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(read(b"\xef\xbb\xbf[1]").unwrap(), json!([1]));
        assert!(read(b"\xff[1]").is_err());
    }

    #[test]
    fn a_flood_of_brackets_is_no_work() {
        let begun = std::time::Instant::now();
        let body = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert_eq!(unreadable(&read(body.as_bytes()).unwrap()), Some("it is nested too deeply"));
        // A search that looks at them again and again would take minutes on any machine.
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{:?}", begun.elapsed());
    }
}
