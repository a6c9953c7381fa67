//! Keys of a map that are the same, as far as their expressions tell.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::evaluate::text_of;
use super::{Expr, Kind};
use crate::value::Value;

/// The first entry whose key stands in an entry before it: the same text, or the same expression, which
/// will have the same value.
pub(super) fn twice(entries: &[(Expr, Expr)]) -> Option<usize> {
    if entries.len() < 2 {
        return None;
    }
    let mut seen = BTreeSet::new();
    entries.iter().position(|(key, _)| !seen.insert(Key::of(key)))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Text(Cow<'a, str>),
    Expression(String),
}

impl<'a> Key<'a> {
    fn of(key: &'a Expr) -> Self {
        match &key.kind {
            Kind::Literal(Value::String(text)) => Self::Text(Cow::Borrowed(text)),
            Kind::Literal(value) if let Some(text) = text_of(value) => Self::Text(Cow::Owned(text)),
            _ => Self::Expression(key.to_string()),
        }
    }
}
