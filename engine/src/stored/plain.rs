//! Plain values, which JSON can express, read and written without a JSON tree in between.

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::address::Name;
use crate::value::Value;

/// Returns true if JSON can express a value so that reading gives the same value: nothing sealed, nothing
/// unknown, no set.
pub(super) fn is_plain(value: &Value) -> bool {
    match value {
        Value::Set(_) | Value::Unknown(_) | Value::Sealed(_) => false,
        Value::List(items) => items.iter().all(is_plain),
        Value::Map(entries) => entries.values().all(is_plain),
        _ => true,
    }
}

/// Writes a value. A part that JSON cannot express is written as null.
pub(super) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    Plain(value).serialize(serializer)
}

/// Reads a value.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    deserializer.deserialize_any(Reader)
}

struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Unknown(_) | Value::Sealed(_) => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) | Value::Set(items) => {
                serializer.collect_seq(items.iter().map(Plain))
            }
            Value::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(name, item)| (&**name, Plain(item))))
            }
        }
    }
}

struct Read(Value);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    /// A number that is too large for 64 bits with a sign becomes a float.
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "as documented")]
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(if number.is_finite() { Value::Float(number) } else { Value::Null })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::string(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Read(item)) = items.next_element()? {
            list.push(item);
        }
        list.shrink_to_fit();
        Ok(Value::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map: Vec<(Name, Value)> = Vec::new();
        while let Some((name, Read(item))) = entries.next_entry()? {
            map.push((name, item));
        }
        Ok(Value::map(map.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::{from_json, to_json};

    #[test]
    fn it_is_the_json_that_a_tree_of_json_is() {
        for text in [
            "null",
            "[true,-1,1.0,0.1,1e300,9223372036854775807]",
            r#"{"a":{"b":[{}]},"é\n\"":"\u0001ü","z":[]}"#,
        ] {
            let Read(value) = serde_json::from_str(text).unwrap();
            let json: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(value, from_json(&json));
            let written = serde_json::to_string(&Plain(&value)).unwrap();
            assert_eq!(written, to_json(&value).to_string());
            assert_eq!(written, json.to_string());
        }
    }

    #[test]
    fn of_a_key_that_stands_twice_the_last_counts() {
        let Read(value) = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(format!("{value:?}"), r#"{"a": 2, "b": 3}"#);
    }

    #[test]
    fn numbers_beyond_64_bits_become_floats() {
        let Read(value) = serde_json::from_str("18446744073709551615").unwrap();
        assert_eq!(value, Value::Float(18_446_744_073_709_551_615.0));
    }
}
