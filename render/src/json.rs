//! JSON text that is also safe to look at.
//!
//! It is the same JSON as that of any other writer, but characters that control a terminal or are invisible
//! are written as `\u` escapes, which JSON allows anywhere in a string. They appear only in strings, because
//! JSON itself has no such characters.

use std::fmt::Write as _;

use serde::Serialize;

use crate::safe;

/// Returns one object on several lines, with a line end.
pub fn pretty(value: &impl Serialize) -> String {
    finish(serde_json::to_string_pretty(value))
}

/// Returns one object on one line, with a line end, even if raw JSON in it has several lines.
pub fn line(value: &impl Serialize) -> String {
    finish(serde_json::to_string(value).map(joined))
}

/// Returns raw JSON without its line ends and indents. In strings these are escaped, so here they only stand
/// between tokens.
fn joined(text: String) -> String {
    if !text.contains(['\n', '\r']) {
        return text;
    }
    let lines = text.split(['\n', '\r']).map(|line| line.trim_matches([' ', '\t']));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn finish(text: Result<String, serde_json::Error>) -> String {
    // The views have only text keys and finite numbers, so writing them cannot fail.
    let mut text = text.expect("views are always writable as JSON");
    // In strings these characters are escaped, so here they are only spaces between the tokens of raw JSON.
    if text.contains(['\t', '\r']) {
        text = text.replace(['\t', '\r'], " ");
    }
    if text.chars().any(|c| c != '\n' && safe::is_hidden(c)) || text.contains("##") {
        text = escaped(&text);
    }
    text.push('\n');
    text
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 64);
    for (index, c) in text.char_indices() {
        let acts = c != '\n' && safe::is_hidden(c);
        if acts || safe::is_ci_command(&text[index..], &safe) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_read_back() {
        let value = serde_json::json!({"a": "\u{9b}x\u{e0041}##[group]\u{202e}\n"});
        let text = line(&value);
        assert_eq!(text, "{\"a\":\"\\u009bx\\udb40\\udc41#\\u0023[group]\\u202e\\n\"}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn raw_json_over_many_lines_is_one() {
        let pretty = "{\r\n\t\"a\": [\n    1.50,\n    \"x\\n  y\"\n  ]\n}";
        let raw: &serde_json::value::RawValue = serde_json::from_str(pretty).unwrap();
        assert_eq!(line(&raw), "{ \"a\": [ 1.50, \"x\\n  y\" ] }\n");
    }
}
