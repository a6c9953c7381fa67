//! References of `lifecycle.replace_triggered_by`.

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::expression::evaluate::{Scope as _, evaluate};
use crate::expression::{Expr, Kind, Root};
use crate::plan::evaluate::scope::SpecScope;
use crate::value::Value;

/// Makes the scope remember the resources that a block's triggers name, so that they become
/// dependencies: a replace comes after the changes that trigger it.
pub(in crate::plan) fn touch(resource: &ResourceConfig, scope: &SpecScope<'_>) {
    for (address, _) in all(resource, scope) {
        // The resolution has already reported a resource that does not exist.
        let _seen = scope.resource(&address.block, address.key.as_deref());
    }
}

/// A resource, or one attribute of it, that a trigger names.
pub(in crate::plan) type Reference = (Address, Option<Name>);

/// Returns the references of a block's triggers.
pub(in crate::plan) fn all(resource: &ResourceConfig, scope: &SpecScope<'_>) -> Vec<Reference> {
    let triggers = &resource.lifecycle.replace_triggered_by;
    triggers.iter().flat_map(|item| references(&item.expr, scope)).collect()
}

/// Returns the resources, and attributes of them, that a trigger names: one reference or a list of them.
fn references(expr: &Expr, scope: &SpecScope<'_>) -> Vec<Reference> {
    match &expr.kind {
        Kind::List(items) => items.iter().flat_map(|item| references(item, scope)).collect(),
        Kind::Attribute(base, name) => match instance(base, scope) {
            Some(address) => vec![(address, Some(name.clone()))],
            // The reference goes deeper than an attribute: the trigger watches the whole attribute.
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
