//! The settings of a state: its backend, and the settings of that backend.

use std::collections::BTreeMap;

use crate::address::Name;
use crate::diagnostics::Span;
use crate::value::Value;

/// `[state]`.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSettings {
    /// The kind of backend.
    pub backend: Name,
    /// The settings of the backend, by key, with the place of the key.
    pub values: BTreeMap<Name, (Value, Span)>,
    /// The place of the header, if there is one.
    pub header: Option<Span>,
}

impl StateSettings {
    /// Returns the backend of a spec without a block: files beside the spec.
    pub fn file() -> Self {
        Self { backend: "file".into(), values: BTreeMap::new(), header: None }
    }

    /// Returns a text setting of the backend; none if it is not given.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Value::String(text), _)) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number that the backend is given; none if it is not given.
    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.values.get(key) {
            Some((Value::Integer(number), _)) => Some(*number),
            _ => None,
        }
    }

    /// Returns a boolean setting of the backend; none if it is not given.
    pub fn is_set(&self, key: &str) -> Option<bool> {
        match self.values.get(key) {
            Some((Value::Bool(is_set), _)) => Some(*is_set),
            _ => None,
        }
    }
}
