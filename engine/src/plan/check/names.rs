//! Names that an instance cannot have: an object outside the state has it, or two objects of the
//! plan would have it.

use std::collections::BTreeSet;

use crate::address::{Address, Name};
use crate::diagnostics::{Diagnostics, Span};
use crate::plan::draft::Draft;
use crate::plan::facts::names::{self, NameTable, Named, takes_a_name};
use crate::plan::findings::Findings;
use crate::plan::input::{Observations, PlanInput};
use crate::plan::{Action, Change, diagnostics};
use crate::schema::TypeSchema;
use crate::state::ObjectId;

/// Reports a name that an object outside the state has, and keeps the ids of such objects in the
/// findings.
pub(in crate::plan) fn check_strangers(input: &PlanInput<'_>, draft: &Draft, found: &mut Findings) {
    let (change, schema) = (&draft.change, &draft.schema);
    let Some(taken) = taken(change, schema, input.observations) else { return };
    let is_imported = |id: &&ObjectId| is_imported(input, change, id);
    let bearers: BTreeSet<ObjectId> =
        taken.bearers.iter().filter(|id| !is_imported(id)).cloned().collect();
    if bearers.is_empty() {
        return;
    }
    let (span, name) = (span_of(input, draft, schema.name_attribute.as_ref()), taken.name);
    let is_unique = names::is_unique(schema, schema.name_attribute.as_ref());
    found.diagnostics.push(if change.action == Action::Create || !is_unique {
        diagnostics::name_is_taken(span, &change.address, name, is_unique, &bearers)
    } else {
        diagnostics::other_bears_name(span, &change.address, name, &bearers)
    });
    found.namesakes.insert(change.address.clone(), bearers);
}

/// A name that a change takes, and that objects outside the state have.
#[derive(Clone, Copy, Debug)]
struct Taken<'a> {
    /// The name.
    pub name: &'a str,
    /// The ids of the objects that have the name.
    pub bearers: &'a [ObjectId],
}

/// Returns the name that a change takes, if it is known and objects outside the state have it. A second
/// object with a name that need not be unique matters only if the change makes it.
fn taken<'a>(
    change: &'a Change,
    schema: &TypeSchema,
    observations: &'a Observations,
) -> Option<Taken<'a>> {
    if observations.strangers.is_empty() {
        return None;
    }
    let name = claimed(change, schema)?;
    let key = (change.provider.clone(), schema.name.clone(), Name::from(name));
    let bearers = observations.strangers.get(&key)?;
    Some(Taken { name, bearers })
}

/// Returns the name that a change takes and that no other object should have; none if it is not known.
fn claimed<'a>(change: &'a Change, schema: &TypeSchema) -> Option<&'a str> {
    let attribute = schema.name_attribute.as_ref()?;
    let makes = matches!(change.action, Action::Create | Action::Replace);
    let takes =
        takes_a_name(change, attribute) && (makes || names::is_unique(schema, Some(attribute)));
    match names::named(change.after.as_deref(), attribute)? {
        Named::Clear(name) => Some(name).filter(|_| takes),
        Named::Number(_) | Named::Secret(_) => None,
    }
}

/// Returns true if this plan imports the object: then the object's own change gives its name after the plan.
fn is_imported(input: &PlanInput<'_>, change: &Change, id: &ObjectId) -> bool {
    let imports = &input.config.imports;
    imports.iter().any(|(address, import)| {
        let config = input.config.resources.get(&address.block);
        // An import does nothing if its address has another object already.
        let entry = input.snapshot.entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        let (provider, ty) = (&change.provider, &change.address.block.ty);
        input.observations.imported(provider, ty, &import.object) == Some(id)
            && current.is_none_or(|current| current.id == *id)
            && address.block.ty == change.address.block.ty
            && config.is_some_and(|resource| resource.provider.of(address) == change.provider)
    })
}

/// Refuses two objects of the plan with the same unique name. The error is about the draft that takes the
/// name.
pub(in crate::plan) fn check_conflicts(
    input: &PlanInput<'_>,
    drafts: &[Draft],
    names: &NameTable<'_>,
    found: &mut Diagnostics,
) {
    for (key, holders) in names.conflicts() {
        let holders = holders.iter().map(|&index| &drafts[index]);
        let takes = |draft: &&Draft| takes_a_name(&draft.change, key.attribute);
        let Some(late) = holders.clone().rfind(takes) else { continue };
        let late_address = &late.change.address;
        let others: Vec<&Address> = holders
            .map(|draft| &draft.change.address)
            .filter(|address| *address != late_address)
            .collect();
        let span = span_of(input, late, Some(key.attribute));
        found.push(if others.is_empty() {
            diagnostics::name_stays_taken(span, late_address, &key.name)
        } else {
            diagnostics::one_name_twice(span, late_address, &key.name, &others)
        });
    }
}

/// Returns the place where the spec gives the name, else where it declares the instance.
fn span_of(input: &PlanInput<'_>, draft: &Draft, name: Option<&Name>) -> Option<Span> {
    let config = input.config.resources.get(&draft.change.address.block);
    config
        .zip(name)
        .and_then(|(resource, name)| resource.attributes.get(name))
        .map(|item| item.value.span)
        .or(draft.change.span)
}
