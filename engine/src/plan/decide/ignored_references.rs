//! References in attributes whose changes an instance ignores (`lifecycle.ignore_changes`).

use std::collections::BTreeSet;

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::plan::decide::diff;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::facts::references::{each_text, objects};
use crate::plan::input::PlanInput;
use crate::plan::{Action, Change};
use crate::sorted::Set;
use crate::state::Object;

/// Returns the objects that an instance still names because it ignores changes of an attribute. They are
/// among those that it depended on, will depend on, or refers to.
pub(in crate::plan) fn kept<'a>(
    input: &PlanInput<'a>,
    resource: &ResourceConfig,
    change: &Change,
    referred: &Set<Address>,
) -> Vec<(&'a Address, &'a Object)> {
    let stays = matches!(change.action, Action::NoOp | Action::Update | Action::Import);
    let ignored = &resource.lifecycle.ignore_changes;
    if ignored.is_empty() || !stays || change.deposed {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    for value in ignored.iter().filter_map(|name| change.after.as_ref()?.get(name)) {
        each_text(value, &mut |text| {
            names.insert(text);
        });
    }
    let entries = &input.snapshot.entries;
    let before = entries.get(&change.address).into_iter().flat_map(|entry| &entry.dependencies);
    let dependencies: BTreeSet<&Address> =
        before.chain(&change.dependencies).chain(referred).collect();
    let known = dependencies.into_iter().filter_map(|on| entries.get_key_value(on));
    known
        .flat_map(|(address, entry)| objects(entry).map(move |object| (address, object)))
        .filter(|(_, object)| names.contains(&*object.id.0))
        .collect()
}

/// Adds the dependencies of an instance that ignores changes of an attribute. A reference in such an
/// attribute is not sent to an object that exists. So the instance depends on the object that the live value
/// came from, even if that object has left the spec. A recorded reference that was never sent could close a
/// circle in the state.
pub(in crate::plan) fn remember(
    input: &PlanInput<'_>,
    resource: &ResourceConfig,
    wanted: &Wanted,
    change: &mut Change,
) {
    let is_new = change.object.is_none() || change.action == Action::Replace;
    let mut referred = Set::new();
    for (name, touched) in &wanted.ignored {
        referred.extend(touched.iter().cloned());
        let sent = |on: &&Address| is_new || came_from(input, wanted, change, (name, on));
        let sent: Vec<Address> = touched.iter().filter(sent).cloned().collect();
        change.dependencies.extend(sent);
    }
    for (address, _) in kept(input, resource, change, &referred) {
        // Another resource of the spec may have to come after this instance.
        if referred.contains(address) || !input.config.resources.contains_key(&address.block) {
            change.dependencies.insert(address.clone());
        }
    }
}

/// Returns true if the live value of an attribute came from the object that the spec still refers to there.
/// If the value of the reference is known only after apply, the dependencies in the state decide.
fn came_from(
    input: &PlanInput<'_>,
    wanted: &Wanted,
    change: &Change,
    (name, on): (&Name, &Address),
) -> bool {
    let Some(value) = wanted.attributes.get(name) else { return false };
    if !value.is_known() {
        let entry = input.snapshot.entries.get(&change.address);
        return entry.is_some_and(|entry| entry.dependencies.contains(on));
    }
    let live = change.before.as_ref().and_then(|before| before.get(name));
    live.is_some_and(|live| diff::agree(value, live, &input.snapshot.seal_key))
}
