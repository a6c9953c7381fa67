//! Names: whether what an instance is to be called is free, in the API and in the plan itself.
//!
//! Only names that are known are looked at; of the others the API decides. In which order names
//! pass from one object to the next is for [`super::lower`] to say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::input::{Observations, PlanInput};
use super::planner::{Draft, Notes};
use super::{Action, Change, diagnostics};
use crate::address::{Address, Name};
use crate::diagnostics::{Diagnostics, Span};
use crate::digest::Fingerprint;
use crate::schema::TypeSchema;
use crate::state::ObjectId;
use crate::value::{Attributes, Value};

/// Says where a name is wanted that an object outside the state bears, and remembers which: the plan
/// is made knowing of those, and of no others.
pub(super) fn check_strangers(input: &PlanInput<'_>, draft: &Draft, found: &mut Notes) {
    let (change, schema) = (&draft.change, &draft.schema);
    let Some(taken) = taken(change, schema, input.observations) else { return };
    let is_imported = |id: &&ObjectId| is_imported(input, change, id);
    let bearers: BTreeSet<ObjectId> =
        taken.bearers.iter().filter(|id| !is_imported(id)).cloned().collect();
    if bearers.is_empty() {
        return;
    }
    let ids = bearers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (span, name) = (span_of(input, draft), taken.name);
    found.diagnostics.push(if change.action == Action::Create || !schema.unique_name {
        diagnostics::name_is_taken(span, &change.address, name, schema.unique_name, &ids)
    } else {
        diagnostics::other_bears_name(span, &change.address, name, &ids)
    });
    found.namesakes.push((change.address.clone(), bearers));
}

/// A name that a change takes, and objects outside the state bear.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The name.
    pub name: &'a str,
    /// Who bears it.
    pub bearers: &'a [ObjectId],
}

/// The name that a change takes, where it is known and objects outside the state bear it. A second
/// bearer of a name that need not be unique matters only where it is made.
pub fn taken<'a>(
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

/// The name that a change takes and that nobody else should bear, where it is known.
pub fn claimed<'a>(change: &'a Change, schema: &TypeSchema) -> Option<&'a str> {
    let makes = matches!(change.action, Action::Create | Action::Replace);
    taken_name(change, schema).filter(|_| makes || schema.unique_name)
}

/// Whether this plan takes the object over: what it is called afterwards, its own change says.
fn is_imported(input: &PlanInput<'_>, change: &Change, id: &ObjectId) -> bool {
    let imports = &input.config.imports;
    imports.iter().any(|(address, import)| {
        let config = input.config.resources.get(&address.block);
        // One for an address that stands for something else already takes nothing over.
        let entry = input.snapshot.entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        import.id == *id
            && current.is_none_or(|current| current.id == import.id)
            && address.block.ty == change.address.block.ty
            && config.is_some_and(|resource| resource.provider == change.provider)
    })
}

/// Says where two of the plan's objects are to bear one name that must be unique.
pub(super) fn check_twice(input: &PlanInput<'_>, drafts: &[Draft], found: &mut Diagnostics) {
    let mut bearers: BTreeMap<(&Name, &Name, Named<'_>), Vec<&Draft>> = BTreeMap::new();
    // What was put aside goes, and its name with it, unless it is retained.
    let stays = |draft: &Draft| !draft.change.deposed || draft.change.action == Action::Forget;
    for draft in drafts.iter().filter(|draft| draft.schema.unique_name && stays(draft)) {
        for name in names_afterwards(draft) {
            let key = (&draft.change.provider, &draft.schema.name, name);
            bearers.entry(key).or_default().push(draft);
        }
    }
    for ((_, _, name), bearers) in bearers.into_iter().filter(|(_, bearers)| bearers.len() > 1) {
        // It is the one that takes the name that has to give way.
        let Some(&late) =
            bearers.iter().rev().find(|draft| takes_a_name(&draft.change, &draft.schema))
        else {
            continue;
        };
        let others: Vec<&Address> = bearers
            .iter()
            .map(|draft| &draft.change.address)
            .filter(|address| **address != late.change.address)
            .collect();
        let span = span_of(input, late);
        found.push(if others.is_empty() {
            diagnostics::name_stays_taken(span, &late.change.address, &name)
        } else {
            diagnostics::one_name_twice(span, &late.change.address, &name, &others)
        });
    }
}

/// A name as a plan knows it: in clear, or, where it is a secret, by its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named<'a> {
    Clear(&'a str),
    Secret(&'a Fingerprint),
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear(name) => write!(f, "\"{name}\""),
            Self::Secret(_) => f.write_str("the same sensitive text"),
        }
    }
}

/// The name that an instance takes with this plan, where it is known in clear.
fn taken_name<'a>(change: &'a Change, schema: &TypeSchema) -> Option<&'a str> {
    let after = name_in(schema, change.after.as_deref())?;
    takes_a_name(change, schema).then_some(after)
}

/// Whether an instance takes a name with this plan, and the name is known.
fn takes_a_name(change: &Change, schema: &TypeSchema) -> bool {
    let after = named_in(schema, change.after.as_deref());
    match change.action {
        Action::Create | Action::Replace => after.is_some(),
        Action::Update | Action::Import => {
            after.is_some() && after != named_in(schema, change.before.as_deref())
        }
        _ => false,
    }
}

/// The names that are borne when the plan is done; what is let go keeps its own, also beside the
/// object that replaces it.
fn names_afterwards(draft: &Draft) -> impl Iterator<Item = Named<'_>> {
    let change = &draft.change;
    let kept = change.action == Action::Forget || draft.retains;
    let before = change.before.as_deref().filter(|_| kept);
    let objects = [change.after.as_deref(), before];
    objects.into_iter().filter_map(|object| named_in(&draft.schema, object))
}

fn name_in<'a>(schema: &TypeSchema, object: Option<&'a Attributes>) -> Option<&'a str> {
    match named_in(schema, object)? {
        Named::Clear(name) => Some(name),
        Named::Secret(_) => None,
    }
}

fn named_in<'a>(schema: &TypeSchema, object: Option<&'a Attributes>) -> Option<Named<'a>> {
    match object?.get(schema.name_attribute.as_ref()?)? {
        Value::String(name) => Some(Named::Clear(name)),
        Value::Sealed(sealed) => Some(Named::Secret(&sealed.fingerprint)),
        _ => None,
    }
}

/// Where the spec gives the name, else where it declares the instance.
fn span_of(input: &PlanInput<'_>, draft: &Draft) -> Option<Span> {
    let config = input.config.resources.get(&draft.change.address.block);
    let name = draft.schema.name_attribute.as_ref();
    config
        .zip(name)
        .and_then(|(resource, name)| resource.attributes.get(name))
        .map(|item| item.value.span)
        .or(draft.change.span)
}
