//! Duplicate keys of a map, as far as their expressions show them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::text::text_of;
use super::{Expr, Kind};
use crate::value::Value;

/// Returns the first entry whose key appears in an entry before it: the same text, or the same expression,
/// which will have the same value. Expressions are compared, not printed, because printing calls this for the
/// maps in them.
pub(super) fn repeated(entries: &[(Expr, Expr)]) -> Option<usize> {
    let mut texts = BTreeSet::new();
    let mut expressions: Vec<&Expr> = Vec::new();
    entries.iter().position(|(key, _)| match text(key) {
        Some(text) => !texts.insert(text),
        None if expressions.contains(&key) => true,
        None => {
            expressions.push(key);
            false
        }
    })
}

/// Returns the text of a key; none if it is not known.
fn text(key: &Expr) -> Option<Cow<'_, str>> {
    match &key.kind {
        Kind::Literal(Value::String(text)) => Some(Cow::Borrowed(text)),
        Kind::Literal(value) => text_of(value).map(Cow::Owned),
        _ => None,
    }
}
