//! Names: whether what an instance is to be called is free, in the API and in the plan itself.
//!
//! Only names that are known are looked at; of the others the API decides. In which order names
//! pass from one object to the next is for [`crate::plan::schedule`] to say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::address::{Address, Name};
use crate::diagnostics::{Diagnostics, Span};
use crate::digest::{Fingerprint, SealKey};
use crate::plan::decide::diff;
use crate::plan::decide::programs::choose;
use crate::plan::draft::Draft;
use crate::plan::findings::Findings;
use crate::plan::input::{Observations, PlanInput};
use crate::plan::{Action, Change, diagnostics};
use crate::schema::TypeSchema;
use crate::state::ObjectId;
use crate::value::{Attributes, Value};

/// Says where a name is wanted that an object outside the state bears, and remembers which: the plan
/// is made knowing of those, and of no others.
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
    let is_unique = is_own_name(schema, schema.name_attribute.as_ref());
    found.diagnostics.push(if change.action == Action::Create || !is_unique {
        diagnostics::name_is_taken(span, &change.address, name, is_unique, &bearers)
    } else {
        diagnostics::other_bears_name(span, &change.address, name, &bearers)
    });
    found.namesakes.insert(change.address.clone(), bearers);
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
    let attribute = schema.name_attribute.as_ref()?;
    let makes = matches!(change.action, Action::Create | Action::Replace);
    let takes = takes_a_name(change, attribute) && (makes || is_own_name(schema, Some(attribute)));
    match named(change.after.as_deref(), attribute)? {
        Named::Clear(name) => Some(name).filter(|_| takes),
        Named::Number(_) | Named::Secret(_) => None,
    }
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
pub(in crate::plan) fn check_twice(
    input: &PlanInput<'_>,
    drafts: &[Draft],
    found: &mut Diagnostics,
) {
    let mut bearers: BTreeMap<(&Name, &Name, &Name, Named<'_>), Vec<&Draft>> = BTreeMap::new();
    // What was put aside goes, and its name with it, unless it is retained.
    let stays = |draft: &Draft| !draft.change.deposed || draft.change.action == Action::Forget;
    for draft in drafts.iter().filter(|draft| stays(draft)) {
        for (attribute, name) in names_afterwards(draft) {
            let key = (&draft.change.provider, &draft.schema.name, attribute, name);
            bearers.entry(key).or_default().push(draft);
        }
    }
    for ((.., attribute, name), bearers) in bearers.into_iter().filter(|(_, all)| all.len() > 1) {
        // It is the one that takes the name that has to give way.
        let Some(&late) = bearers.iter().rev().find(|draft| takes_a_name(&draft.change, attribute))
        else {
            continue;
        };
        let others: Vec<&Address> = bearers
            .iter()
            .map(|draft| &draft.change.address)
            .filter(|address| **address != late.change.address)
            .collect();
        let span = span_of(input, late, Some(attribute));
        found.push(if others.is_empty() {
            diagnostics::name_stays_taken(span, &late.change.address, &name)
        } else {
            diagnostics::one_name_twice(span, &late.change.address, &name, &others)
        });
    }
}

/// The name that keeps a new object from being made beside the old one: it would have the same, from
/// its first phase on, and there can be only one. Where it is an id, making the one is changing the
/// other, which is then deleted.
pub(in crate::plan) fn in_the_way<'a>(
    change: &Change,
    schema: &'a TypeSchema,
    key: &SealKey,
) -> Option<&'a Name> {
    let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
    let program = choose(&schema.create, Some(after));
    let program = program.and_then(|program| schema.create.get(program))?;
    let stays = |attribute: &Name| {
        let (old, new) = (before.get(attribute), after.get(attribute));
        let known = new.filter(|new| !new.is_null()).zip(old);
        known.is_some_and(|(new, old)| diff::agree(new, old, key))
    };
    let mut names = schema.own_names();
    names.find(|name| schema.naming_phase(program, name) == 0 && stays(name))
}

/// A name, or an id, as a plan knows it: in clear, or, where it is a secret, by its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Named<'a> {
    Clear(&'a str),
    Number(i64),
    Secret(&'a Fingerprint),
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear(name) => write!(f, "\"{name}\""),
            Self::Number(number) => write!(f, "{number}"),
            Self::Secret(_) => f.write_str("the same sensitive text"),
        }
    }
}

/// Whether only one object may have a value of the attribute.
fn is_own_name(schema: &TypeSchema, attribute: Option<&Name>) -> bool {
    schema.own_names().any(|own| Some(own) == attribute)
}

/// Whether an instance takes a name with this plan, and the name is known.
pub(in crate::plan) fn takes_a_name(change: &Change, attribute: &Name) -> bool {
    let after = named(change.after.as_deref(), attribute);
    match change.action {
        Action::Create | Action::Replace => after.is_some(),
        Action::Update | Action::Import => {
            after.is_some() && after != named(change.before.as_deref(), attribute)
        }
        _ => false,
    }
}

/// The names that are borne when the plan is done; what is let go keeps its own, also beside the
/// object that replaces it.
fn names_afterwards(draft: &Draft) -> impl Iterator<Item = (&Name, Named<'_>)> {
    let change = &draft.change;
    let kept = change.action == Action::Forget || draft.retains;
    let before = change.before.as_deref().filter(|_| kept);
    let objects = [change.after.as_deref(), before];
    objects.into_iter().flat_map(|object| own(&draft.schema, object))
}

/// The names of an object that only one may bear, as far as they are known.
pub(in crate::plan) fn own<'a>(
    schema: &'a TypeSchema,
    object: Option<&'a Attributes>,
) -> impl Iterator<Item = (&'a Name, Named<'a>)> {
    schema.own_names().filter_map(move |name| Some((name, named(object, name)?)))
}

/// The name that an object has in an attribute, where it is known.
pub(in crate::plan) fn named<'a>(
    object: Option<&'a Attributes>,
    attribute: &Name,
) -> Option<Named<'a>> {
    match object?.get(attribute)? {
        Value::String(name) => Some(Named::Clear(name)),
        Value::Integer(number) => Some(Named::Number(*number)),
        Value::Sealed(sealed) => Some(Named::Secret(&sealed.fingerprint)),
        _ => None,
    }
}

/// Where the spec gives the name, else where it declares the instance.
fn span_of(input: &PlanInput<'_>, draft: &Draft, name: Option<&Name>) -> Option<Span> {
    let config = input.config.resources.get(&draft.change.address.block);
    config
        .zip(name)
        .and_then(|(resource, name)| resource.attributes.get(name))
        .map(|item| item.value.span)
        .or(draft.change.span)
}
