//! Values at rest: the form of values that leave the process, in the state, the journal and plan files.
//!
//! A stored value is plain JSON, with `null` for parts that cannot stand in clear. Beside it are the
//! fingerprints of the sealed parts and the residuals of the unknown parts, by path. There is no marker
//! inside the JSON, so no text of a user can be mistaken for one. Sealing happens in [`seal`]. Storing a
//! sensitive part without sealing it is impossible, because [`Stored::new`] takes the sensitive places and
//! seals them itself.

mod known_secrets;
mod plain;
mod redact;
mod secret_fingerprints;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::known_secrets::KnownSecrets;
pub use self::redact::{SecretScanner, seal_like};
pub use self::secret_fingerprints::SecretFingerprints;
use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
use crate::expression::parse;
use crate::types::Type;
use crate::value::{Attributes, Datum, Path, Paths, Sealed, Segment, Value};

/// A value at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The JSON of the value, with null in the places below, and lists for sets.
    #[serde(with = "plain")]
    pub json: Value,
    /// The sealed parts, by place, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<SealedAt>,
    /// The unknown parts, by place, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownAt>,
}

/// A sealed place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SealedAt {
    /// The place.
    pub path: Path,
    /// The type's text.
    #[serde(rename = "type")]
    pub ty: String,
    /// The fingerprint.
    pub fingerprint: Fingerprint,
}

/// An unknown place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownAt {
    /// The place.
    pub path: Path,
    /// The type's text.
    #[serde(rename = "type")]
    pub ty: String,
    /// The residual's text, an expression.
    pub residual: String,
}

/// The reason that a stored value cannot be read back.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a stored value is damaged at {path}: {reason}")]
pub struct DamagedValue {
    path: Path,
    reason: String,
}

impl Default for Stored {
    fn default() -> Self {
        Self { json: Value::Null, sealed: Vec::new(), unknown: Vec::new() }
    }
}

impl Stored {
    /// Prepares a datum for storing: seals its sensitive parts, then takes it apart.
    pub fn new(datum: &Datum, key: &SealKey) -> Self {
        Self::of_sealed(&seal(&datum.value, &datum.sensitive, key))
    }

    /// Takes apart a value that holds nothing sensitive in clear.
    pub fn of_sealed(value: &Value) -> Self {
        let mut stored = Self::default();
        stored.json = stored.take(value, &Path::root());
        stored
    }

    fn take(&mut self, value: &Value, path: &Path) -> Value {
        // Most values are plain JSON, and shared without a copy.
        if plain::is_plain(value) {
            return value.clone();
        }
        match value {
            Value::List(items) | Value::Set(items) => {
                let items = items.iter().enumerate();
                Value::list(items.map(|(at, item)| self.take(item, &path.join(at))).collect())
            }
            Value::Map(entries) => Value::map(
                entries
                    .iter()
                    .map(|(name, item)| (name.clone(), self.take(item, &path.join(name.clone()))))
                    .collect(),
            ),
            Value::Sealed(sealed) => {
                self.sealed.push(SealedAt {
                    path: path.clone(),
                    ty: sealed.ty.to_string(),
                    fingerprint: sealed.fingerprint.clone(),
                });
                Value::Null
            }
            Value::Unknown(unknown) => {
                self.unknown.push(UnknownAt {
                    path: path.clone(),
                    ty: unknown.ty.to_string(),
                    residual: unknown.residual.to_string(),
                });
                Value::Null
            }
            plain => plain.clone(),
        }
    }

    /// Puts the value together again. A list becomes a set only when the caller converts the value to its
    /// type.
    pub fn value(&self) -> Result<Value, DamagedValue> {
        let mut value = self.json.clone();
        for at in &self.sealed {
            let ty = read_type(&at.path, &at.ty)?;
            let sealed = Sealed { ty, fingerprint: at.fingerprint.clone() };
            put(&mut value, &at.path, &Value::Sealed(Arc::new(sealed)))?;
        }
        for at in &self.unknown {
            let ty = read_type(&at.path, &at.ty)?;
            let residual = parse::residual(&at.residual).map_err(|error| DamagedValue {
                path: at.path.clone(),
                reason: error.to_string(),
            })?;
            put(&mut value, &at.path, &Value::unknown(ty, residual))?;
        }
        Ok(value)
    }
}

fn read_type(path: &Path, text: &str) -> Result<Type, DamagedValue> {
    if text == "null" {
        return Ok(Type::Null);
    }
    text.parse().map_err(|error: crate::types::TypeError| DamagedValue {
        path: path.clone(),
        reason: error.to_string(),
    })
}

fn put(value: &mut Value, path: &Path, part: &Value) -> Result<(), DamagedValue> {
    if value.at(path).is_none() {
        return Err(DamagedValue {
            path: path.clone(),
            reason: "there is no such place".to_owned(),
        });
    }
    value.change_at(&path.0, &mut |_| part.clone());
    Ok(())
}

/// Replaces the parts in the sensitive places by sealed values. Null and unknown parts stay, because they
/// reveal nothing. A set with a sensitive place inside is sealed as a whole: if the place was given before
/// the set was sorted or filled, it may belong to another item now.
pub fn seal(value: &Value, sensitive: &Paths, key: &SealKey) -> Value {
    let mut sealed = value.clone();
    for path in sensitive.iter() {
        let path = path.around_sets(value);
        sealed.change_at(&path.0, &mut |part| seal_part(part, key));
    }
    sealed
}

/// Seals the sensitive places of attributes, given as paths from the object's root.
pub fn seal_attributes(attributes: &Attributes, sensitive: &Paths, key: &SealKey) -> Attributes {
    if sensitive.is_empty() {
        return attributes.clone();
    }
    attributes
        .iter()
        .map(|(name, value)| {
            let inside = sensitive.inside(&Segment::Key(name.clone()));
            (name.clone(), seal(value, &inside, key))
        })
        .collect()
}

fn seal_part(part: &Value, key: &SealKey) -> Value {
    match part {
        Value::Null | Value::Unknown(_) | Value::Sealed(_) => part.clone(),
        // A part that is known only in part is sealed item by item.
        Value::Map(entries) if !part.is_known() || part.holds_sealed() => Value::map(
            entries.iter().map(|(name, item)| (name.clone(), seal_part(item, key))).collect(),
        ),
        Value::List(items) if !part.is_known() || part.holds_sealed() => {
            Value::list(items.iter().map(|item| seal_part(item, key)).collect())
        }
        Value::Set(items) if !part.is_known() || part.holds_sealed() => {
            Value::set(items.iter().map(|item| seal_part(item, key)).collect())
        }
        known => Value::Sealed(Arc::new(Sealed {
            ty: known.type_of().nameless(),
            fingerprint: Fingerprint::of(known, key),
        })),
    }
}

/// Returns the value of plain JSON. Numbers that are too large for 64 bits become floats.
pub fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => number.as_f64().filter(|n| n.is_finite()).map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::string(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(from_json).collect()),
        serde_json::Value::Object(entries) => Value::map(
            entries
                .iter()
                .map(|(name, item)| (Name::from(name.as_str()), from_json(item)))
                .collect(),
        ),
    }
}

/// Returns the JSON of a known value without sealed parts, in clear. For values that are sent to an API, and
/// for values that are not sensitive. Unknown and sealed parts become `null`.
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null | Value::Unknown(_) | Value::Sealed(_) => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::String(text) => serde_json::Value::String(text.to_string()),
        Value::List(items) | Value::Set(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(name, item)| (name.to_string(), to_json(item)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::agree;

    /// A sealed value with secret keys leaves none of them in the JSON.
    #[test]
    fn the_names_in_a_sealed_value_do_not_reach_the_json() {
        let key = SealKey::from_random([7; 32]);
        let whole = from_json(&serde_json::json!({"hunter2": [{"hunter3": 1}, {}]}));
        let partly = Value::map([(Name::from("n"), whole.clone())].into_iter().collect());
        for (value, path) in [(whole, Path::root()), (partly, Path::attribute("n"))] {
            let datum = Datum { value, sensitive: Paths::from_iter([path]) };
            let stored = Stored::new(&datum, &key);
            let text = serde_json::to_string(&stored).unwrap();
            assert!(!text.contains("hunter"), "{text}");
            assert_eq!(Stored::of_sealed(&stored.value().unwrap()), stored);
        }
    }

    #[test]
    fn secrets_do_not_reach_the_json() {
        let key = SealKey::from_random([7; 32]);
        let value = from_json(&serde_json::json!({"a": {"pw": "hunter2", "n": 1}}));
        let datum = Datum {
            value,
            sensitive: Paths::from_iter([Path::attribute("a").join(Name::from("pw"))]),
        };
        let stored = Stored::new(&datum, &key);
        let text = serde_json::to_string(&stored).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        let back = stored.value().unwrap();
        assert_eq!(Stored::of_sealed(&back), stored);
        assert!(matches!(
            back.at(&Path::attribute("a").join(Name::from("pw"))),
            Some(Value::Sealed(_))
        ));
    }

    fn types() -> impl Strategy<Value = Type> {
        Just(Type::String).prop_recursive(3, 8, 1, |inner| {
            (inner, 0..3).prop_map(|(item, which)| match which {
                0 => Type::list(item),
                1 => Type::set(item),
                _ => Type::map(item),
            })
        })
    }

    /// Returns a value as a spec gives it: with lists for sets, and with secret and other texts.
    fn written(ty: &Type) -> BoxedStrategy<Value> {
        match ty {
            Type::List(item) | Type::Set(item) => {
                proptest::collection::vec(written(item), 0..4).prop_map(Value::list).boxed()
            }
            Type::Map(item) => {
                let entries = proptest::collection::btree_map("[a-c]", written(item), 0..3);
                let named = |(name, item): (String, Value)| (Name::from(name), item);
                entries.prop_map(move |it| Value::map(it.into_iter().map(named).collect())).boxed()
            }
            _ => (0..50, 0..3)
                .prop_map(|(n, kind)| {
                    Value::string(format!("{n:02}{}", if kind == 0 { "hunter" } else { "plain" }))
                })
                .boxed(),
        }
    }

    fn secrets(value: &Value, at: &Path, found: &mut Paths) {
        match value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(n, item)| secrets(item, &at.join(n), found));
            }
            Value::Map(entries) => {
                entries.iter().for_each(|(name, it)| secrets(it, &at.join(name.clone()), found));
            }
            Value::String(text) if text.ends_with("hunter") => found.insert(at.clone()),
            _ => {}
        }
    }

    proptest! {
        /// A conversion that turns a list into a set, and so sorts it, leaves no secret in clear.
        #[test]
        fn no_conversion_moves_a_secret_out_of_its_place(
            (ty, value) in types().prop_flat_map(|ty| {
                let value = written(&ty);
                (Just(ty), value)
            })
        ) {
            let key = SealKey::from_random([7; 32]);
            let mut sensitive = Paths::none();
            secrets(&value, &Path::root(), &mut sensitive);
            let converted = Datum { value, sensitive: sensitive.clone() }.convert(&ty).unwrap();
            // The places may also come from a state that recorded them before the conversion.
            let recorded = Datum { value: converted.value.clone(), sensitive };
            for datum in [&converted, &recorded] {
                let stored = Stored::new(datum, &key);
                let text = serde_json::to_string(&stored).unwrap();
                prop_assert!(!text.contains("hunter"), "{datum:?}: {text}");
                let back = stored.value().unwrap().convert(&ty).unwrap();
                prop_assert!(agree(&converted.value, &back, &key), "{datum:?}: {back:?}");
            }
        }
    }
}
