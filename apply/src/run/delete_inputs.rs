//! Secrets that a delete sends before its last call. An API that takes whole objects wants the whole object
//! again when the object is to stop its work, and the state has only fingerprints of its secrets.
//!
//! A secret is computed from the plan's expressions if the result has the recorded fingerprint; else it is
//! read from the object. A secret that neither gives is left out: the object is about to go, and until then
//! its value of that attribute is unknown.

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
use crate::read::read_object;
use crate::unseal::{Unsealer, stored_object};

/// The secrets that a phase of a delete sends, and of which the state has fingerprints only.
#[derive(Default)]
pub(super) struct DeleteSecrets {
    /// The secrets that the plan's expressions give, in clear.
    pub(super) said: Attributes,
    /// The secrets that a read of the object shows.
    pub(super) readable: BTreeSet<Name>,
    /// The secrets that neither the plan nor a read gives.
    pub(super) unknown: Set<Name>,
}

impl StepContext<'_> {
    /// Returns the sensitive places of what a call sends and shows. A delete takes those of the object that
    /// it deletes, too, as the object that comes after it may have others.
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

    /// Returns the secrets that a phase of a delete sends, by their source. Other phases have none of these.
    pub(super) fn delete_secrets(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
    ) -> DeleteSecrets {
        let mut secrets = DeleteSecrets::default();
        let id = self.object_of(step).filter(|_| phase.kind == ProgramKind::Delete);
        let live = id.and_then(|id| stored_object(self.snapshot, &step.address, &id, schema));
        for (name, fingerprint) in live.iter().flatten().filter(|(_, it)| it.holds_sealed()) {
            if !schema.phase(phase).is_some_and(|phase| phase.carries(name)) {
                continue;
            }
            if let Some(value) = self.said_of(name, fingerprint, change, schema) {
                secrets.said.insert(name.clone(), value);
            } else if schema.is_hidden(name) {
                secrets.unknown.insert(name.clone());
            } else {
                secrets.readable.insert(name.clone());
            }
        }
        secrets
    }

    /// Returns the secret that the plan's expressions give, if it has this fingerprint. The plan may mean the
    /// object that comes after this one, whose secret may differ.
    fn said_of(
        &self,
        name: &Name,
        fingerprint: &Value,
        change: &Change,
        schema: &TypeSchema,
    ) -> Option<Value> {
        let value = known(change.secrets.get(name)?, &self.scope()).ok()?.value;
        let value = value.convert(&schema.attributes.get(name)?.ty).ok()?;
        agree(&value, fingerprint, &self.snapshot.seal_key).then_some(value)
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

    /// Returns the live attributes of a call's object: as the plan saw them, and after the first answer of
    /// this run as the state has them. A delete leaves out attributes of which only fingerprints are known,
    /// as they cannot be sent.
    pub(super) fn live_to_send(
        &self,
        step: &Step,
        change: &Change,
        flight: &InFlight,
    ) -> Option<Attributes> {
        let started = &flight.started;
        let mut live = self.live(started, &flight.schema)?;
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

/// Returns the attributes that a call sends, with the named ones read from the API right before it.
pub(super) async fn read_for(
    provider: &Arc<dyn Provider>,
    started: &Started,
    names: &BTreeSet<Name>,
    desired: &Arc<Attributes>,
) -> Result<Arc<Attributes>, Error> {
    if names.is_empty() {
        return Ok(desired.clone());
    }
    let object = read_own(provider, started).await?;
    let shown = object.into_iter().filter(|(name, _)| names.contains(name));
    let mut desired = Attributes::clone(desired);
    desired.extend(shown);
    Ok(Arc::new(desired))
}

/// Reads the object of a call, right before the call.
pub(super) async fn read_own(
    provider: &Arc<dyn Provider>,
    started: &Started,
) -> Result<Attributes, Error> {
    let Some(id) = &started.object else { return Ok(Attributes::new()) };
    let object = read_object(&**provider, &started.address.block.ty, id).await;
    object.map(|object| object.attributes).map_err(unread)
}

/// Returns the error of a read before a call: the call was not sent.
fn unread(error: Error) -> Error {
    match error.kind {
        Kind::NotFound | Kind::Unauthenticated => error,
        _ => {
            let message = format!("what it sends could not be read before: {}", error.message);
            Error { kind: Kind::NotSent, message, ..error }
        }
    }
}
