//! Work that an earlier run left half done: a create or an update that did not come to its end, or a delete
//! that went no further than its drain. Plumb itself brought such an object into its state, so that state is
//! no drift, and a half-made object holds nobody's data.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::address::Name;
use crate::config::ResourceConfig;
use crate::digest::SealKey;
use crate::journal::ProgramKind;
use crate::plan::decide::diff;
use crate::plan::decide::programs::{Judged, choose};
use crate::plan::facts::prior::Live;
use crate::plan::facts::prior::stored_attributes;
use crate::schema::{Attribute, OnChange, Phase, Presence, TypeSchema};
use crate::state::{Nonce, Progress};
use crate::value::{Attributes, Value};

/// Returns true if an earlier run made the object and did not give it its name yet: the object still bears
/// its one-time name, or no answer shows its name. Nobody knows such an object, so it holds nobody's data. If
/// the name is a secret, its fingerprint under `key` is compared.
pub(in crate::plan) fn is_half_made(
    progress: &Progress,
    live: &Attributes,
    (schema, key): (&TypeSchema, &SealKey),
) -> bool {
    let Progress::Created { program, done, called, nonce } = progress else { return false };
    let phases = schema.create.get(*program).map_or(0, |program| program.phases.len());
    // Only a wait is left.
    if *called && done + 1 >= phases {
        return false;
    }
    let name = schema.name_attribute.as_ref();
    match name.and_then(|name| live.get(name)) {
        Some(Value::String(text)) => nonce.is_in(text),
        Some(Value::Sealed(name)) => nonce.is_behind(name, key),
        _ => true,
    }
}

/// The last phases of a program that an earlier run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) struct RemainingPhases {
    /// The kind of the program.
    pub(in crate::plan) kind: ProgramKind,
    pub(in crate::plan) program: usize,
    /// The first phase that is not done.
    pub(in crate::plan) from: usize,
    /// True if its call did its work, so that only its wait is left.
    pub(in crate::plan) called: bool,
}

/// Returns the phases of a program that an earlier run began and did not finish; none if there are none.
/// `changed` has the attributes in which the object differs from the goal. A phase whose answer was lost is
/// done if the object shows what the phase sends. A phase that sends nothing leaves no trace in the object,
/// so it is never taken as done. A wait is over only if a run has waited for it.
pub(in crate::plan) fn rest(
    live: &Live<'_>,
    changed: &BTreeSet<Name>,
    (schema, key): (&TypeSchema, &SealKey),
) -> Option<RemainingPhases> {
    let progress = &live.object.progress;
    let (kind, program, done, called) = match *progress {
        Progress::Created { program, done, called, .. } => {
            (ProgramKind::Create, program, done, called)
        }
        Progress::Updating { program, done, called } => {
            (ProgramKind::Update, program, done, called)
        }
        Progress::Deleting { .. } => return restart(live, schema),
        Progress::Ready => return None,
    };
    let begun = RemainingPhases { kind, program, from: done, called };
    if is_half_made(progress, &live.attributes, (schema, key)) {
        return Some(begun);
    }
    let phases = &schema.programs(kind).get(program)?.phases;
    begun.unless_shown(phases, changed)
}

/// Returns the whole update program, for an object that a delete has stopped and that the spec wants again:
/// the program ends with the phase that starts the object. None if the type has no such phase.
fn restart(live: &Live<'_>, schema: &TypeSchema) -> Option<RemainingPhases> {
    let program = choose(&schema.update, Judged::live(Some(&live.attributes)))?;
    let starts = schema.update[program].phases.iter().any(acts_only);
    let is_due = starts && may_be_stopped(live, schema);
    is_due.then_some(RemainingPhases { kind: ProgramKind::Update, program, from: 0, called: false })
}

/// Returns true if an unfinished delete may have changed something that no attribute of the object shows: the
/// effect of a phase that sends nothing, such as one that stops the object.
pub(in crate::plan) fn may_be_stopped(live: &Live<'_>, schema: &TypeSchema) -> bool {
    let Progress::Deleting { done, .. } = live.object.progress else { return false };
    let program = choose(&schema.delete, Judged::live(Some(&live.attributes)));
    let phases = program.map_or(&[][..], |program| &schema.delete[program].phases);
    let drains = phases.len().saturating_sub(1);
    phases.iter().take(drains.min(done + 1)).any(acts_only)
}

fn acts_only(phase: &Phase) -> bool {
    !phase.sends.is_anything()
}

impl RemainingPhases {
    fn unless_shown(mut self, phases: &[Phase], changed: &BTreeSet<Name>) -> Option<Self> {
        while let Some(phase) = phases.get(self.from) {
            let differs = changed.iter().any(|name| phase.carries(name));
            if self.called || differs || !phase.sends.is_anything() {
                return Some(self);
            }
            if phase.waits_for.is_some() {
                self.called = true;
            } else {
                self.from += 1;
            }
        }
        None
    }

    /// Returns the indexes of the phases that are left. If a complete update follows, an unfinished update
    /// sends no more attributes, because their values may be out of date. Its phases that send nothing are
    /// still left, such as the one that starts the object again.
    pub(in crate::plan) fn left(
        self,
        phases: &[Phase],
        is_before_update: bool,
    ) -> impl Iterator<Item = usize> {
        let sends_no_more = is_before_update && self.kind == ProgramKind::Update;
        (self.from..phases.len()).filter(move |&index| {
            let waits = self.called && index == self.from;
            !sends_no_more || waits || acts_only(&phases[index])
        })
    }

    /// Returns true if one of the remaining calls carries an attribute.
    pub(in crate::plan) fn carries(self, phases: &[Phase], name: &Name) -> bool {
        let calls = self.from + usize::from(self.called);
        phases.iter().skip(calls).any(|phase| phase.carries(name))
    }
}

/// Returns the attributes that a live object is to have, as far as anything gives them. The spec gives the
/// values of attributes that it does not ignore. For the others, an unfinished create gives the values that
/// it has not sent yet, and an unfinished delete gives those from before it began.
pub(in crate::plan) fn goal<'w>(
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
    goal.retain(|name, _| {
        !ignored.contains(name) || is_given_later(progress, &resource.schema, name)
    });
    for (name, value) in before_delete(progress, &resource.schema) {
        // For an attribute that was left alone, the value in the state is closer to the truth than the
        // spec's.
        let value =
            if matches!(value, Value::Null) { wanted.get(&name).cloned() } else { Some(value) };
        let is_silent =
            !goal.contains_key(&name) && !is_derived_anew(&name, resource, (wanted, live));
        if let Some(value) = value.filter(|_| is_silent) {
            goal.insert(name, value);
        }
    }
    Cow::Owned(goal)
}

/// Returns true if the attribute follows another one whose value changes: its old value belongs to the
/// other's old value.
pub(in crate::plan) fn is_derived_anew(
    name: &Name,
    resource: &ResourceConfig,
    (wanted, live): (&Attributes, &Live<'_>),
) -> bool {
    let follows = resource.schema.attributes.get(name).and_then(|it| it.follows.as_ref());
    follows.is_some_and(|leader| {
        let now = live.attributes.get(leader).unwrap_or(&Value::Null);
        wanted.get(leader).is_some_and(|wanted| !wanted.is_null() && !wanted.same(now))
    })
}

/// Returns true if a phase of the create that is not done yet gives the attribute its value: until then it
/// has the value of an inert object.
fn is_given_later(progress: &Progress, schema: &TypeSchema, name: &Name) -> bool {
    let Progress::Created { program, done, called, .. } = *progress else { return false };
    let phases = schema.create.get(program).map_or(&[][..], |program| &program.phases);
    let can_change = schema.attributes.get(name).is_some_and(|it| it.on_change == OnChange::Update);
    let rest = RemainingPhases { kind: ProgramKind::Create, program, from: done, called };
    can_change && rest.carries(phases, name)
}

/// Returns true if the API will compute the attribute anew when the unfinished operation ends. A half-made
/// object often shows a provisional value: nothing, or a value made of its one-time name. All other values
/// stay: an object that depends on one must not be replaced because of it.
pub(in crate::plan) fn is_to_come(
    attribute: &Attribute,
    value: &Value,
    (live, rest): (&Live<'_>, Option<RemainingPhases>),
) -> bool {
    attribute.presence == Presence::Computed
        && match (&live.object.progress, rest) {
            (_, None) => false,
            (Progress::Created { nonce, .. }, Some(_)) => is_provisional(value, nonce),
            (_, Some(_)) => value.is_null(),
        }
}

fn is_provisional(value: &Value, nonce: &Nonce) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || nonce.is_in(text),
        _ => shows_nonce(value, nonce),
    }
}

fn shows_nonce(value: &Value, nonce: &Nonce) -> bool {
    match value {
        Value::String(text) => nonce.is_in(text),
        Value::List(items) | Value::Set(items) => items.iter().any(|item| shows_nonce(item, nonce)),
        Value::Map(entries) => entries.iter().any(|(_, value)| shows_nonce(value, nonce)),
        _ => false,
    }
}

/// Returns the attributes from before a delete that began, as far as an update can set them again.
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

/// Returns the attributes that an unfinished delete has changed, and that an update could set again.
pub(in crate::plan) fn drained(
    live: &Live<'_>,
    (schema, key): (&TypeSchema, &SealKey),
) -> BTreeSet<Name> {
    let before = before_delete(&live.object.progress, schema);
    diff::differing(before.keys(), (&before, &live.attributes), (schema, key))
}

fn can_be_given(attribute: &Attribute) -> bool {
    attribute.presence != Presence::Computed
        && attribute.on_change == OnChange::Update
        && attribute.derived.is_none()
        && !attribute.volatile
}
