//! The effect of a finished phase on its object: the object exists, has come further, is ready, or is gone.

use std::collections::BTreeMap;

use super::records::{Seen, Started};
use super::{IllegalRecord, illegal};
use crate::schema::{PhaseRef, ProgramKind, Wait};
use crate::state::{Entry, Nonce, Object, Progress, Snapshot};

/// The time in which a delete may still take effect after it was sent, in milliseconds: one hour. An object
/// that is changed after that has outlived the delete.
pub(super) const DELETE_LATE_MS: u64 = 60 * 60 * 1000;

/// The part of its phase that a call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole phase.
    Phase,
    /// The call only; its wait is still to come.
    Call,
}

impl Snapshot {
    pub(super) fn advance(
        &mut self,
        started: &Started,
        seen: Option<&Seen>,
        extent: Extent,
    ) -> Result<(), IllegalRecord> {
        let address = &started.address;
        if started.ends_its_object() {
            return match &started.object {
                Some(id) => self.remove(address, id),
                None => illegal(format_args!("{address} was deleted without an object")),
            };
        }
        let progress = self.progress_after(started, extent)?;
        if started.makes_its_object() {
            let Some(seen) = seen else {
                return illegal(format_args!("{address} was created and has no object"));
            };
            return self.add(started, seen, progress);
        }
        let Some(object) = started
            .object
            .as_ref()
            .and_then(|id| self.entries.get_mut(address).and_then(|entry| entry.object_mut(id)))
        else {
            return illegal(format_args!("{address} was changed and has no such object"));
        };
        object.progress = progress;
        if let Some(seen) = seen {
            object.attributes = seen.attributes.clone();
        }
        if started.phase.kind != ProgramKind::Delete {
            // An object that has outlived its delete for so long has outlived it for good.
            let late = |sent_ms: &u64| started.at_ms.saturating_sub(*sent_ms) <= DELETE_LATE_MS;
            object.delete_sent_ms = object.delete_sent_ms.filter(late);
            object.input_fingerprints.extend(started.input_fingerprints.clone());
            object.input_fingerprints.retain(|name, _| started.managed.contains(name));
            if object.progress.is_ready() {
                object.managed.clone_from(&started.managed);
            } else {
                // An attribute that a later phase clears stays managed until that phase is done.
                object.managed.extend(started.managed.iter().cloned());
            }
            object.sensitive.clone_from(&started.sensitive);
            if let Some(entry) = self.entries.get_mut(address) {
                entry.dependencies.clone_from(&started.dependencies);
            }
        }
        Ok(())
    }

    fn progress_after(&self, started: &Started, extent: Extent) -> Result<Progress, IllegalRecord> {
        let PhaseRef { kind, program, phase, .. } = started.phase;
        if extent == Extent::Phase && started.phase.is_last() && kind != ProgramKind::Delete {
            return Ok(Progress::Ready);
        }
        let (done, called) = match extent {
            Extent::Phase => (phase + 1, false),
            Extent::Call => (phase, true),
        };
        match kind {
            // The progress of the object's create stays: a delete begins at its first phase each time.
            ProgramKind::Delete => Ok(self.progress_of_delete(started)),
            ProgramKind::Create => match (self.nonce_of(started), self.progress_of(started)) {
                (Some(nonce), _) => Ok(Progress::Created { program, done, called, nonce }),
                // Another run has finished the create since this run was planned.
                (None, Some(progress)) => Ok(progress.clone()),
                (None, None) => {
                    illegal(format_args!("{} was created without a nonce", started.address))
                }
            },
            // The object counts as being deleted until all phases of the update that restores it are done.
            ProgramKind::Update => match self.progress_of(started) {
                Some(deleting @ Progress::Deleting { .. }) => Ok(deleting.clone()),
                _ => Ok(Progress::Updating { program, done, called }),
            },
        }
    }

    fn progress_of(&self, started: &Started) -> Option<&Progress> {
        let entry = self.entries.get(&started.address)?;
        Some(&entry.object(started.object.as_ref()?)?.progress)
    }

    fn progress_of_mut(&mut self, started: &Started) -> Option<&mut Progress> {
        let entry = self.entries.get_mut(&started.address)?;
        Some(&mut entry.object_mut(started.object.as_ref()?)?.progress)
    }

    /// Returns the progress of an object after a phase of its delete.
    fn progress_of_delete(&self, started: &Started) -> Progress {
        match self.progress_of(started).cloned() {
            Some(Progress::Deleting { before, .. }) => {
                Progress::Deleting { done: started.phase.phase + 1, before }
            }
            other => other.unwrap_or_default(),
        }
    }

    /// Marks an object as being deleted. The effects of the phases before the last one may remain, whatever
    /// the outcome of the delete, so the attributes from before are kept. An object whose create is
    /// unfinished keeps that progress.
    pub(super) fn delete_begins(&mut self, started: &Started) {
        if started.phase.kind != ProgramKind::Delete || started.ends_its_object() {
            return;
        }
        let entry = self.entries.get_mut(&started.address);
        let object = entry.and_then(|entry| entry.object_mut(started.object.as_ref()?));
        if let Some(object) = object.filter(|object| object.progress.is_ready()) {
            let before = Some(Box::new(object.attributes.clone()));
            object.progress = Progress::Deleting { done: 0, before };
        }
    }

    /// Records the beginning of an update with more than one call, or with a wait: if it is cut short, the
    /// object does not show everything that is left. The mark stays even if the first call is refused: a
    /// server that executes a call twice may refuse the second execution because of the first one's effect.
    pub(super) fn update_begins(&mut self, started: &Started) {
        let PhaseRef { kind, program, phase, phases, wait } = started.phase;
        if kind != ProgramKind::Update || wait == Wait::Only || (phases == 1 && wait == Wait::None)
        {
            return;
        }
        // This update may undo the effects of an earlier update from this phase on. The phases before it are
        // done, or the object shows their effects.
        let begun = Progress::Updating { program, done: phase, called: false };
        if let Some(known) = self.progress_of_mut(started)
            && !matches!(known, Progress::Deleting { .. })
        {
            *known = begun;
        }
    }

    fn nonce_of(&self, started: &Started) -> Option<Nonce> {
        started.nonce.clone().or_else(|| match self.progress_of(started)? {
            Progress::Created { nonce, .. } => Some(nonce.clone()),
            _ => None,
        })
    }

    fn add(
        &mut self,
        started: &Started,
        seen: &Seen,
        progress: Progress,
    ) -> Result<(), IllegalRecord> {
        let entry = self
            .entries
            .entry(started.address.clone())
            .or_insert_with(|| Entry::without_object(started.provider.clone()));
        if entry.object(&seen.id).is_some() {
            let (address, id) = (&started.address, &seen.id);
            return illegal(format_args!("{address} made {id}, and has that object already"));
        }
        if let Some(old) = entry.current.take() {
            if !started.deposes {
                return illegal(format_args!("{} was created twice", started.address));
            }
            entry.deposed.push(old);
        }
        entry.provider = started.provider.clone();
        entry.dependencies.clone_from(&started.dependencies);
        entry.current = Some(Object {
            id: seen.id.clone(),
            progress,
            attributes: seen.attributes.clone(),
            managed: started.managed.clone(),
            sensitive: started.sensitive.clone(),
            delete_sent_ms: None,
            made_with: BTreeMap::new(),
            input_fingerprints: started.input_fingerprints.clone(),
        });
        // If a later phase gives the real name, the nonce identifies the object of a second execution.
        if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
            self.watch(started, nonce, started.at_ms, true);
        }
        Ok(())
    }
}
