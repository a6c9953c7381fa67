//! YAML texts. Plain scalars have the meaning of YAML 1.2, and the words `yes`, `no`, `on` and `off` are
//! booleans as in YAML 1.1; a time stays a text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::Fault;
use super::texts::{bounded, text};
use crate::address::Name;
use crate::expression::text::text_of;
use crate::value::{Attributes, Value};

type Out = Result<Value, Fault>;

/// The deepest nesting of lists and maps.
const DEPTH_MAX: usize = 64;
/// The bytes that a value counts in addition to its text.
const VALUE_BYTES: usize = 16;

pub(super) fn decode(a: &[Value]) -> Out {
    decoded(text(a, 0)).map_err(|fault| fault.of_secret("this is no YAML text that can be read"))
}

fn decoded(text: &str) -> Out {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        // The parser's message would show parts of the text.
        let (event, place) =
            event.map_err(|error| wrong(error.marker().line(), "this is no YAML"))?;
        builder.take(event).map_err(|message| wrong(place.start.line(), message))?;
    }
    builder.documents.pop().ok_or_else(|| Fault::new(0, "this text holds no YAML value"))
}

fn wrong(line: usize, message: &str) -> Fault {
    Fault::new(0, format!("{message}: see line {line} of the text"))
}

/// A value, with its size after every alias in it is replaced by a copy.
#[derive(Clone)]
struct Sized {
    value: Value,
    bytes: usize,
}

/// A list or a map that is not complete.
struct Open {
    anchor: usize,
    bytes: usize,
    content: Content,
}

enum Content {
    List(Vec<Value>),
    Map { entries: BTreeMap<Name, Value>, merged: Vec<Value>, key: Option<Key> },
}

enum Key {
    Name(Name),
    /// `<<`: the following value gives entries unless the map has them already.
    Merge,
}

/// Builds values from the events of the parser.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Sized>,
    documents: Vec<Value>,
}

type Taken = Result<(), &'static str>;

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Taken {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_merge = style == ScalarStyle::Plain && tag.is_none() && text == "<<";
                if is_merge && let Some(key) = self.awaited_key() {
                    *key = Some(Key::Merge);
                    return Ok(());
                }
                let value = scalar(&text, style, tag.as_deref())?;
                let bytes = VALUE_BYTES + text.len();
                self.complete(Sized { value, bytes }, anchor)
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                self.complete(value.ok_or("an alias refers to what stands around it")?, 0)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(anchor, tag, "seq", Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let (entries, merged) = (BTreeMap::new(), Vec::new());
                self.begin(anchor, tag, "map", Content::Map { entries, merged, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, bytes, content }) = self.open.pop() else { return Ok(()) };
                self.complete(Sized { value: closed(content)?, bytes }, anchor)
            }
            _ => Ok(()),
        }
    }

    /// Returns the place of the next key; none outside a map.
    fn awaited_key(&mut self) -> Option<&mut Option<Key>> {
        match self.open.last_mut().map(|open| &mut open.content) {
            Some(Content::Map { key: key @ None, .. }) => Some(key),
            _ => None,
        }
    }

    fn begin(
        &mut self,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        kind: &str,
        content: Content,
    ) -> Taken {
        if tag.is_some_and(|tag| !(tag.is_yaml_core_schema() && tag.suffix == kind)) {
            return Err("there is a tag that stands for no value here");
        }
        if self.open.len() == DEPTH_MAX {
            return Err("lists and maps are nested more than 64 levels deep");
        }
        self.open.push(Open { anchor, bytes: VALUE_BYTES, content });
        Ok(())
    }

    fn complete(&mut self, sized: Sized, anchor: usize) -> Taken {
        if anchor > 0 {
            self.anchors.insert(anchor, sized.clone());
        }
        let Sized { value, bytes } = sized;
        let Some(open) = self.open.last_mut() else {
            if !self.documents.is_empty() {
                return Err("there is more than one document in it");
            }
            self.documents.push(value);
            return Ok(());
        };
        open.bytes += bytes;
        if bounded(0, Some(open.bytes)).is_err() {
            return Err("it becomes too large with its aliases written out");
        }
        match &mut open.content {
            Content::List(items) => items.push(value),
            Content::Map { entries, merged, key } => match key.take() {
                None => *key = Some(Key::Name(name_of(&value)?)),
                Some(Key::Merge) => merged.push(value),
                Some(Key::Name(name)) => drop(entries.insert(name, value)),
            },
        }
        Ok(())
    }
}

fn name_of(key: &Value) -> Result<Name, &'static str> {
    text_of(key).map(Name::from).ok_or("a key is no text")
}

fn closed(content: Content) -> Result<Value, &'static str> {
    let (mut entries, merged) = match content {
        Content::List(items) => return Ok(Value::list(items)),
        Content::Map { entries, merged, .. } => (entries, merged),
    };
    for value in &merged {
        // In a list of maps, the earlier ones take precedence.
        for map in value.as_items().unwrap_or(std::slice::from_ref(value)) {
            let map: &Attributes = map.as_map().ok_or("what `<<` merges is no map")?;
            for (name, value) in map {
                entries.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    Ok(Value::map(entries.into_iter().collect()))
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, &'static str> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text) } else { Ok(Value::string(text)) };
    };
    let value = match (tag.is_yaml_core_schema(), &*tag.suffix) {
        (true, "str") => return Ok(Value::string(text)),
        (true, "int" | "float" | "bool" | "null") => plain(text)?,
        _ => return Err("there is a tag that stands for no value here"),
    };
    let fits = match &*tag.suffix {
        "int" => matches!(value, Value::Integer(_)),
        "float" => matches!(value, Value::Integer(_) | Value::Float(_)),
        "bool" => matches!(value, Value::Bool(_)),
        _ => value.is_null(),
    };
    if fits { Ok(value) } else { Err("a value is not what its tag says") }
}

/// Returns the value of a scalar without quotes.
fn plain(text: &str) -> Result<Value, &'static str> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF"
        | ".nan" | ".NaN" | ".NAN" => return Err("there is a number without end, or none at all"),
        _ => number(text)?.unwrap_or_else(|| Value::string(text)),
    })
}

fn number(text: &str) -> Result<Option<Value>, &'static str> {
    for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
            let number = is_number.then(|| i64::from_str_radix(digits, base));
            return number.transpose().map(|it| it.map(Value::Integer)).map_err(|_| TOO_LARGE);
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = [whole, fraction, exponent].into_iter().all(all_digits)
        && !(whole.is_empty() && fraction.is_empty())
        && !exponent.is_empty();
    if !is_number {
        return Ok(None);
    }
    if mantissa == digits && !mantissa.contains('.') {
        return text.parse().map(|number| Some(Value::Integer(number))).map_err(|_| TOO_LARGE);
    }
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(|number| Some(Value::Float(number))).ok_or(TOO_LARGE)
}

const TOO_LARGE: &str = "a number in it is too large";

pub(super) fn encode(a: &[Value]) -> Out {
    let mut text = String::new();
    write(&a[0], 0, Place::Top, &mut text)
        .map_err(|fault| fault.of_secret("the text is too long"))?;
    Ok(Value::string(text))
}

/// The place of a value in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    /// After `key:`.
    Key,
    /// After `-`.
    Dash,
}

/// Writes a value with the blank or the line break before it.
fn write(value: &Value, indent: usize, place: Place, text: &mut String) -> Result<(), Fault> {
    bounded(0, Some(text.len()))?;
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            for (index, (name, value)) in entries.iter().enumerate() {
                begin_line(index, indent, place, text);
                text.push_str(&quoted(name));
                text.push(':');
                // The dashes of a list are below its key.
                let is_list = matches!(value, Value::List(_) | Value::Set(_));
                write(value, if is_list { indent } else { indent + 2 }, Place::Key, text)?;
            }
        }
        Value::List(items) | Value::Set(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                begin_line(index, indent, place, text);
                text.push('-');
                write(item, indent + 2, Place::Dash, text)?;
            }
        }
        Value::String(string) if is_block(string) => {
            text.push_str(if place == Place::Top { "" } else { " " });
            text.push_str(if string.ends_with('\n') { "|" } else { "|-" });
            text.push('\n');
            for line in string.lines() {
                text.push_str(&" ".repeat(if line.is_empty() { 0 } else { indent.max(2) }));
                text.push_str(line);
                text.push('\n');
            }
        }
        scalar => {
            text.push_str(if place == Place::Top { "" } else { " " });
            text.push_str(&match scalar {
                Value::String(string) => quoted(string),
                other => {
                    text_of(other).unwrap_or_else(|| crate::stored::to_json(other).to_string())
                }
            });
            text.push('\n');
        }
    }
    Ok(())
}

/// Begins the line of an entry; the first entry after a dash stays on its line.
fn begin_line(index: usize, indent: usize, place: Place, text: &mut String) {
    match (index, place) {
        (0, Place::Dash) => text.push(' '),
        (0, Place::Key) => {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
        }
        _ => text.push_str(&" ".repeat(indent)),
    }
}

/// Returns true if a text is written line by line: it has several lines, and nothing that must be escaped.
fn is_block(text: &str) -> bool {
    let plain = |c: char| {
        c == '\n'
            || c == '\t'
            || !c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(plain)
        && text.lines().all(|line| !line.ends_with([' ', '\t']))
}

/// Returns a text in double quotes; YAML has the same escapes as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
