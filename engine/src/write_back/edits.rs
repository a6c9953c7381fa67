//! The parts of an attribute's value that are to change in the text, and those that an expression makes.

use crate::address::Name;
use crate::expression::{Expr, Kind};
use crate::value::{Path, Value};

/// A change of a plain value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Sets this value, whatever was there.
    Put(Value),
    /// Sets these items of a list or a set.
    Items(Vec<Value>),
    /// Removes the value.
    Remove,
}

/// A part that an expression makes, and that has another value in the object.
#[derive(Debug)]
pub(super) struct Made<'e> {
    /// The expression.
    pub(super) expr: &'e Expr,
    /// Its place below the attribute.
    pub(super) path: Path,
    /// The live value.
    pub(super) live: Value,
}

/// The edits of one attribute.
#[derive(Debug, Default)]
pub(super) struct Edits<'e> {
    /// The changes, by their places below the attribute.
    pub(super) edits: Vec<(Path, Edit)>,
    /// The parts that stay, because an expression makes them.
    pub(super) made: Vec<Made<'e>>,
}

impl<'e> Edits<'e> {
    /// Returns the edits that turn the value that an expression gives into the live one.
    pub(super) fn of(expr: &'e Expr, wanted: &Value, live: &Value) -> Self {
        let mut edits = Self::default();
        edits.compare(expr, wanted, live, &Path::root());
        edits
    }

    /// Returns true if there is nothing to edit. Parts that an expression makes do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Adds the edits of another instance of the block.
    pub(super) fn join(&mut self, other: Self) {
        for edit in other.edits {
            if !self.edits.contains(&edit) {
                self.edits.push(edit);
            }
        }
        self.made.extend(other.made);
    }

    fn compare(&mut self, expr: &'e Expr, wanted: &Value, live: &Value, path: &Path) {
        if wanted.same(live) {
            return;
        }
        match (&expr.kind, live) {
            // The parts of a sealed value are not known.
            _ if matches!(wanted, Value::Sealed(_)) => {
                self.made.push(Made { expr, path: path.clone(), live: live.clone() });
            }
            (Kind::Map(entries), Value::Map(_)) if entries.iter().all(|(key, _)| is_text(key)) => {
                self.compare_entries(entries, wanted, live, path);
            }
            (Kind::List(items), Value::List(lives))
                if !is_plain(expr) && items.len() == lives.len() =>
            {
                for (at, (item, live)) in items.iter().zip(lives.iter()).enumerate() {
                    let wanted = wanted.as_items().and_then(|items| items.get(at));
                    self.compare(item, wanted.unwrap_or(&Value::Null), live, &path.join(at));
                }
            }
            _ if !is_plain(expr) => {
                self.made.push(Made { expr, path: path.clone(), live: live.clone() });
            }
            (_, Value::Null) => self.edits.push((path.clone(), Edit::Remove)),
            (Kind::List(items), Value::Set(lives)) => {
                self.edits.push((path.clone(), Edit::Items(in_order_of(items, lives))));
            }
            (Kind::List(_), Value::List(lives)) => {
                self.edits.push((path.clone(), Edit::Items(lives.to_vec())));
            }
            _ => self.edits.push((path.clone(), Edit::Put(live.clone()))),
        }
    }

    fn compare_entries(
        &mut self,
        entries: &'e [(Expr, Expr)],
        wanted: &Value,
        live: &Value,
        path: &Path,
    ) {
        let (Some(wanted), Some(live)) = (wanted.as_map(), live.as_map()) else { return };
        let mut written: Vec<&Name> = Vec::new();
        for (key, expr) in entries {
            let Kind::Literal(Value::String(key)) = &key.kind else { continue };
            written.push(key);
            let value =
                |of: &'_ crate::value::Attributes| of.get(key).cloned().unwrap_or(Value::Null);
            self.compare(expr, &value(wanted), &value(live), &path.join(key.clone()));
        }
        for (key, value) in live.iter().filter(|(_, value)| !value.is_null()) {
            if !written.contains(&key) {
                self.edits.push((path.join(key.clone()), Edit::Put(value.clone())));
            }
        }
    }
}

/// Returns the members of a set in the order of the text, the new ones at the end.
fn in_order_of(items: &[Expr], members: &[Value]) -> Vec<Value> {
    let literal = |item: &Expr| match &item.kind {
        Kind::Literal(value) => Some(value.clone()),
        _ => None,
    };
    let kept: Vec<Value> = items.iter().filter_map(literal).collect();
    let is_in = |value: &Value, all: &[Value]| all.iter().any(|other| other.same(value));
    let mut ordered: Vec<Value> =
        kept.iter().filter(|value| is_in(value, members)).cloned().collect();
    ordered.extend(members.iter().filter(|value| !is_in(value, &kept)).cloned());
    ordered
}

fn is_text(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Literal(Value::String(_)))
}

/// Returns true if no part of a value is computed.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::List(items) => items.iter().all(is_plain),
        Kind::Map(entries) => entries.iter().all(|(key, value)| is_text(key) && is_plain(value)),
        _ => false,
    }
}
