//! Secrets that a delete sends before its end: an API that takes whole objects wants all of the object
//! again when its work is to end, and the state has fingerprints only.
//!
//! They are what the plan's own expressions say, where that is still the same, else what reading the
//! object shows. What neither knows is left out: the object goes, and until it has gone, nobody knows
//! what it has of that.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::address::Name;
use engine::journal::{PhaseRef, ProgramKind, Started};
use engine::plan::facts::prior::overlay;
use engine::plan::{Change, Step, StepId, agree};
use engine::schema::TypeSchema;
use engine::sorted::Set;
use engine::state::ObjectId;
use engine::value::{Attributes, Path, Paths, Value};
use provider_port::{Error, Kind, Provider};

use super::StepContext;
use super::call::InFlight;
use crate::fill::known;
use crate::unseal::Unsealer;

impl StepContext<'_> {
    /// The sensitive places of what a call sends and shows. A delete is of the object that is there,
    /// whatever its successor's are.
    pub(super) fn sensitive_of(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        object: Option<&ObjectId>,
    ) -> Paths {
        let mut paths = change.sensitive.clone();
        let entry = self.snapshot.entries.get(&step.address);
        let own = object.and_then(|id| entry?.object(id));
        if let Some(own) = own.filter(|_| phase.kind == ProgramKind::Delete) {
            paths.extend_below(&Path::root(), &own.sensitive);
        }
        paths
    }

    /// What a phase of a delete sends of the object's secrets, in clear, as far as the plan says it.
    pub(super) fn secrets_at_parting(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
    ) -> Attributes {
        let Some(live) = self.attributes_of(step, schema) else { return Attributes::new() };
        let key = &self.snapshot.seal_key;
        let said = sealed(schema, phase, &live).filter_map(|(name, is)| {
            let value = known(change.secrets.get(name)?, &self.scope()).ok()?.value;
            let value = value.convert(&schema.attributes.get(name)?.ty).ok()?;
            // The plan may say it of another object: of the one that comes after this one.
            agree(&value, is, key).then(|| (name.clone(), value))
        });
        said.collect()
    }

    /// Returns true if no step of this run has called the object of the change before.
    fn is_first_call(&self, step: &Step, change: &Change) -> bool {
        let steps = &self.input.plan.steps;
        let is_before = |need: &StepId| {
            let before = steps.get(need.0 as usize);
            before.is_some_and(|it| it.change == step.change && it.object == step.object)
        };
        step.object.is_some() && step.object == change.object && !step.needs.iter().any(is_before)
    }

    fn attributes_of(&self, step: &Step, schema: &TypeSchema) -> Option<Attributes> {
        let id = self.object_of(step)?;
        let object = self.snapshot.entries.get(&step.address)?.object(&id)?;
        engine::plan::facts::prior::stored_attributes(&object.attributes, schema).ok()
    }

    /// The secrets that a phase of a delete would send, and that nothing tells.
    pub(super) fn left_out(
        &self,
        started: &Started,
        schema: &TypeSchema,
        desired: &Attributes,
    ) -> Set<Name> {
        let live = self.live(started, schema).unwrap_or_default();
        sealed(schema, started.phase, &live)
            .filter(|(name, _)| schema.is_hidden(name) && !desired.contains_key(*name))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The secrets that a phase of a delete sends, and that the API is to be asked for first.
    pub(super) fn lacks_at_parting(&self, flight: &InFlight) -> BTreeSet<Name> {
        let InFlight { started, schema, .. } = flight;
        let desired = &flight.sent.desired;
        if started.phase.kind != ProgramKind::Delete {
            return BTreeSet::new();
        }
        let live = self.live(started, schema).unwrap_or_default();
        sealed(schema, started.phase, &live)
            .filter(|(name, _)| !schema.is_hidden(name) && !desired.contains_key(*name))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The call's object as it is live: as the plan has seen it, and from the first answer of this run
    /// on as the state knows it. A delete sends what it has no word for: a fingerprint would stop it.
    pub(super) fn live_to_send(
        &self,
        (step, change): (&Step, &Change),
        started: &Started,
        schema: &TypeSchema,
    ) -> Option<Attributes> {
        let mut live = self.live(started, schema)?;
        if let Some(seen) = change.before.as_ref().filter(|_| self.is_first_call(step, change)) {
            let known = Unsealer::with(live.clone(), self.snapshot);
            live = overlay(&live, &known.object(seen));
        }
        if started.phase.kind == ProgramKind::Delete {
            live.retain(|_, value| !value.holds_sealed());
        }
        Some(live)
    }
}

/// The attributes that a phase sends of an object and that are known by fingerprints.
fn sealed<'a>(
    schema: &'a TypeSchema,
    phase: PhaseRef,
    live: &'a Attributes,
) -> impl Iterator<Item = (&'a Name, &'a Value)> {
    let phase = schema.phase(phase);
    live.iter().filter(move |(name, value)| {
        value.holds_sealed() && phase.is_some_and(|phase| phase.carries(name))
    })
}

/// What a call sends, with what it lacks read from the API right before it.
pub(super) async fn read_for(
    provider: &Arc<dyn Provider>,
    started: &Started,
    lacks: &BTreeSet<Name>,
    desired: &Arc<Attributes>,
) -> Result<Arc<Attributes>, Error> {
    if started.object.is_none() || lacks.is_empty() {
        return Ok(desired.clone());
    }
    let object = read_own(provider, started).await?;
    let shown = object.into_iter().filter(|(name, _)| lacks.contains(name));
    let mut desired = Attributes::clone(desired);
    desired.extend(shown);
    Ok(Arc::new(desired))
}

/// The object of a call, read right before it.
pub(super) async fn read_own(
    provider: &Arc<dyn Provider>,
    started: &Started,
) -> Result<Attributes, Error> {
    let Some(id) = &started.object else { return Ok(Attributes::new()) };
    let object = provider.read(&started.address.block.ty, id).await.map_err(unread)?;
    if object.id != *id {
        return Err(unread(Error::new(Kind::InDoubt, format!("reading {id} shows {}", object.id))));
    }
    Ok(object.attributes)
}

/// Nothing was sent yet, whatever went wrong.
fn unread(error: Error) -> Error {
    match error.kind {
        Kind::NotFound | Kind::Unauthenticated => error,
        _ => {
            let message = format!("what it sends could not be read before: {}", error.message);
            Error { kind: Kind::NotSent, message, ..error }
        }
    }
}
