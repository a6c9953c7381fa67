//! Ids that an API gives again: what is made may bear the id of what is being deleted.

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

/// Objects by their ids, as far as a run has to know them.
#[derive(Default)]
pub(super) struct ObjectIds {
    /// The ids of all objects, once one was made.
    all: Option<HashSet<(Name, Name, ObjectId)>>,
    /// The objects that are gone because what their own address made has their ids: nothing is to be done
    /// to them any more.
    superseded: BTreeSet<(Address, ObjectId)>,
}

impl ObjectIds {
    /// Adds what a lost create made to the ids of all objects, like what an answered one did.
    pub(super) fn add(&mut self, started: &Started, id: &ObjectId) {
        if let Some(ids) = self.all.as_mut().filter(|_| started.makes_its_object()) {
            ids.insert(key_of(started, id));
        }
    }
}

impl Run<'_> {
    /// An address that stands already for the object which a create is said to have made. The ids are
    /// gathered once, because the search is as long as the state.
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

    /// Ends an older claim on an object that the create of a step has made, if its own object was being
    /// deleted: that is gone then, for no id is two objects' at once. Says whether it did.
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

    /// Returns true if a step is about an object that is gone because what its own address made has its id.
    pub(super) fn is_succeeded(&self, step: &Step) -> bool {
        let Some(object) = &step.object else { return false };
        self.ids.superseded.contains(&(step.address.clone(), object.clone()))
    }

    /// The same of a delete that was looked up and is about to be sent again.
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
