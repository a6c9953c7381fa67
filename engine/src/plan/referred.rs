//! The objects that the expressions in a plan refer to.
//!
//! An instance is written `db.d["a"]`, and also `db.d.a` if the evaluator took it out of all instances.
//! `db.d` is one object, or with `for_each` all of its instances; so the same text may name an attribute of
//! the object or an instance. Only the objects that exist show which of the two it is.

use std::collections::BTreeSet;

use crate::address::{Address, Block, Name};
use crate::expression::{Expr, visit};
use crate::plan::Plan;
use crate::value::{Segment, Value};

/// A reference to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference<'e> {
    pub(super) block: &'e Block,
    /// The names that stand behind the block in the expression: a key and an attribute, or an attribute.
    pub(super) names: [Option<&'e Name>; 2],
}

impl Reference<'_> {
    /// Returns true if the reference may take the attribute of an object, or the whole object.
    pub(super) fn has(&self, address: &Address, attribute: &Name) -> bool {
        let [first, second] = self.names;
        let may_be = |written: Option<&Name>, name| written.is_none_or(|written| written == name);
        let is_in = match &address.key {
            Some(key) => may_be(first, key) && may_be(second, attribute),
            None => may_be(first, attribute),
        };
        *self.block == address.block && is_in
    }
}

/// Calls `visit` for each reference in an expression.
pub(super) fn each_in<'e>(expr: &'e Expr, visit: &mut dyn FnMut(Reference<'e>)) {
    visit::resources(expr, &mut |block, names| visit(Reference { block, names }));
}

/// Calls `visit` for each reference in the unknown parts of a value.
pub(super) fn each<'v>(value: &'v Value, visit: &mut dyn FnMut(Reference<'v>)) {
    match value {
        Value::Unknown(unknown) => each_in(&unknown.residual, visit),
        Value::List(items) | Value::Set(items) => items.iter().for_each(|item| each(item, visit)),
        Value::Map(entries) => entries.values().for_each(|item| each(item, visit)),
        _ => {}
    }
}

impl Plan {
    /// Returns the addresses of the plan that the unknown parts of values refer to.
    pub fn referred<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> BTreeSet<Address> {
        let mut addresses = BTreeSet::new();
        for value in values {
            each(value, &mut |reference| self.add_referred(reference, &mut addresses));
        }
        addresses
    }

    /// Returns true if the value of a reference may be a secret, as far as the plan knows its object.
    pub(super) fn is_secret(&self, reference: Reference<'_>) -> bool {
        let mut addresses = BTreeSet::new();
        self.add_referred(reference, &mut addresses);
        let mut changes = addresses.iter().filter_map(|address| self.change(address));
        changes.any(|change| {
            let mut places = change.sensitive.iter();
            places.any(|place| match place.0.first() {
                Some(Segment::Key(name)) => reference.has(&change.address, name),
                _ => true,
            })
        })
    }

    fn add_referred(&self, reference: Reference<'_>, addresses: &mut BTreeSet<Address>) {
        let Reference { block, names: [first, _] } = reference;
        if first.is_some() {
            let written = [None, first].map(|key| block.instance(key.cloned()));
            addresses.extend(written.into_iter().filter(|it| self.change(it).is_some()));
            return;
        }
        let from = self.changes.partition_point(|change| change.address.block < *block);
        let of_block = self.changes[from..].iter().map(|change| &change.address);
        addresses.extend(of_block.take_while(|it| it.block == *block).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse::residual;
    use crate::plan::Change;
    use crate::types::Type;

    #[test]
    fn what_an_expression_takes_of_an_object() {
        for (text, address, name, expected) in [
            ("db.d.token", "db.d", "token", true),
            ("db.d.token", "db.d", "id", false),
            ("db.d.token", "db.e", "token", false),
            ("\"p-${db.d.token}\"", "db.d", "token", true),
            ("db.d[\"a\"].token", "db.d[\"a\"]", "token", true),
            ("db.d[\"a\"].token", "db.d[\"b\"]", "token", false),
            ("db.d[\"a\"].token", "db.d[\"a\"]", "id", false),
            ("db.d.a.token", "db.d[\"a\"]", "token", true),
            ("db.d.a.token", "db.d[\"a\"]", "id", false),
            ("db.d.a.token", "db.d[\"b\"]", "token", false),
            ("db.d[var.key].token", "db.d[\"a\"]", "token", true),
            ("var.names[db.d.token].x", "db.d", "token", true),
            ("values(db.d)[*].token", "db.d[\"a\"]", "token", true),
            ("jsonencode(db.d)", "db.d", "token", true),
            ("jsonencode(db.d)", "db.d[\"a\"]", "token", true),
            ("jsonencode(db.d[\"a\"])", "db.d[\"a\"]", "token", true),
            ("jsonencode(db.d.a)", "db.d[\"a\"]", "token", true),
            ("[for d in db.d : d.token]", "db.d[\"a\"]", "token", true),
            ("var.token", "db.d", "token", false),
        ] {
            let expr = residual(text).unwrap();
            let address: Address = address.parse().unwrap();
            let mut has = false;
            each_in(&expr, &mut |reference| has |= reference.has(&address, &name.into()));
            assert_eq!(has, expected, "{text} {address} {name}");
        }
    }

    #[test]
    fn a_block_stands_for_its_instances() {
        let all = ["db.c", "db.d[\"a\"]", "db.d[\"b\"]", "db.e"];
        let change = |address: &&str| Change::new(address.parse().unwrap(), "test".into());
        let changes = all.iter().map(change).collect();
        let plan = Plan { changes, ..Plan::default() };
        for (text, expected) in [
            ("db.d", &all[1..3]),
            ("values(db.d)[*].token", &all[1..3]),
            ("db.d[var.key].token", &all[1..3]),
            ("db.d[\"a\"].token", &all[1..2]),
            ("db.d.b.token", &all[2..3]),
            ("db.d.z.token", &[]),
            ("db.e.token", &all[3..]),
            ("[db.e, db.c]", &[all[0], all[3]]),
            ("db.f", &[]),
        ] {
            let value = Value::unknown(Type::Any, residual(text).unwrap());
            let referred = plan.referred([&value]);
            let referred: Vec<String> = referred.iter().map(ToString::to_string).collect();
            assert_eq!(referred, expected, "{text}");
        }
    }
}
