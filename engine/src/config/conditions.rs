//! Conditions with their messages as the spec writes them: tables with `condition` and `message`.
//!
//! They are the validations of variables, and the preconditions and postconditions of resources and outputs.

use std::collections::BTreeMap;

use super::checker::{Checker, place};
use super::constant::literal_key;
use super::{Item, SpecExpr, diagnostics as say, keys};
use crate::diagnostics::{Diagnostic, Span};
use crate::expression::{Expr, Kind};
use crate::types::Type;

/// A condition, and the message if it does not hold.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition: true or false.
    pub condition: SpecExpr,
    /// The message: a text.
    pub message: SpecExpr,
}

/// The words for one kind of conditions in messages.
pub(super) struct Wording {
    /// The key, such as `precondition`.
    pub(super) key: &'static str,
    /// One condition, such as `a precondition`.
    pub(super) one: &'static str,
    /// One condition with its owner, such as ``a precondition of `value.a` ``.
    pub(super) whose: String,
    /// The header of a condition, such as `[[resource.value.a.lifecycle.precondition]]`.
    pub(super) form: String,
}

/// Reads the conditions in a value: a table, or a list of tables. `at` is the place of its key. A condition
/// without one of its keys is left out; mistakes go to `push`.
pub(super) fn read(
    value: &SpecExpr,
    at: Span,
    wording: &Wording,
    push: &mut dyn FnMut(Diagnostic),
) -> Vec<Condition> {
    let one = std::slice::from_ref(&value.expr);
    let parts = if let Kind::List(items) = &value.expr.kind { items } else { one };
    parts.iter().filter_map(|part| read_one(value, part, at, wording, push)).collect()
}

fn read_one(
    value: &SpecExpr,
    expr: &Expr,
    at: Span,
    wording: &Wording,
    push: &mut dyn FnMut(Diagnostic),
) -> Option<Condition> {
    let part = |expr: &Expr| SpecExpr { expr: expr.clone(), span: value.span_of(expr.range) };
    let header = part(expr).span;
    let Kind::Map(entries) = &expr.kind else {
        push(say::not_a_block(wording.key, &wording.form, at));
        return None;
    };
    let mut found = BTreeMap::new();
    for (key, value) in entries {
        let at = part(key).span;
        let key = literal_key(key).map_or("", |key| key);
        if let Some(known) = keys::CONDITION.iter().find(|known| known.name == key) {
            found.insert(known.name, part(value));
        } else {
            push(say::unknown_key(key, wording.one, at, &keys::names(keys::CONDITION)));
        }
    }
    let [condition, message] = ["condition", "message"].map(|key| {
        let part = found.remove(key);
        if part.is_none() {
            push(say::missing_key(&wording.whose, key, header));
        }
        part
    });
    Some(Condition { condition: condition?, message: message? })
}

/// Reads the conditions of an item of a block, and checks their types.
pub(super) fn of_item(checker: &mut Checker<'_>, item: &Item, wording: &Wording) -> Vec<Condition> {
    if checker.is_broken(&item.value) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let conditions = read(&item.value, item.key, wording, &mut |it| found.push(it));
    for mistake in found {
        checker.push(mistake);
    }
    for Condition { condition, message } in &conditions {
        checker.expect(condition, &Type::Boolean);
        checker.expect(message, &Type::String);
    }
    conditions
}

/// Returns a key of a table inside a value, as an item.
pub(super) fn entry(value: &SpecExpr, (key, part): (&Expr, &Expr)) -> Item {
    let file = value.span.file;
    let own = SpecExpr { span: place(file, part.range), expr: part.clone() };
    Item { key: place(file, key.range), value: own }
}
