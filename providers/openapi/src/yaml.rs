//! YAML texts as JSON.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value as Json};

use crate::refusal::{Refusal, not_yaml};

/// The deepest nesting of lists and maps.
const DEPTH_MAX: usize = 128;
/// The most values that aliases may add, so that a few lines do not grow without end.
const COPIES_MAX: usize = 1_000_000;

/// Reads a YAML text.
pub(crate) fn read(text: &str) -> Result<Json, Refusal> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, place) =
            event.map_err(|error| not_yaml(error.marker().line(), error.info()))?;
        builder.take(event).map_err(|reason| not_yaml(place.start.line(), reason))?;
    }
    Ok(builder.document.unwrap_or_default())
}

/// A list or a map that is not complete.
struct Open {
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Json>),
    Map(Map<String, Json>, Option<String>),
}

/// Builds values from the events of the parser.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Json>,
    copies: usize,
    document: Option<Json>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_key = matches!(
                    self.open.last().map(|open| &open.content),
                    Some(Content::Map(_, None))
                );
                let is_plain = style == ScalarStyle::Plain && !is_key;
                let value = if is_plain { plain(&text) } else { text.as_ref().into() };
                self.complete(value, anchor)
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).ok_or("an alias refers to nothing")?.clone();
                self.copies = self.copies.saturating_add(size(&value));
                if self.copies > COPIES_MAX {
                    return Err("its aliases stand for too much");
                }
                self.complete(value, 0)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(anchor, Content::Map(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, content }) = self.open.pop() else { return Ok(()) };
                let value = match content {
                    Content::List(items) => Json::Array(items),
                    Content::Map(entries, _) => Json::Object(entries),
                };
                self.complete(value, anchor)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, content: Content) -> Result<(), &'static str> {
        if self.open.len() == DEPTH_MAX {
            return Err("lists and maps are nested too deep");
        }
        self.open.push(Open { anchor, content });
        Ok(())
    }

    fn complete(&mut self, value: Json, anchor: usize) -> Result<(), &'static str> {
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None if self.document.is_some() => return Err("there is more than one document in it"),
            None => self.document = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Map(entries, key)) => match (key.take(), value) {
                (Some(key), Json::Object(merged)) if key == "<<" => {
                    for (name, value) in merged {
                        entries.entry(name).or_insert(value);
                    }
                }
                (Some(key), value) => {
                    entries.insert(key, value);
                }
                (None, Json::String(name)) => *key = Some(name),
                (None, _) => return Err("a key is no text"),
            },
        }
        Ok(())
    }
}

/// Returns the number of values in a value.
fn size(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Json::Object(entries) => 1 + entries.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Returns the value of a scalar without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> Json {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Json::Null,
        "true" | "True" | "TRUE" => return Json::Bool(true),
        "false" | "False" | "FALSE" => return Json::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
        return text.into();
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| text.into(), Json::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_keys_and_aliases() {
        let text =
            "a: &x [1, -2, 0.5, 1e3, ~, true, 'true', 1.2.3, 2020-01-01]\nb: *x\n200: {c: ''}\n";
        let list = json!([1, -2, 0.5, 1000.0, null, true, "true", "1.2.3", "2020-01-01"]);
        assert_eq!(read(text).unwrap(), json!({"a": list, "b": list, "200": {"c": ""}}));
        assert_eq!(read("a: &x {b: 1}\nc: {<<: *x, d: 2}").unwrap()["c"], json!({"b": 1, "d": 2}));
        assert_eq!(read("").unwrap(), Json::Null);
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            let items = vec![below; 10].join(", ");
            text.extend([format!("a{level}: &a{level} [{items}]\n")]);
        }
        assert!(read(&text).unwrap_err().message.contains("its aliases stand for too much"));
        let deep = "[".repeat(500);
        let message = read(&deep).unwrap_err().message;
        assert!(message.starts_with("the document is no YAML: line 1"), "{message}");
    }
}
