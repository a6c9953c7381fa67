//! Keys of a map that are the same, as far as their expressions tell.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::text::text_of;
use super::{Expr, Kind};
use crate::value::Value;

/// The first entry whose key stands in an entry before it: the same text, or the same expression, which
/// will have the same value. Expressions are compared and not printed: printing asks this of the maps in them.
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

/// Returns the text of a key where it is known.
fn text(key: &Expr) -> Option<Cow<'_, str>> {
    match &key.kind {
        Kind::Literal(Value::String(text)) => Some(Cow::Borrowed(text)),
        Kind::Literal(value) => text_of(value).map(Cow::Owned),
        _ => None,
    }
}
