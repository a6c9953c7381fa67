//! Prunes secrets that no call sends: the expressions of secrets of an object that stays as it is.
//!
//! The text of a spec may contain a secret in clear, and it would stand in a plan file for nothing. The
//! secrets of an object are kept if another change, or an output, refers to the object, because apply then
//! takes them from there.

use std::collections::BTreeSet;

use crate::address::Address;
use crate::expression::Expr;
use crate::plan::{Change, Plan};
use crate::value::Value;

/// Removes the secrets of each object that stays as it is and that nothing in the plan refers to.
pub(in crate::plan) fn prune(plan: &mut Plan) {
    let is_unused = |change: &Change| change.action.is_idle() && !change.secrets.is_empty();
    if !plan.changes.iter().any(is_unused) {
        return;
    }
    let used = used(plan);
    let unused = plan.changes.iter_mut().filter(|change| is_unused(change));
    for change in unused.filter(|change| !used.contains(&change.address)) {
        change.secrets.clear();
    }
}

/// Returns the addresses that the plan's calls and outputs refer to, directly or through others.
fn used(plan: &Plan) -> BTreeSet<Address> {
    let active = plan.changes.iter().filter(|change| !change.action.is_idle());
    let outputs = plan.outputs.values();
    let shown = outputs.clone().filter_map(|output| output.after.as_ref()).cloned();
    let hidden = outputs.filter_map(|output| output.secret.as_ref()).map(unknown);
    let open: Vec<Value> = active.flat_map(residuals).chain(shown).chain(hidden).collect();
    let mut used = BTreeSet::new();
    let mut open: Vec<Address> = plan.referred(&open).into_iter().collect();
    while let Some(address) = open.pop() {
        let of_it: Vec<Value> = plan.change(&address).into_iter().flat_map(residuals).collect();
        if used.insert(address) {
            open.extend(plan.referred(&of_it));
        }
    }
    used
}

/// Returns the values that apply computes for a change.
fn residuals(change: &Change) -> Vec<Value> {
    let after = change.after.iter().flat_map(|after| after.values());
    let open = after.filter(|value| !value.is_known()).cloned();
    open.chain(change.secrets.values().map(unknown)).collect()
}

fn unknown(expr: &Expr) -> Value {
    Value::unknown(crate::types::Type::Any, expr.clone())
}
