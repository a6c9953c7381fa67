//! Ids that an API gives again: a new object may get the id of an object that is being deleted.

use std::collections::{BTreeSet, HashSet};
use tokio::time::Instant;

use engine::address::{Address, Name};
use engine::doubt::{holder, supersedes_own};
use engine::journal::{ProgramKind, Record, Resolution, Started};
use engine::plan::{Step, StepId};
use engine::state::ObjectId;

use super::Run;
use crate::ApplyError;
use crate::doubt::lookup::shown;

/// The ids of objects, as far as a run has to know them.
#[derive(Default)]
pub(super) struct ObjectIds {
    /// The ids of all objects; `None` until the first create has made one.
    all: Option<HashSet<(Name, Name, ObjectId)>>,
    /// The old objects whose id a create of the same address has got: they are gone, and no step touches them
    /// any more.
    superseded: BTreeSet<(Address, ObjectId)>,
}

impl ObjectIds {
    /// Adds the object of a lost create to the ids of all objects, as is done for a create with an answer.
    pub(super) fn add(&mut self, started: &Started, id: &ObjectId) {
        if let Some(ids) = self.all.as_mut().filter(|_| started.makes_its_object()) {
            ids.insert(key_of(started, id));
        }
    }
}

impl Run<'_> {
    /// Returns the address that stands already for the object of a create. All ids are gathered once, because
    /// a search for one takes as long as the state is large.
    pub(super) fn claimant(&mut self, started: &Started, id: &ObjectId) -> Option<Address> {
        let snapshot = self.session.snapshot();
        let ids = self.ids.all.get_or_insert_with(|| {
            let which = snapshot.objects().map(|(_, which)| which);
            which.map(|own| (own.provider.clone(), own.ty.clone(), own.id.clone())).collect()
        });
        if ids.insert(key_of(started, id)) {
            return None;
        }
        holder(snapshot, started, id).cloned()
    }

    /// Ends the older claim of an address on an object that a create has made, if the address was deleting
    /// its own object: no two objects have one id, so that one is gone. Returns true if the claim ended.
    pub(super) fn make_room(
        &mut self,
        id: StepId,
        owner: &Address,
        made: &provider_port::Object,
    ) -> Result<bool, ApplyError> {
        let object = &made.id;
        let deletes = |started: &Started| started.ends(owner, object);
        let mut flights = self.calls.in_flight.iter();
        if let Some((step, _)) = flights.find(|(_, flight)| deletes(&flight.started)) {
            let step = *step;
            self.vanished(step)?;
            return Ok(true);
        }
        let mut pending = self.session.snapshot().pending.iter();
        if let Some((call, _)) = pending.find(|(_, pending)| deletes(&pending.started)) {
            let call = *call;
            self.session.record(Record::Resolved { call, resolution: Resolution::Gone })?;
            return Ok(true);
        }
        if self.end_before_next_try(owner, object)? {
            return Ok(true);
        }
        let snapshot = self.session.snapshot();
        let is_superseded = self.calls.in_flight.get(&id).is_some_and(|flight| {
            supersedes_own(flight.in_doubt(&snapshot.seal_key), shown(made), snapshot)
        });
        if !is_superseded {
            return Ok(false);
        }
        let gone = (owner.clone(), object.clone());
        let (address, object) = gone.clone();
        self.session.record(Record::Vanished { address, object })?;
        self.ids.superseded.insert(gone);
        Ok(true)
    }

    /// Returns true if a step is about an old object whose id a create of the same address has got.
    pub(super) fn acts_on_superseded(&self, step: &Step) -> bool {
        let Some(object) = &step.object else { return false };
        self.ids.superseded.contains(&(step.address.clone(), object.clone()))
    }

    /// Ends the claim of a delete that was looked up and waits for its next attempt. Returns true if there
    /// was one.
    fn end_before_next_try(
        &mut self,
        owner: &Address,
        object: &ObjectId,
    ) -> Result<bool, ApplyError> {
        let is_it = |(step, _): &(StepId, usize)| {
            let step = self.scheduler.step(*step);
            let deletes = step.phase.is_some_and(|phase| phase.kind == ProgramKind::Delete);
            deletes && step.address == *owner && step.object.as_ref() == Some(object)
        };
        let Some(at) = self.calls.retries.iter().position(is_it) else { return Ok(false) };
        let (step, _) = self.calls.retries.remove(at);
        let (address, object) = (owner.clone(), object.clone());
        self.session.record(Record::Vanished { address, object })?;
        self.calls.unwritten.insert(step);
        self.finish_step(step, None, Instant::now());
        Ok(true)
    }
}

/// Returns the key of an object that a create made.
fn key_of(started: &Started, id: &ObjectId) -> (Name, Name, ObjectId) {
    (started.provider.clone(), started.address.block.ty.clone(), id.clone())
}
