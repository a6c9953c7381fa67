//! What the addresses of a state have to do with a plan that it does not do itself: who uses what it ends, and who
//! bears the names that it gives. Who applies a saved plan asks both again.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::address::{Address, Name};
use crate::journal::ProgramKind;
use crate::plan::facts::names::{self, Named, takes_a_name};
use crate::plan::facts::prior::stored_attributes;
use crate::plan::facts::references::each_text;
use crate::plan::{Action, Change, Plan, Step};
use crate::schema::TypeSchema;
use crate::state::{self, Snapshot};
use crate::value::Value;

/// The addresses that use what a plan ends, as a state says, by the address of what they use. Those are left out
/// whose own objects the plan is held against: they are as it knows them.
pub fn users(plan: &Plan, snapshot: &Snapshot) -> BTreeMap<Address, BTreeSet<Address>> {
    let ended = ended(plan);
    let mut users: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    if ended.is_empty() {
        return users;
    }
    let is_ended = |address: &&Address| {
        let entry = snapshot.entries.get(*address);
        let object = entry.and_then(|entry| Some((&entry.provider, entry.current.as_ref()?)));
        let ended = object.and_then(|(provider, object)| ended.get(&(provider, &*object.id.0)));
        ended.is_some_and(|ended| ended.contains(address))
    };
    for (user, entry) in &snapshot.entries {
        if entry.current.is_none() || plan.base.objects.contains_key(user) {
            continue;
        }
        let mut used: BTreeSet<&Address> = entry.dependencies.iter().filter(is_ended).collect();
        each_given(entry, &mut |text| {
            used.extend(ended.get(&(&entry.provider, text)).into_iter().flatten());
        });
        for used in used.into_iter().filter(|used| *used != user) {
            users.entry(used.clone()).or_default().insert(user.clone());
        }
    }
    users
}

/// The objects that a plan deletes, by provider instance and id: each with its address, and with those of other types
/// that have the same id.
fn ended(plan: &Plan) -> FxHashMap<(&Name, &str), Vec<&Address>> {
    let mut ended: FxHashMap<(&Name, &str), Vec<&Address>> = FxHashMap::default();
    let is_delete =
        |step: &&Step| step.phase.is_some_and(|phase| phase.kind == ProgramKind::Delete);
    for step in plan.steps.iter().filter(is_delete) {
        let Some(change) = plan.changes.get(step.change) else { continue };
        if let Some(object) = &change.object {
            ended.entry((&change.provider, &object.0)).or_default().push(&change.address);
        }
    }
    ended
}

/// Calls `visit` for each text in what the spec gives of an object.
fn each_given<'e>(entry: &'e state::Entry, visit: &mut dyn FnMut(&'e str)) {
    let Some(object) = &entry.current else { return };
    let Value::Map(attributes) = &object.attributes.json else { return };
    for value in object.managed.iter().filter_map(|name| attributes.get(name)) {
        each_text(value, visit);
    }
}

/// The addresses whose objects bear a name, as a state says, that a plan gives to another one and of which there can be
/// only one: by the address that it is given to, and with the name as it may be shown.
pub fn bearers(
    plan: &Plan,
    schema: &dyn Fn(&Change) -> Option<Arc<TypeSchema>>,
    snapshot: &Snapshot,
) -> BTreeMap<Address, BTreeMap<Address, String>> {
    let mut bearers: BTreeMap<Address, BTreeMap<Address, String>> = BTreeMap::new();
    if snapshot.entries.is_empty() {
        return bearers;
    }
    let schemas = named_types(plan, schema);
    let mut given: BTreeMap<(&Name, &Name, &Name, Named<'_>), &Address> = BTreeMap::new();
    for change in &plan.changes {
        let (provider, ty) = (&change.provider, &change.address.block.ty);
        let Some(schema) = schemas.get(&(provider, ty)) else { continue };
        let names = names::own(schema, change.after.as_deref());
        let names = names.filter(|(attribute, _)| takes_a_name(change, attribute));
        given.extend(
            names.map(|(attribute, name)| ((provider, ty, attribute, name), &change.address)),
        );
    }
    if given.is_empty() {
        return bearers;
    }
    for (by, entry) in &snapshot.entries {
        let (provider, ty) = (&entry.provider, &by.block.ty);
        let Some(schema) = schemas.get(&(provider, ty)) else { continue };
        let Some(object) = &entry.current else { continue };
        let Ok(attributes) = stored_attributes(&object.attributes, schema) else { continue };
        for (attribute, name) in names::own(schema, Some(&attributes)) {
            let to = given.get(&(provider, ty, attribute, name)).filter(|to| **to != by);
            if let Some(to) = to {
                let all = bearers.entry(Address::clone(to)).or_default();
                all.insert(by.clone(), name.to_string());
            }
        }
    }
    bearers
}

/// The types of what a plan may give names to, by provider instance and name.
fn named_types<'p>(
    plan: &'p Plan,
    schema: &dyn Fn(&Change) -> Option<Arc<TypeSchema>>,
) -> BTreeMap<(&'p Name, &'p Name), Arc<TypeSchema>> {
    let mut types = BTreeMap::new();
    for change in plan.changes.iter().filter(|change| change.action != Action::NoOp) {
        if let Entry::Vacant(place) = types.entry((&change.provider, &change.address.block.ty))
            && let Some(schema) = schema(change)
        {
            place.insert(schema);
        }
    }
    types
}
