//! Steps from a value into a part of it, and the expression of that part.
//!
//! The expression of a list or a map may be very long: ten thousand entries, of which each instance of a
//! block takes one. So a step looks into a written list or map and does not copy the rest.

use super::Scope;
use crate::address::Name;
use crate::expression::{Expr, Kind, Root};
use crate::value::Value;

/// A step into a value.
#[derive(Clone, Copy)]
pub(super) enum Below<'s> {
    /// By name, to an attribute, an entry, or an instance.
    Name(&'s dyn Scope, &'s Name),
    /// By index or key.
    Index(&'s Value),
}

impl Below<'_> {
    /// Returns the expression of the part, given the expression of the value.
    pub(super) fn kind(self, base: Box<Expr>) -> Kind {
        let index = |base, key| Kind::Index(base, Box::new(Expr::literal(key)));
        match self {
            // An instance of a resource is written with its key in brackets, which distinguishes it from an
            // attribute with the same name.
            Self::Name(scope, name) => match &base.kind {
                Kind::Root(Root::Resource(block)) if scope.is_keyed(block) => {
                    index(base, Value::String(name.clone()))
                }
                _ => Kind::Attribute(base, name.clone()),
            },
            Self::Index(key) => index(base, key.clone()),
        }
    }

    /// Returns the item itself if an expression is a written list or map; else none.
    pub(super) fn written(self, base: &Expr) -> Option<&Expr> {
        match self {
            Self::Name(_, name) => entry(base, name),
            Self::Index(Value::String(name)) => entry(base, name),
            Self::Index(Value::Integer(at)) => match &base.kind {
                Kind::List(items) => items.get(usize::try_from(*at).ok()?),
                _ => None,
            },
            Self::Index(_) => None,
        }
    }
}

/// Returns the last step of an expression and its base; none if the step is not a literal.
pub(super) fn last<'e>(expr: &'e Expr, scope: &'e dyn Scope) -> Option<(&'e Expr, Below<'e>)> {
    match &expr.kind {
        Kind::Attribute(base, name) => Some((base, Below::Name(scope, name))),
        Kind::Index(base, index) => match &index.kind {
            Kind::Literal(key) => Some((base, Below::Index(key))),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the entry of a written map.
pub(super) fn entry<'e>(base: &'e Expr, name: &str) -> Option<&'e Expr> {
    let Kind::Map(entries) = &base.kind else { return None };
    // Most maps are in the order of their keys; a hand-written one may not be.
    let found = entries.binary_search_by(|entry| entry_key(entry).cmp(&Some(name))).ok();
    let found = found.or_else(|| entries.iter().position(|entry| entry_key(entry) == Some(name)));
    found.map(|at| &entries[at].1)
}

fn entry_key((key, _): &(Expr, Expr)) -> Option<&str> {
    match &key.kind {
        Kind::Literal(Value::String(key)) => Some(key),
        _ => None,
    }
}
