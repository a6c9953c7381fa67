//! What an object shows of a change of it whose answer was lost, and what no object shows.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::{PhaseRef, ProgramKind, Started};
use engine::plan::agree;
use engine::schema::{SeenIn, Sends, TypeSchema};
use engine::sorted::Set;
use engine::value::{Attributes, Value};

use super::InFlight;

/// What an object shows of a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// That it happened.
    Done,
    /// That it did not: what the object shows would be another.
    Nothing,
    /// Nothing of it: it changed what no answer shows, or does something and sends nothing.
    Unknown,
}

/// What an object shows of an in-doubt change of it. What the call changed and no answer ever shows
/// proves nothing: the change is sent again rather than believed.
pub(super) fn shown(
    flight: &InFlight,
    changed: &BTreeSet<Name>,
    object: &provider_port::Object,
) -> Shown {
    let InFlight { started, schema, desired, .. } = flight;
    // A drain and a wait may always be repeated, and a delete left an object that is there.
    if started.phase.kind == ProgramKind::Delete || !started.phase.calls() {
        return Shown::Nothing;
    }
    if acts_only(schema, started.phase) && (started.phase.phases > 1 || changed.is_empty()) {
        return Shown::Unknown;
    }
    // Both sides are in clear here, so no fingerprint is made of either: any key does.
    let key = SealKey::from_random([0; 32]);
    let shows = |name: &Name, wanted: &Value| {
        let live = object.attributes.get(name).unwrap_or(&Value::Null);
        agree(wanted, live, &key)
    };
    let phase = started.phase;
    let sent = started.managed.iter().filter(|name| sends(schema, phase, changed, name));
    let mut visible = sent.filter(|name| !is_hidden(schema, name));
    if !visible.all(|name| desired.get(name).is_none_or(|wanted| shows(name, wanted))) {
        return Shown::Nothing;
    }
    if started.unshown.is_empty() { Shown::Done } else { Shown::Unknown }
}

/// The attributes to which a call gives another value than the one that is known, and which no
/// answer shows.
pub(super) fn unshown(
    schema: &TypeSchema,
    started: &Started,
    changed: &BTreeSet<Name>,
    desired: &Attributes,
    known: &Attributes,
    key: &SealKey,
) -> Set<Name> {
    let differs = |name: &Name, wanted: &Value| {
        let known = known.get(name).unwrap_or(&Value::Null);
        !agree(wanted, known, key)
    };
    let carried = desired
        .iter()
        .filter(|(name, _)| is_hidden(schema, name) && sends(schema, started.phase, changed, name));
    carried.filter(|(name, wanted)| differs(name, wanted)).map(|(name, _)| name.clone()).collect()
}

/// Returns true if no answer shows an attribute.
pub(super) fn is_hidden(schema: &TypeSchema, name: &Name) -> bool {
    schema.attributes.get(name).is_none_or(|attribute| attribute.seen_in == SeenIn::Never)
}

/// Returns true if a call does something without sending attributes.
fn acts_only(schema: &TypeSchema, phase: PhaseRef) -> bool {
    schema.phase(phase).is_some_and(|phase| !phase.sends.is_anything())
}

/// Returns true if the phase of a call is about an attribute.
pub(super) fn sends(
    schema: &TypeSchema,
    phase: PhaseRef,
    changed: &BTreeSet<Name>,
    name: &Name,
) -> bool {
    match schema.phase(phase) {
        Some(model) if model.sends == Sends::Changed => changed.contains(name),
        // Whatever it does, it is all that is done about what changes.
        Some(_) if acts_only(schema, phase) => changed.contains(name),
        Some(_) => gives(schema, phase, name),
        None => false,
    }
}

/// Returns true if an object has its value of an attribute once the phase of a call is done: what the call
/// carries, and what no API knows.
pub(super) fn gives(schema: &TypeSchema, phase: PhaseRef, name: &Name) -> bool {
    let is_local = || schema.attributes.get(name).is_some_and(|attribute| attribute.local);
    schema.phase(phase).is_some_and(|phase| phase.carries(name) || is_local())
}
