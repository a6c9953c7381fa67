//! The fate of a call: it begins, ends, or is looked up because its outcome is unknown. Its effect on the
//! object is in `phases`.

use super::calls::Pending;
use super::phases::Extent;
use super::records::{CallId, Outcome, Resolution, Seen, Started};
use super::{IllegalRecord, illegal};
use crate::schema::Wait;
use crate::state::{Nonce, Snapshot, Watched};
use crate::value::Path;

impl Snapshot {
    pub(super) fn start(&mut self, started: &Started) -> Result<(), IllegalRecord> {
        let Started { call, address, phase, .. } = started;
        if call.0 != self.next_call {
            return illegal(format_args!("call {call} begins where c{} is due", self.next_call));
        }
        // A deposed object may be deleted while a call on the address's current object is under way.
        if self.pending.is_busy(started) {
            return illegal(format_args!("{address} has two calls at once"));
        }
        if phase.makes() {
            let occupied = self.entries.get(address).is_some_and(|e| e.current.is_some());
            if occupied && !started.deposes {
                return illegal(format_args!("{address} is created and exists"));
            }
        } else {
            let known = started.object.as_ref().is_some_and(|id| {
                self.entries.get(address).is_some_and(|entry| entry.object(id).is_some())
            });
            if !known {
                return illegal(format_args!("{call} changes an object that {address} is not"));
            }
        }
        self.delete_begins(started);
        self.update_begins(started);
        self.next_call += 1;
        self.pending
            .insert(*call, Pending { started: started.clone(), doubt: None, accepted: false });
        Ok(())
    }

    fn take_pending(&mut self, call: CallId) -> Result<Pending, IllegalRecord> {
        match self.pending.remove(call) {
            Some(pending) => Ok(pending),
            None => illegal(format_args!("call {call} ends and is not under way")),
        }
    }

    pub(super) fn finish(&mut self, call: CallId, outcome: &Outcome) -> Result<(), IllegalRecord> {
        let Pending { started, doubt, .. } = self.take_pending(call)?;
        if let Outcome::Done { object: Some(seen) } | Outcome::Called { object: seen } = outcome
            && doubt.is_some()
        {
            self.belongs_to_nobody(&started, seen)?;
        }
        match outcome {
            Outcome::NoEffect { .. } => {
                // A refusal is an answer. If a doubt ends with one, the object still exists.
                if doubt.is_some() {
                    self.may_still_go(&started);
                }
                // A server that executes a create twice may refuse the second execution because of the object
                // that the first one made. Such a refusal is about the very object that this run has lost.
                if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
                    let since_ms = started.at_ms;
                    self.watch(&started, nonce, since_ms, true);
                }
                Ok(())
            }
            Outcome::Done { object } => self.advance(&started, object.as_ref(), Extent::Phase),
            Outcome::Called { object } => self.advance(&started, Some(object), Extent::Call),
        }
    }

    pub(super) fn resolve(
        &mut self,
        call: CallId,
        resolution: &Resolution,
    ) -> Result<(), IllegalRecord> {
        let started = self.take_pending(call)?.started;
        let is_create = started.object.is_none();
        match (resolution, started.nonce.clone()) {
            (Resolution::Found { object }, _) if is_create => {
                self.belongs_to_nobody(&started, object)?;
                let waits = started.phase.wait == Wait::After;
                let extent = if waits { Extent::Call } else { Extent::Phase };
                self.advance(&started, Some(object), extent)
            }
            (Resolution::Found { object }, _) => {
                self.found(&started, object)?;
                self.may_still_go(&started);
                Ok(())
            }
            (Resolution::Absent { at_ms }, Some(nonce)) if is_create => {
                self.watch(&started, nonce, *at_ms, false);
                Ok(())
            }
            (Resolution::Absent { .. }, _) if is_create => Ok(()),
            (Resolution::Absent { .. } | Resolution::Gone, _) => match &started.object {
                Some(id) => self.remove(&started.address, id),
                None => illegal(format_args!("{call} created nothing that could be gone")),
            },
        }
    }

    /// Records the object of a call that was in doubt, as it was found. Nobody knows which part of the call
    /// has taken effect. So the object keeps its old dependencies, managed attributes and sensitive places,
    /// and gets those of the call in addition.
    fn found(&mut self, started: &Started, seen: &Seen) -> Result<(), IllegalRecord> {
        let Some(entry) = self.entries.get_mut(&started.address) else {
            return illegal(format_args!("{} was found and is not in the state", started.address));
        };
        let Some(known) = entry.object_mut(&seen.id) else {
            return illegal(format_args!("{} found a foreign object", started.call));
        };
        known.attributes = seen.attributes.clone();
        known.sensitive.extend_below(&Path::root(), &started.sensitive);
        known.managed.extend(started.managed.iter().cloned());
        for dependency in &started.dependencies {
            entry.dependencies.insert(dependency.clone());
        }
        Ok(())
    }

    /// Refuses the object of a lost create if an address stands for it: a delete of one address's object
    /// would delete the other's. Checked only for objects that were looked up, because the search takes time
    /// for the size of the state.
    fn belongs_to_nobody(&self, started: &Started, seen: &Seen) -> Result<(), IllegalRecord> {
        if started.object.is_some() {
            return Ok(());
        }
        match self.owner(&started.provider, &started.address.block.ty, &seen.id) {
            Some(owner) => illegal(format_args!(
                "{} made {}, and {owner} stands for that object",
                started.address, seen.id
            )),
            None => Ok(()),
        }
    }

    /// Records that a delete may still take effect: its object existed when it was looked up.
    fn may_still_go(&mut self, started: &Started) {
        let object = started.object.as_ref().filter(|_| started.ends_its_object());
        let known = self.entries.get_mut(&started.address);
        if let Some(known) = known.zip(object).and_then(|(entry, id)| entry.object_mut(id)) {
            known.delete_sent_ms = Some(started.at_ms);
        }
    }

    pub(super) fn unwatch(&mut self, nonce: &Nonce) {
        self.watched.retain(|watched| watched.nonce != *nonce);
    }

    pub(super) fn watch(&mut self, started: &Started, nonce: Nonce, since_ms: u64, answered: bool) {
        self.watched.push(Watched::of(started, nonce, since_ms, answered));
    }
}
