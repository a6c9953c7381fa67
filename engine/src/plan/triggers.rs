//! `lifecycle.replace_triggered_by`: what else's change replaces an instance.
//!
//! A reference to a resource fires when that object is updated or replaced; a reference to one of
//! its attributes fires when that attribute changes, or the object is replaced. A create fires
//! nothing: there was nothing before it that this instance could have been made with.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::SpecScope;
use super::{Action, Change};
use crate::address::{Address, Name};
use crate::expression::evaluate::evaluate;
use crate::expression::{Expr, Kind, Root};
use crate::spec::ResourceConfig;
use crate::value::Value;

/// What changes of the objects that were decided so far: none for all of it, in a replace.
#[derive(Default)]
pub(super) struct Changing(BTreeMap<Address, Option<BTreeSet<Name>>>);

impl Changing {
    /// Remembers a decision.
    pub(super) fn note(&mut self, change: &Change, changed: &BTreeSet<Name>) {
        let what = match change.action {
            Action::Replace => None,
            Action::Update => Some(changed.clone()),
            _ => return,
        };
        self.0.insert(change.address.clone(), what);
    }

    fn fires(&self, address: &Address, attribute: Option<&Name>) -> bool {
        match (self.0.get(address), attribute) {
            (None, _) => false,
            (Some(None), _) | (Some(Some(_)), None) => true,
            (Some(Some(changed)), Some(attribute)) => changed.contains(attribute),
        }
    }
}

/// Says whether one of the block's triggers fires for an instance.
pub(super) fn fires(resource: &ResourceConfig, scope: &SpecScope<'_>, changing: &Changing) -> bool {
    resource.lifecycle.replace_triggered_by.iter().any(|item| {
        references(&item.expr, scope)
            .iter()
            .any(|(address, attribute)| changing.fires(address, attribute.as_ref()))
    })
}

/// The resources, and attributes of them, that a trigger names: one reference or a list of them.
fn references(expr: &Expr, scope: &SpecScope<'_>) -> Vec<(Address, Option<Name>)> {
    match &expr.kind {
        Kind::List(items) => items.iter().flat_map(|item| references(item, scope)).collect(),
        Kind::Attribute(base, name) => match instance(base, scope) {
            Some(address) => vec![(address, Some(name.clone()))],
            // Deeper than an attribute: the attribute is what changes.
            None => references(base, scope),
        },
        Kind::Index(base, _) if instance(expr, scope).is_none() => references(base, scope),
        _ => instance(expr, scope).map(|address| (address, None)).into_iter().collect(),
    }
}

fn instance(expr: &Expr, scope: &SpecScope<'_>) -> Option<Address> {
    match &expr.kind {
        Kind::Root(Root::Resource(block)) => Some(block.instance(None)),
        Kind::Index(base, key) => {
            let Kind::Root(Root::Resource(block)) = &base.kind else { return None };
            match evaluate(key, scope).ok()?.value {
                Value::String(key) => Some(block.instance(Some(key))),
                _ => None,
            }
        }
        _ => None,
    }
}
