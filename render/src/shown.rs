//! A value in a form that may be shown: unknown and secret values are replaced.
//!
//! The view's counterpart of [`engine::value::Value`]. Its serialisation is plain JSON with `null` in the
//! unknown and the sensitive places; these places are listed beside it, by path.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::Name;
use engine::digest::Fingerprint;
use engine::expression::visit::without_literals;
use engine::sorted;
use engine::value::{Attributes, Path, Paths, Segment, Value};
use serde::{Serialize, Serializer};

/// A value in a form that may be shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The absence of a value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// Values in order.
    List(Vec<Shown>),
    /// Values without order.
    Set(Vec<Shown>),
    /// Values by key.
    Map(Object),
    /// A value that is known after apply, with the text of the expression that computes it.
    Unknown(String),
    /// A secret; two with the same fingerprint are equal.
    Sensitive(Option<Fingerprint>),
}

/// Values by name.
pub type Object = sorted::Map<Name, Shown>;

impl Shown {
    /// Returns the shown form of a value. A value in a sensitive place is hidden even if it was not sealed.
    pub fn new(value: &Value, sensitive: &Paths) -> Self {
        if sensitive.covers(&Path::root()) && !matches!(value, Value::Null | Value::Unknown(_)) {
            return match value {
                Value::Sealed(sealed) => Self::Sensitive(Some(sealed.fingerprint.clone())),
                // The value was sealed item by item: the keys are no secrets, the items are.
                Value::Map(_) | Value::List(_) | Value::Set(_) if value.holds_sealed() => {
                    Self::inside(value, sensitive)
                }
                _ => Self::Sensitive(None),
            };
        }
        Self::inside(value, sensitive)
    }

    fn inside(value: &Value, sensitive: &Paths) -> Self {
        let item = |(index, item): (usize, &Value)| {
            Self::new(item, &sensitive.inside(&Segment::Index(index)))
        };
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Integer(number) => Self::Integer(*number),
            Value::Float(number) => Self::Float(*number),
            Value::String(text) => Self::String(text.clone()),
            Value::List(items) => Self::List(items.iter().enumerate().map(item).collect()),
            Value::Set(items) => Self::Set(items.iter().enumerate().map(item).collect()),
            Value::Map(entries) => Self::Map(object(entries, sensitive)),
            // The secret may be a text in the expression, beside the value that is not known yet.
            Value::Unknown(unknown) if !sensitive.is_empty() => {
                Self::Unknown(without_literals(&unknown.residual).to_string())
            }
            Value::Unknown(unknown) => Self::Unknown(unknown.residual.to_string()),
            Value::Sealed(sealed) => Self::Sensitive(Some(sealed.fingerprint.clone())),
        }
    }

    /// Returns true if two stand for the same known value. Unknown values are never the same, because the
    /// computed value may differ from the present one.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown(_), _) | (_, Self::Unknown(_)) => false,
            (Self::Sensitive(a), Self::Sensitive(b)) => a.is_some() && a == b,
            (Self::Integer(a), Self::Float(b)) | (Self::Float(b), Self::Integer(a)) => {
                Value::Integer(*a).same(&Value::Float(*b))
            }
            // Outputs are stored without their types, so a set of the last run comes back as a list in the
            // set's own order.
            (Self::List(a) | Self::Set(a), Self::List(b) | Self::Set(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|((an, a), (bn, b))| an == bn && a.same(b))
            }
            (a, b) => a == b,
        }
    }

    /// Collects the unknown places below `path`, each with the expression that computes it.
    pub fn unknown(&self, mut path: Path, found: &mut BTreeMap<String, String>) {
        self.walk(&mut path, &mut |path, part| {
            if let Self::Unknown(from) = part {
                found.insert(path.to_string(), from.clone());
            }
        });
    }

    /// Collects the sensitive places below `path`.
    pub fn sensitive(&self, mut path: Path, found: &mut Vec<String>) {
        self.walk(&mut path, &mut |path, part| {
            if matches!(part, Self::Sensitive(_)) {
                found.push(path.to_string());
            }
        });
    }

    /// Visits the value and its parts; `path` has its old value again afterwards.
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&Path, &Self)) {
        visit(path, self);
        match self {
            Self::List(items) | Self::Set(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.walk_inside(Segment::Index(index), path, visit);
                }
            }
            Self::Map(entries) => {
                for (name, item) in entries {
                    item.walk_inside(Segment::Key(name.clone()), path, visit);
                }
            }
            _ => {}
        }
    }

    fn walk_inside(&self, segment: Segment, path: &mut Path, visit: &mut dyn FnMut(&Path, &Self)) {
        path.0.push(segment);
        self.walk(path, visit);
        path.0.pop();
    }
}

/// Returns the shown form of attributes.
pub fn object(attributes: &Attributes, sensitive: &Paths) -> Object {
    attributes
        .iter()
        .map(|(name, value)| {
            let inside = if sensitive.is_empty() {
                Paths::none()
            } else {
                sensitive.inside(&Segment::Key(name.clone()))
            };
            (name.clone(), Shown::new(value, &inside))
        })
        .collect()
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::Unknown(_) | Self::Sensitive(_) => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::String(text) => serializer.serialize_str(text),
            Self::List(items) | Self::Set(items) => items.serialize(serializer),
            Self::Map(entries) => entries.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::digest::SealKey;
    use engine::stored;

    fn value(json: &serde_json::Value) -> Value {
        stored::from_json(json)
    }

    #[test]
    fn a_sensitive_place_is_hidden_even_unsealed() {
        let paths = Paths::from_iter([Path::attribute("env").join(Name::from("TOKEN"))]);
        let shown = Shown::new(&value(&serde_json::json!({"env": {"TOKEN": "hunter2"}})), &paths);
        let text = serde_json::to_string(&shown).unwrap();
        assert_eq!(text, r#"{"env":{"TOKEN":null}}"#);
        let mut found = Vec::new();
        shown.sensitive(Path::root(), &mut found);
        assert_eq!(found, [r#"env["TOKEN"]"#]);
        assert!(!format!("{shown:?}").contains("hunter2"));
    }

    #[test]
    fn equal_secrets_are_the_same_and_unsealed_ones_are_not() {
        let seal = |text: &str| {
            let key = SealKey::from_random([1; 32]);
            let sealed = stored::seal(&Value::string(text), &Paths::whole(), &key);
            Shown::new(&sealed, &Paths::whole())
        };
        assert!(seal("a").same(&seal("a")));
        assert!(!seal("a").same(&seal("b")));
        assert!(!Shown::Sensitive(None).same(&Shown::Sensitive(None)));
    }

    #[test]
    fn a_set_is_the_same_when_it_comes_back_as_a_list() {
        let items = |texts: &[&str]| texts.iter().map(|t| Value::string(*t)).collect::<Vec<_>>();
        let set = |texts: &[&str]| {
            Shown::new(&Value::set(items(texts).into_iter().collect()), &Paths::none())
        };
        let list = |texts: &[&str]| Shown::new(&Value::list(items(texts)), &Paths::none());
        assert!(set(&["z", "y"]).same(&list(&["y", "z"])));
        assert!(!set(&["z", "y"]).same(&list(&["y"])));
    }

    #[test]
    fn numbers_of_one_value_are_the_same() {
        assert!(Shown::Integer(3).same(&Shown::Float(3.0)));
        assert!(!Shown::Unknown("a".into()).same(&Shown::Unknown("a".into())));
    }
}
