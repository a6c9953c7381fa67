//! Codecs: the forms of single attributes on the wire, in addition to their types.
//!
//! Each codec changes a written value in one way and undoes that when reading; an attribute has a list of
//! codecs. A codec passes a value that it does not recognise on, and the later conversion to the attribute's
//! type reports the mistake.

use serde_json::Value as Json;

use crate::wire::{Unwritable, Wire};

/// One change of the form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Codec {
    /// A list of texts becomes one text, its items joined by a separator.
    Join(String),
    /// A text with several items becomes a list of texts.
    Unjoin(String),
    /// A map becomes a list of objects with a key and a value under these names.
    Pairs(String, String),
    /// A value becomes its JSON text.
    JsonText,
    /// A text becomes a name of a GraphQL enum.
    Enum,
    /// Null is written as this value, and this value is read as null.
    NullIs(Json),
    /// This value is read as null, and null is written as null.
    ReadsAsNull(Json),
    /// Single values have other forms on the wire: pairs of the wire's and the attribute's form, in order of
    /// preference.
    Values(Vec<(Json, Json)>),
    /// Texts that a server appends are removed when reading.
    Suffixes(Vec<String>),
    /// Keys of a map that the spec does not manage are left out when reading.
    IgnoreKeys(Vec<String>),
    /// Each item of a list becomes an object with the item under this name.
    Wrap(String),
    /// A number becomes a text.
    NumberText,
    /// One pipeline for writing and another one for reading.
    Split { write: Vec<Codec>, read: Vec<Codec> },
}

/// Writes: applies the codecs in order.
pub(crate) fn write(codecs: &[Codec], value: Wire) -> Result<Wire, Unwritable> {
    codecs.iter().try_fold(value, |value, codec| codec.write(value))
}

/// Reads: undoes the codecs, the last first.
pub(crate) fn read(codecs: &[Codec], value: Json) -> Json {
    codecs.iter().rev().fold(value, |value, codec| codec.read(value))
}

/// Returns the values of an attribute that are written without a change and read back as null.
pub(crate) fn nulls(codecs: &[Codec]) -> Vec<Json> {
    let words = |(index, codec): (usize, &Codec)| {
        let before = &codecs[..index];
        codec.nulls().into_iter().map(|word| read(before, word)).collect::<Vec<_>>()
    };
    let mut found: Vec<Json> = codecs.iter().enumerate().flat_map(words).collect();
    found.retain(|word| !word.is_null());
    found
}

impl Codec {
    /// Returns the texts that mean null on the wire, if this codec is the only one of a value.
    fn nulls(&self) -> Vec<Json> {
        match self {
            Self::NullIs(word) | Self::ReadsAsNull(word) => vec![word.clone()],
            Self::Split { read, .. } => nulls(read),
            Self::Values(pairs) => {
                let null = pairs.iter().filter(|(_, attribute)| attribute.is_null());
                null.map(|(wire, _)| wire.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn write(&self, value: Wire) -> Result<Wire, Unwritable> {
        let shape = |what: &str| Err(Unwritable::Shape(what.to_owned()));
        Ok(match (self, value) {
            (Self::NullIs(json), Wire::Null) => Wire::from_json(json),
            (Self::Split { write: codecs, .. }, value) => write(codecs, value)?,
            (_, Wire::Null) => Wire::Null,
            (Self::Join(separator), Wire::List(items)) => join(&items, separator)?,
            (Self::Unjoin(separator), Wire::Text(text)) => {
                Wire::from_json(&split(&text, separator))
            }
            (Self::Pairs(key, value), Wire::Object(entries)) => Wire::List(
                entries
                    .into_iter()
                    .map(|(k, v)| {
                        Wire::Object([(key.clone(), Wire::Text(k)), (value.clone(), v)].into())
                    })
                    .collect(),
            ),
            (Self::JsonText, value) => Wire::Text(value.to_json().to_string()),
            (Self::Enum, Wire::Text(text)) if is_graphql_name(&text) => Wire::Enum(text),
            (Self::Enum, _) => return shape("the name of an enum value"),
            (Self::Values(pairs), value) => {
                let json = value.to_json();
                let pair = pairs.iter().find(|(_, attribute)| *attribute == json);
                pair.map_or(value, |(wire, _)| Wire::from_json(wire))
            }
            (Self::Wrap(name), Wire::List(items)) => Wire::List(
                items.into_iter().map(|item| Wire::Object([(name.clone(), item)].into())).collect(),
            ),
            (Self::NumberText, Wire::Number(number)) => Wire::Text(number.to_string()),
            (_, value) => value,
        })
    }

    fn read(&self, value: Json) -> Json {
        match (self, value) {
            (Self::NullIs(null) | Self::ReadsAsNull(null), value) if value == *null => Json::Null,
            (Self::Split { read: codecs, .. }, value) => read(codecs, value),
            (Self::Join(separator), Json::String(text)) => split(&text, separator),
            (Self::Unjoin(separator), Json::Array(items)) => unjoin(items, separator),
            (Self::Pairs(key, value), Json::Array(items)) => unpair(items, key, value),
            (Self::JsonText, Json::String(text)) => {
                serde_json::from_str(&text).unwrap_or(Json::String(text))
            }
            (Self::Values(pairs), value) => {
                let pair = pairs.iter().find(|(wire, _)| *wire == value);
                pair.map_or(value, |(_, attribute)| attribute.clone())
            }
            (Self::Suffixes(suffixes), Json::String(text)) => {
                let cut = suffixes.iter().find_map(|suffix| text.strip_suffix(suffix.as_str()));
                cut.unwrap_or(&text).into()
            }
            (Self::IgnoreKeys(keys), Json::Object(mut entries)) => {
                entries.retain(|key, _| !keys.contains(key));
                Json::Object(entries)
            }
            (Self::Wrap(name), Json::Array(items)) => {
                items.into_iter().map(|item| unwrap(item, name)).collect()
            }
            (Self::NumberText, Json::String(text)) => match text.parse() {
                Ok(number) => Json::Number(number),
                Err(_) => Json::String(text),
            },
            (_, value) => value,
        }
    }

    /// Returns the fields that a GraphQL selection of the attribute needs because of this codec.
    pub(crate) fn selects(&self) -> Option<Vec<&str>> {
        match self {
            Self::Pairs(key, value) => Some(vec![key, value]),
            Self::Wrap(name) => Some(vec![name]),
            Self::Split { read, .. } => read.iter().find_map(Codec::selects),
            _ => None,
        }
    }
}

fn join(items: &[Wire], separator: &str) -> Result<Wire, Unwritable> {
    let mut texts = Vec::new();
    for item in items {
        match item {
            Wire::Text(text) | Wire::Enum(text) if !text.contains(separator) => {
                texts.push(text.as_str());
            }
            // An item that contains the separator would be read back as two.
            _ => return Err(Unwritable::Shape(format!("a list of texts without `{separator}`"))),
        }
    }
    Ok(Wire::Text(texts.join(separator)))
}

fn split(text: &str, separator: &str) -> Json {
    text.split(separator).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns a list of texts as one text; a list of other values stays as it is.
fn unjoin(items: Vec<Json>, separator: &str) -> Json {
    match items.iter().map(Json::as_str).collect::<Option<Vec<_>>>() {
        Some(texts) => texts.join(separator).into(),
        None => Json::Array(items),
    }
}

/// Returns a list of pairs as a map; a list of other values stays as it is.
fn unpair(items: Vec<Json>, key: &str, value: &str) -> Json {
    let pair = |item: &Json| Some((item.get(key)?.as_str()?.to_owned(), item.get(value)?.clone()));
    match items.iter().map(pair).collect::<Option<serde_json::Map<_, _>>>() {
        Some(entries) => Json::Object(entries),
        None => Json::Array(items),
    }
}

fn unwrap(mut item: Json, name: &str) -> Json {
    match item.get_mut(name) {
        Some(inner) => inner.take(),
        None => item,
    }
}

/// Returns true if a text is a name in GraphQL: `[_A-Za-z][_0-9A-Za-z]*`.
pub(crate) fn is_graphql_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the JSON that is written for an attribute, and the JSON that is read back from that.
    fn round(codecs: &[Codec], value: &Json) -> (Json, Json) {
        let wire = write(codecs, Wire::from_json(value)).unwrap().to_json();
        let back = read(codecs, wire.clone());
        (wire, back)
    }

    #[test]
    fn each_codec_undoes_itself() {
        let pairs = || Codec::Pairs("key".into(), "value".into());
        for (codecs, value, wire) in [
            (vec![Codec::Join(",".into())], json!(["a", "b"]), json!("a,b")),
            (vec![Codec::Unjoin(",".into())], json!("a,b"), json!(["a", "b"])),
            (vec![pairs()], json!({"A": "1"}), json!([{"key": "A", "value": "1"}])),
            (vec![Codec::JsonText], json!({"a": [1]}), json!("{\"a\":[1]}")),
            (vec![Codec::NullIs(json!(""))], json!(null), json!("")),
            (vec![Codec::Values(vec![(json!("ON"), json!(true))])], json!(true), json!("ON")),
            (vec![Codec::Wrap("id".into())], json!(["a"]), json!([{"id": "a"}])),
            (vec![Codec::NumberText], json!(12), json!("12")),
            (vec![Codec::Enum], json!("QB"), json!("QB")),
            (vec![pairs(), Codec::JsonText], json!({}), json!("[]")),
        ] {
            assert_eq!(round(&codecs, &value), (wire, value), "{codecs:?}");
        }
    }

    #[test]
    fn reading_forgives() {
        let read = |codec: Codec, json: Json| read(&[codec], json);
        assert_eq!(read(Codec::Join(",".into()), json!(" a , b,")), json!(["a", "b"]));
        assert_eq!(read(Codec::Join(",".into()), json!("")), json!([]));
        assert_eq!(read(Codec::Suffixes(vec![" -fb".into(), "-fb".into()]), json!("n -fb")), "n");
        assert_eq!(read(Codec::Suffixes(vec!["-fb".into()]), json!("n")), json!("n"));
        assert_eq!(
            read(Codec::IgnoreKeys(vec!["PORT".into()]), json!({"PORT": "1", "A": "2"})),
            json!({"A": "2"})
        );
        assert_eq!(read(Codec::ReadsAsNull(json!("")), json!("")), Json::Null);
        assert_eq!(read(Codec::Pairs("k".into(), "v".into()), json!([1])), json!([1]));
        assert_eq!(read(Codec::JsonText, json!("not json")), json!("not json"));
        assert_eq!(read(Codec::Wrap("id".into()), json!([{"id": "a", "x": 1}])), json!(["a"]));
    }

    #[test]
    fn other_words_for_null() {
        let pairs = || Codec::Pairs("key".into(), "value".into());
        let empty = || Codec::NullIs(json!(""));
        for (codecs, words) in [
            (vec![empty()], vec![json!("")]),
            (vec![Codec::ReadsAsNull(json!("none"))], vec![json!("none")]),
            (vec![empty(), Codec::Unjoin(",".into())], vec![json!("")]),
            (vec![pairs(), Codec::ReadsAsNull(json!([]))], vec![json!({})]),
            (vec![Codec::Split { write: vec![], read: vec![empty()] }], vec![json!("")]),
            (vec![Codec::Values(vec![(json!("-"), json!(null))])], vec![json!("-")]),
            (vec![pairs(), Codec::JsonText], vec![]),
        ] {
            assert_eq!(nulls(&codecs), words, "{codecs:?}");
            for word in words {
                assert_eq!(round(&codecs, &word).1, Json::Null, "{codecs:?}");
            }
        }
    }

    #[test]
    fn written_and_read_shapes_may_differ() {
        let codec = Codec::Split { write: vec![Codec::Wrap("id".into())], read: vec![] };
        assert_eq!(round(&[codec], &json!(["a"])).0, json!([{"id": "a"}]));
    }

    #[test]
    fn what_would_not_come_back_is_not_written() {
        let list = Wire::List(vec![Wire::Text("a,b".into())]);
        assert!(matches!(write(&[Codec::Join(",".into())], list), Err(Unwritable::Shape(_))));
        let evil = Wire::Text("QB} injected".into());
        assert!(matches!(write(&[Codec::Enum], evil), Err(Unwritable::Shape(_))));
    }
}
