//! Bodies: the values that a phase sends, as the bytes of a request.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::template::query_pair;
use crate::wire::{Unwritable, Wire};

/// The form of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// An object.
    #[default]
    Json,
    /// An object that is merged into the existing one (RFC 7396).
    MergePatch,
    /// A list of changes (RFC 6902).
    JsonPatch,
    /// Pairs, as a form of HTML sends them.
    Form,
    /// The one text that is sent, without a change.
    Text,
    /// The one list that is sent: one line of JSON for each item.
    Lines,
    /// An object as YAML. JSON is YAML, too.
    Yaml,
    /// A part for each entry, as HTML forms send files (RFC 7578): a text without a change, any other value
    /// as JSON.
    Multipart,
    /// The bytes that the one text holds in base64.
    Bytes,
}

/// A body, ready to send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// The header `Content-Type`, for the case that the descriptor gives none.
    pub(crate) content_type: String,
}

impl BodyForm {
    /// The words that descriptors have for the forms.
    pub(crate) const WORDS: [(&'static str, Self); 9] = [
        ("json", Self::Json),
        ("merge_patch", Self::MergePatch),
        ("json_patch", Self::JsonPatch),
        ("form", Self::Form),
        ("text", Self::Text),
        ("ndjson", Self::Lines),
        ("yaml", Self::Yaml),
        ("multipart", Self::Multipart),
        ("bytes", Self::Bytes),
    ];

    /// The type of a body, without the boundary of parts.
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Form => "application/x-www-form-urlencoded",
            Self::Text => "text/plain; charset=utf-8",
            Self::Lines => "application/x-ndjson",
            Self::Yaml => "application/yaml",
            Self::Multipart => "multipart/form-data",
            Self::Bytes => "application/octet-stream",
        }
    }

    /// Writes a body. If the form is a list of changes, `wire` is that list.
    pub(crate) fn write(self, wire: &Wire) -> Result<Body, Unwritable> {
        let content_type = self.content_type().to_owned();
        let bytes = match (self, wire) {
            (Self::Form, wire) => {
                let mut pairs = Vec::new();
                add_pairs(&mut pairs, "", wire);
                pairs.join("&").into_bytes()
            }
            (Self::Multipart, Wire::Object(entries)) => return Ok(multipart(entries)),
            (Self::Text, wire) => the_text(wire)?.as_bytes().to_vec(),
            (Self::Bytes, wire) => STANDARD
                .decode(the_text(wire)?)
                .map_err(|_| Unwritable::Shape("a text in base64".to_owned()))?,
            (Self::Lines, Wire::Object(entries)) => match entries.values().next() {
                Some(Wire::List(items)) => {
                    let lines = items.iter().map(|item| item.to_json().to_string() + "\n");
                    lines.collect::<String>().into_bytes()
                }
                None | Some(Wire::Null) => Vec::new(),
                Some(_) => return Err(Unwritable::Shape("a list".to_owned())),
            },
            (_, wire) => wire.to_json().to_string().into_bytes(),
        };
        Ok(Body { bytes, content_type })
    }
}

/// Returns the one text of an object; an empty text if it has none.
fn the_text(wire: &Wire) -> Result<&str, Unwritable> {
    let Wire::Object(entries) = wire else { return Err(Unwritable::Shape("a text".to_owned())) };
    match entries.values().next() {
        Some(Wire::Text(text)) => Ok(text),
        None | Some(Wire::Null) => Ok(""),
        Some(_) => Err(Unwritable::Shape("a text".to_owned())),
    }
}

/// Returns the parts of an object, except null ones. The boundary is a line that appears in none of them.
fn multipart(entries: &BTreeMap<String, Wire>) -> Body {
    let part = |(name, value): (&String, &Wire)| {
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let head = format!("Content-Disposition: form-data; name=\"{name}\"\r\n");
        match value {
            Wire::Null => None,
            Wire::Text(text) => Some(format!("{head}\r\n{text}\r\n")),
            value => {
                Some(format!("{head}Content-Type: application/json\r\n\r\n{}\r\n", value.to_json()))
            }
        }
    };
    let parts: Vec<String> = entries.iter().filter_map(part).collect();
    let is_free = |boundary: &String| !parts.iter().any(|part| part.contains(boundary.as_str()));
    let boundary = (0..=u32::MAX).map(|number| format!("plumb-part-{number}")).find(is_free);
    let boundary = boundary.unwrap_or_default();
    let begun = parts.iter().map(|part| format!("--{boundary}\r\n{part}"));
    let text = begun.chain([format!("--{boundary}--\r\n")]).collect::<String>();
    let content_type = format!("{}; boundary={boundary}", BodyForm::Multipart.content_type());
    Body { bytes: text.into_bytes(), content_type }
}

/// Returns one change of an object: it sets the value at a path, or removes it if `value` is null.
pub(crate) fn change(path: &[String], value: &Wire) -> Wire {
    let mut pointer = String::new();
    for key in path {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    Wire::from_json(&match value {
        Wire::Null => json!({ "op": "remove", "path": pointer }),
        value => json!({ "op": "add", "path": pointer, "value": value.to_json() }),
    })
}

/// Adds the pairs of a value: `a=1`, `a[b]=1` for a value in an object, and `a=1&a=2` for a list.
fn add_pairs(pairs: &mut Vec<String>, name: &str, wire: &Wire) {
    match wire {
        Wire::Object(entries) => {
            for (key, value) in entries {
                let name = if name.is_empty() { key.clone() } else { format!("{name}[{key}]") };
                add_pairs(pairs, &name, value);
            }
        }
        Wire::List(items) => items.iter().for_each(|item| add_pairs(pairs, name, item)),
        Wire::Null => pairs.push(query_pair(name, "")),
        Wire::Bool(value) => pairs.push(query_pair(name, &value.to_string())),
        Wire::Number(number) => pairs.push(query_pair(name, &number.to_string())),
        Wire::Text(text) | Wire::Enum(text) => pairs.push(query_pair(name, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: BodyForm, json: &serde_json::Value) -> Result<String, Unwritable> {
        form.write(&Wire::from_json(json)).map(|body| String::from_utf8(body.bytes).unwrap())
    }

    #[test]
    fn forms() {
        let object = json!({"a": "x y&z", "b": {"c": 1, "d": [true, null]}, "e": []});
        for (form, text) in [
            (BodyForm::Json, r#"{"a":"x y&z","b":{"c":1,"d":[true,null]},"e":[]}"#),
            (BodyForm::Form, "a=x%20y%26z&b%5Bc%5D=1&b%5Bd%5D=true&b%5Bd%5D="),
        ] {
            assert_eq!(written(form, &object), Ok(text.to_owned()));
        }
        assert_eq!(written(BodyForm::Text, &json!({"a": "x\ny"})), Ok("x\ny".to_owned()));
        assert_eq!(written(BodyForm::Text, &json!({"a": null})), Ok(String::new()));
        assert!(written(BodyForm::Text, &json!({"a": 1})).is_err());
        let lines = json!({"a": [{"b": "x\ny"}, 2]});
        assert_eq!(written(BodyForm::Lines, &lines), Ok("{\"b\":\"x\\ny\"}\n2\n".to_owned()));
        assert_eq!(written(BodyForm::Lines, &json!({"a": []})), Ok(String::new()));
        assert!(written(BodyForm::Lines, &json!({"a": {}})).is_err());
        assert_eq!(written(BodyForm::Bytes, &json!({"a": "aGk="})), Ok("hi".to_owned()));
        assert!(written(BodyForm::Bytes, &json!({"a": "hi!"})).is_err());
        assert_eq!(written(BodyForm::Yaml, &json!({"a": [1]})), Ok("{\"a\":[1]}".to_owned()));
    }

    /// The boundary appears in none of the parts.
    #[test]
    fn parts() {
        let object = json!({"a\"": "x\n--plumb-part-0", "b": {"c": 1}, "d": null});
        let body = BodyForm::Multipart.write(&Wire::from_json(&object)).unwrap();
        assert_eq!(body.content_type, "multipart/form-data; boundary=plumb-part-1");
        assert_eq!(
            String::from_utf8(body.bytes).unwrap(),
            "--plumb-part-1\r\nContent-Disposition: form-data; name=\"a%22\"\r\n\r\nx\n--plumb-part-0\r\n\
             --plumb-part-1\r\nContent-Disposition: form-data; name=\"b\"\r\n\
             Content-Type: application/json\r\n\r\n{\"c\":1}\r\n--plumb-part-1--\r\n"
        );
    }

    #[test]
    fn changes_of_an_object() {
        let path = ["a/b".to_owned(), "~".to_owned()];
        for (value, shown) in [
            (json!(1), json!({"op": "add", "path": "/a~1b/~0", "value": 1})),
            (json!(null), json!({"op": "remove", "path": "/a~1b/~0"})),
        ] {
            assert_eq!(change(&path, &Wire::from_json(&value)).to_json(), shown);
        }
    }
}
