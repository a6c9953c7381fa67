//! What an earlier run left half done: a create or an update that did not come to its end, a delete
//! that went no further than its drain. What such an object is, is Plumb's own doing: it is no change from
//! outside, and a half-made object is nobody's data.

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

/// Returns true if an earlier run made the object and did not get as far as its name: it still bears its
/// one-time name, or nothing shows its name. Nobody knows it, so it is nobody's data. A name that is a
/// secret is known by its fingerprint under `key`.
pub(in crate::plan) fn is_half_made(
    progress: &Progress,
    live: &Attributes,
    (schema, key): (&TypeSchema, &SealKey),
) -> bool {
    let Progress::Created { program, done, called, nonce } = progress else { return false };
    let phases = schema.create.get(*program).map_or(0, |program| program.phases.len());
    // All that is left is to wait.
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
    /// Which program.
    pub(in crate::plan) kind: ProgramKind,
    pub(in crate::plan) program: usize,
    /// The first phase that is not done.
    pub(in crate::plan) from: usize,
    /// True if its call did its work, so that only its wait is left.
    pub(in crate::plan) called: bool,
}

/// What is left of a program that an earlier run began, where the object differs in `changed` from
/// what it is to be. A phase whose answer was lost is done where the object shows what it sends;
/// what one does that sends nothing no object shows, and a wait is over only when it was waited for.
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

/// The whole update program, for an object that a delete has stopped and that is wanted again: it ends
/// with what starts the object, where the type has that.
fn restart(live: &Live<'_>, schema: &TypeSchema) -> Option<RemainingPhases> {
    let program = choose(&schema.update, Judged::live(Some(&live.attributes)))?;
    let starts = schema.update[program].phases.iter().any(acts_only);
    let is_due = starts && may_be_stopped(live, schema);
    is_due.then_some(RemainingPhases { kind: ProgramKind::Update, program, from: 0, called: false })
}

/// Returns true if a delete that was not finished may have done to an object what none of its attributes shows:
/// what a phase does that sends nothing, such as to stop it.
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

    /// Returns the indexes of the phases that are left. Before an update that sends all that differs, nothing else
    /// of an update is left to send: what it would send may be wanted no more. What its phases do that send nothing,
    /// such as to start what they stopped, is left.
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

    /// Returns true if one of its calls carries an attribute.
    pub(in crate::plan) fn carries(self, phases: &[Phase], name: &Name) -> bool {
        let calls = self.from + usize::from(self.called);
        phases.iter().skip(calls).any(|phase| phase.carries(name))
    }
}

/// What the attributes of a live object are to be, as far as anybody says so: the spec, but for what
/// it ignores; and for what it ignores, or is silent about, the create that was not finished and
/// the state from before a delete that was not.
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
        // What the state knows is nearer to what was left alone than what the spec says of it.
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

/// Returns true if an attribute follows one that is to be another now: what it was is of what that was.
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

/// Returns true if a phase of the create that was not done yet gives the attribute its value: until then
/// it has the one of an inert object.
fn is_given_later(progress: &Progress, schema: &TypeSchema, name: &Name) -> bool {
    let Progress::Created { program, done, called, .. } = *progress else { return false };
    let phases = schema.create.get(program).map_or(&[][..], |program| &program.phases);
    let can_change = schema.attributes.get(name).is_some_and(|it| it.on_change == OnChange::Update);
    let rest = RemainingPhases { kind: ProgramKind::Create, program, from: done, called };
    can_change && rest.carries(phases, name)
}

/// Returns true if what an API computes of an object comes with the end of what an earlier run began. What is half
/// made often shows something else so far: nothing, or what is made of its one-time name. All else
/// stands: who has come to depend on it must not be replaced for its sake.
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

/// The attributes that a delete which was not finished has changed, and that could be given back.
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
