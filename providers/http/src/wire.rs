//! Wire values: the values in a body, and the conversion of schema values to them and back.
//!
//! They are JSON with one addition: a GraphQL enum, which is a text in a JSON body and has no quotes in a
//! GraphQL document. [`crate::codec`] handles the form of a single attribute beyond its type.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::stored::from_json;
use engine::types::{Field, Type};
use engine::value::{Attributes, Value};
use serde_json::Value as Json;

use crate::naming::Naming;

/// A value that is written into a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wire {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    /// A name of a GraphQL enum.
    Enum(String),
    List(Vec<Wire>),
    Object(BTreeMap<String, Wire>),
}

impl Wire {
    /// Returns the JSON for a body.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => Json::Number(number.clone()),
            Self::Text(text) | Self::Enum(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(entries) => entries
                .iter()
                .map(|(name, value)| (name.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// Returns the wire value of JSON, without enums.
    pub(crate) fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.clone()),
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => Self::Object(
                entries.iter().map(|(name, item)| (name.clone(), Self::from_json(item))).collect(),
            ),
        }
    }
}

/// The reason that a value cannot be written. Contains no value: it may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwritable {
    /// Only the fingerprint of the value is known.
    Sealed,
    /// The value is not known yet.
    Unknown,
    /// The value does not have the form that a codec expects.
    Shape(String),
}

/// Writes a known value of `ty`; the attributes of objects get their wire names.
pub(crate) fn encode(value: &Value, ty: &Type, naming: Naming) -> Result<Wire, Unwritable> {
    Ok(match (value, ty) {
        (Value::Sealed(_), _) => return Err(Unwritable::Sealed),
        (Value::Unknown(_), _) => return Err(Unwritable::Unknown),
        (Value::Null, _) => Wire::Null,
        (Value::Bool(value), _) => Wire::Bool(*value),
        (Value::Integer(number), _) => Wire::Number((*number).into()),
        (Value::Float(number), _) => Wire::Number(match value.as_integer() {
            // A service that expects a whole number does not accept 4.0.
            Some(whole) => whole.into(),
            None => serde_json::Number::from_f64(*number)
                .ok_or_else(|| Unwritable::Shape("a finite number".to_owned()))?,
        }),
        (Value::String(text), _) => Wire::Text(text.to_string()),
        (Value::List(items) | Value::Set(items), _) => {
            let item_type = match ty {
                Type::List(item) | Type::Set(item) => item,
                _ => &Type::Any,
            };
            Wire::List(
                items.iter().map(|i| encode(i, item_type, naming)).collect::<Result<_, _>>()?,
            )
        }
        (Value::Map(entries), Type::Object(fields)) => encode_object(entries, fields, naming)?,
        (Value::Map(entries), _) => {
            let item_type = if let Type::Map(item) = ty { item } else { &Type::Any };
            Wire::Object(
                entries
                    .iter()
                    .map(|(key, v)| Ok((key.to_string(), encode(v, item_type, naming)?)))
                    .collect::<Result<_, _>>()?,
            )
        }
    })
}

fn encode_object(
    entries: &Attributes,
    fields: &BTreeMap<Name, Field>,
    naming: Naming,
) -> Result<Wire, Unwritable> {
    let mut object = BTreeMap::new();
    for (name, value) in entries {
        let ty = fields.get(name).map_or(&Type::Any, |field| &field.ty);
        object.insert(naming.wire(name), encode(value, ty, naming)?);
    }
    Ok(Wire::Object(object))
}

/// Reads JSON as a value of `ty`. Keys that an object type does not have are left out: an API may show more
/// than a descriptor knows. The caller converts the result to `ty`.
pub(crate) fn decode(json: &Json, ty: &Type, naming: Naming) -> Value {
    match (json, ty) {
        (Json::Array(items), Type::List(item) | Type::Set(item)) => {
            Value::list(items.iter().map(|i| decode(i, item, naming)).collect())
        }
        (Json::Object(entries), Type::Map(item)) => Value::map(
            entries
                .iter()
                .map(|(key, value)| (Name::from(key.as_str()), decode(value, item, naming)))
                .collect(),
        ),
        (Json::Object(entries), Type::Object(fields)) => {
            let mut object = Attributes::new();
            for (name, field) in fields {
                match entries.get(&naming.wire(name)) {
                    Some(value) => {
                        object.insert(name.clone(), decode(value, &field.ty, naming));
                    }
                    None if field.optional => {}
                    None => {
                        object.insert(name.clone(), Value::Null);
                    }
                }
            }
            Value::map(object)
        }
        (json, _) => from_json(json),
    }
}

/// Returns the value at a path in a body.
pub(crate) fn at<'a>(json: &'a Json, path: &[String]) -> Option<&'a Json> {
    path.iter().try_fold(json, |json, key| match json {
        Json::Array(items) => items.get(key.parse::<usize>().ok()?),
        json => json.get(key),
    })
}

/// Returns true if null stands in place of an object on the way to a path.
pub(crate) fn is_cut_short(json: &Json, path: &[String]) -> bool {
    let Some((_, parents)) = path.split_last() else { return false };
    (1..=parents.len()).any(|depth| at(json, &parents[..depth]).is_some_and(Json::is_null))
}

/// Puts a value at a path, and makes the objects on the way. An object is merged into an existing one.
pub(crate) fn put(object: &mut BTreeMap<String, Wire>, path: &[String], value: Wire) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match (object.get_mut(first), value) {
            (Some(Wire::Object(there)), Wire::Object(more)) => there.extend(more),
            (_, value) => drop(object.insert(first.clone(), value)),
        }
        return;
    }
    let inner = object.entry(first.clone()).or_insert_with(|| Wire::Object(BTreeMap::new()));
    if let Wire::Object(inner) = inner {
        put(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ty(text: &str) -> Type {
        text.parse().unwrap()
    }

    #[test]
    fn objects_change_their_names_both_ways() {
        let ty = ty("list(object{desired_status = string, last_seen? = integer})");
        let wire = json!([{"desiredStatus": "RUNNING", "lastSeen": 3, "more": true}, {}]);
        let value = decode(&wire, &ty, Naming::Camel).convert(&ty).unwrap();
        assert_eq!(
            format!("{value:?}"),
            r#"[{"desired_status": "RUNNING", "last_seen": 3}, {"desired_status": null}]"#
        );
        let back = encode(&value, &ty, Naming::Camel).unwrap().to_json();
        assert_eq!(
            back,
            json!([{"desiredStatus": "RUNNING", "lastSeen": 3}, {"desiredStatus": null}])
        );
    }

    #[test]
    fn keys_of_maps_stay_as_they_are() {
        let env = json!({"MY_KEY": "a", "other_key": "b"});
        let value = decode(&env, &ty("map(string)"), Naming::Camel);
        let back = encode(&value, &ty("map(string)"), Naming::Camel).unwrap();
        assert_eq!(back.to_json(), env);
    }

    #[test]
    fn whole_floats_are_written_whole() {
        let wire = encode(&Value::Float(4.0), &Type::Number, Naming::Same).unwrap();
        assert_eq!(wire.to_json().to_string(), "4");
        let wire = encode(&Value::Float(0.5), &Type::Number, Naming::Same).unwrap();
        assert_eq!(wire.to_json().to_string(), "0.5");
    }

    #[test]
    fn paths_lead_through_objects_and_lists() {
        let json = json!({"errors": [{"code": "exists"}], "0": 1});
        let found = |path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            at(&json, &path).cloned()
        };
        assert_eq!(found("errors.0.code"), Some(json!("exists")));
        assert_eq!(found("0"), Some(json!(1)));
        for path in ["errors.1.code", "errors.code", "errors.-1"] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn paths_make_their_objects() {
        let mut object = BTreeMap::new();
        put(&mut object, &["a".to_owned(), "b".to_owned()], Wire::Bool(true));
        put(&mut object, &["a".to_owned(), "c".to_owned()], Wire::Null);
        put(&mut object, &["a".to_owned()], Wire::from_json(&json!({"d": 1})));
        assert_eq!(Wire::Object(object).to_json(), json!({"a": {"b": true, "c": null, "d": 1}}));
    }
}
