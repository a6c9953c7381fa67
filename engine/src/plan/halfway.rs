//! What an earlier run left half done: a create that did not come to its end, a delete that went no
//! further than its drain. What such an object is, is Plumb's own doing: it is no change from
//! outside, and a half-made object is nobody's data.

use std::borrow::Cow;

use super::live::stored_attributes;
use super::planner::Live;
use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
use crate::schema::{Attribute, OnChange, Presence, TypeSchema};
use crate::spec::ResourceConfig;
use crate::state::Progress;
use crate::value::{Attributes, Value};

/// An earlier run created the object and did not finish: it still bears its one-time name, or
/// nothing shows its name. A name that is a secret is known by its fingerprint under `key`.
pub(super) fn is_unfinished(
    progress: &Progress,
    live: &Attributes,
    (schema, key): (&TypeSchema, &SealKey),
) -> bool {
    let Progress::Created { nonce, .. } = progress else { return false };
    let name = schema.name_attribute.as_ref();
    match name.and_then(|name| live.get(name)) {
        Some(Value::String(text)) => nonce.is_in(text),
        Some(Value::Sealed(name)) => {
            name.fingerprint == Fingerprint::of(&Value::String(nonce.0.clone()), key)
        }
        _ => true,
    }
}

/// What the attributes of a live object are to be, as far as anybody says so: the spec, but for what
/// it ignores; and for what it ignores, or is silent about, the create that was not finished and
/// the state from before a delete that was not.
pub(super) fn goal<'w>(
    resource: &ResourceConfig,
    wanted: &'w Attributes,
    live: &Live<'_>,
) -> Cow<'w, Attributes> {
    let ignored = &resource.lifecycle.ignore_changes;
    let progress = &live.object.progress;
    if ignored.is_empty() && !matches!(progress, Progress::Deleting { .. }) {
        return Cow::Borrowed(wanted);
    }
    let mut goal = wanted.clone();
    goal.retain(|name, _| !ignored.contains(name) || is_to_come(progress, &resource.schema, name));
    for (name, value) in before_delete(progress, &resource.schema) {
        // What the state knows is nearer to what was left alone than what the spec says of it.
        let value =
            if matches!(value, Value::Null) { wanted.get(&name).cloned() } else { Some(value) };
        if let Some(value) = value.filter(|_| !goal.contains_key(&name)) {
            goal.insert(name, value);
        }
    }
    Cow::Owned(goal)
}

/// Whether a phase of the create that was not done yet gives the attribute its value: until then
/// it has the one of an inert object.
fn is_to_come(progress: &Progress, schema: &TypeSchema, name: &Name) -> bool {
    let Progress::Created { program, done, .. } = progress else { return false };
    let phases = schema.create.get(*program).map_or(&[][..], |program| &program.phases);
    let can_change = schema.attributes.get(name).is_some_and(|it| it.on_change == OnChange::Update);
    can_change && phases.iter().skip(*done).any(|phase| phase.sends.carries(name))
}

/// What the state knew when a delete began, of the attributes that can be given back.
fn before_delete(progress: &Progress, schema: &TypeSchema) -> Attributes {
    let Progress::Deleting { before: Some(before), .. } = progress else {
        return Attributes::new();
    };
    let mut before = stored_attributes(before, schema).unwrap_or_default();
    before.retain(|name, value| {
        schema.attributes.get(name).is_some_and(can_be_given) && !value.holds_sealed()
    });
    before
}

fn can_be_given(attribute: &Attribute) -> bool {
    attribute.presence != Presence::Computed
        && attribute.on_change == OnChange::Update
        && attribute.derived.is_none()
        && !attribute.volatile
}
