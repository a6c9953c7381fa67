//! What a plan learns of secrets from what it hides: the old value of a variable that has become sensitive, and that
//! gets another one at the same time, is in no spec.
//!
//! Where a block still has the variable its place tells what the old value was. From there it is known wherever it
//! stands: in what goes, in what another block had and has no more, in outputs. What stands nowhere else is not
//! known.

use std::sync::Arc;

use crate::address::Name;
use crate::plan::instance::decide::proposal;
use crate::plan::planner::{Draft, Planner};
use crate::plan::{Change, Drift};
use crate::stored::Sealer;
use crate::value::{Attributes, Value};

/// The parts of objects that are hidden, and stood there in clear.
pub(super) fn each_hidden(drafts: &[Draft], found: &mut dyn FnMut(&Value)) {
    for Draft { change, turned, .. } in drafts {
        let (Some(was), Some(sealed)) = (&change.before, turned) else { continue };
        if Arc::ptr_eq(was, sealed) {
            continue;
        }
        let pairs = was.iter().filter_map(|(name, was)| Some((was, sealed.get(name)?)));
        pairs.for_each(|pair| each_in(pair, found));
    }
}

fn each_in((was, sealed): (&Value, &Value), found: &mut dyn FnMut(&Value)) {
    match (was, sealed) {
        (Value::Sealed(_), _) => {}
        (was, Value::Sealed(_)) => found(was),
        (Value::List(was), Value::List(sealed)) => {
            was.iter().zip(sealed.iter()).for_each(|pair| each_in(pair, found));
        }
        (Value::Map(was), Value::Map(sealed)) => {
            let pairs = was.iter().filter_map(|(name, was)| Some((was, sealed.get(name)?)));
            pairs.for_each(|pair| each_in(pair, found));
        }
        _ => {}
    }
}

/// Hides what was learned in what the walk showed before it was known.
pub(in crate::plan) fn hide(planner: &mut Planner<'_>) {
    let Some(sealer) = planner.turned.learned() else { return };
    planner.drafts.iter_mut().for_each(|draft| hide_in(draft, sealer));
    let blocks = &planner.input.config.resources;
    for drift in &mut planner.drift {
        let was = drift.after.clone();
        hide_drift(drift, sealer);
        if let (true, Some(after)) = (drift.after != was, &drift.after) {
            let block = blocks.get(&drift.address.block);
            drift.proposal = block.and_then(|block| proposal(block, &drift.attributes, after));
        }
    }
}

/// What the spec gives, and stays as it is, is shown in clear by the spec itself.
fn hide_in(draft: &mut Draft, sealer: Sealer<'_>) {
    let Draft { change: Change { before, after, managed, .. }, turned, .. } = draft;
    let (Some(was), Some(turned)) = (before, turned) else { return };
    let stays = |name: &Name| after.as_ref().is_some_and(|after| after.get(name) == was.get(name));
    let is_given = |name: &Name| managed.contains(name) && stays(name);
    let sealed = sealed(turned, sealer, &|name| !is_given(name));
    if !sealed.is_empty() {
        Arc::make_mut(turned).extend(sealed);
    }
}

fn hide_drift(drift: &mut Drift, sealer: Sealer<'_>) {
    for attributes in [Some(&mut drift.before), drift.after.as_mut()].into_iter().flatten() {
        let sealed = sealed(attributes, sealer, &|name| drift.attributes.contains(name));
        attributes.extend(sealed);
    }
}

/// What has something of it, sealed.
fn sealed(
    attributes: &Attributes,
    sealer: Sealer<'_>,
    is_meant: &dyn Fn(&Name) -> bool,
) -> Vec<(Name, Value)> {
    let meant = attributes.iter().filter(|(name, _)| is_meant(name));
    let sealed = meant.map(|(name, value)| (name, value, sealer.seal_value(value)));
    let sealed = sealed.filter(|(_, value, sealed)| sealed != *value);
    sealed.map(|(name, _, sealed)| (name.clone(), sealed)).collect()
}
