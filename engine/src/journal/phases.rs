//! The effect of the end of a phase on its object: it is there, has come further, is ready, or is gone.

use std::collections::BTreeMap;

use super::records::{Seen, Started};
use super::{IllegalRecord, illegal};
use crate::schema::{PhaseRef, ProgramKind, Wait};
use crate::state::{Entry, Nonce, Object, Progress, Snapshot};

/// The time after it was sent in which a delete may still take effect, in milliseconds: an hour. What was changed
/// after that has outlived it.
pub(super) const DELETE_LATE_MS: u64 = 60 * 60 * 1000;

/// The part of its phase that a call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Phase,
    /// The call; its wait is still to come.
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
            // What has outlived its delete by so much has outlived it for good.
            let late = |sent_ms: &u64| started.at_ms.saturating_sub(*sent_ms) <= DELETE_LATE_MS;
            object.delete_sent_ms = object.delete_sent_ms.filter(late);
            object.input_fingerprints.extend(started.input_fingerprints.clone());
            object.input_fingerprints.retain(|name, _| started.managed.contains(name));
            if object.progress.is_ready() {
                object.managed.clone_from(&started.managed);
            } else {
                // What a later phase is to clear counts until that is done.
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
            // How far its create had come is remembered: a delete begins anew each time.
            ProgramKind::Delete => Ok(self.progress_of_delete(started)),
            ProgramKind::Create => match (self.nonce_of(started), self.progress_of(started)) {
                (Some(nonce), _) => Ok(Progress::Created { program, done, called, nonce }),
                // Another run has finished it since this one was planned.
                (None, Some(progress)) => Ok(progress.clone()),
                (None, None) => {
                    illegal(format_args!("{} was created without a nonce", started.address))
                }
            },
            // What it is given back counts until it is given back whole.
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

    /// Returns the progress of an object when a phase of its delete is done.
    fn progress_of_delete(&self, started: &Started) -> Progress {
        match self.progress_of(started).cloned() {
            Some(Progress::Deleting { before, .. }) => {
                Progress::Deleting { done: started.phase.phase + 1, before }
            }
            other => other.unwrap_or_default(),
        }
    }

    /// Marks an object as being deleted. What a delete does before its end may stay done, whatever becomes known
    /// of its call, so the object as it was before is remembered. One whose create was not finished goes on being
    /// that.
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

    /// An update of more than one call, or with a wait, is remembered from its beginning: where it is
    /// cut short, what shows of it is not all of it. It stays begun where its first call is refused: who
    /// executes a call twice may refuse the second time because of what the first one did.
    pub(super) fn update_begins(&mut self, started: &Started) {
        let PhaseRef { kind, program, phase, phases, wait } = started.phase;
        if kind != ProgramKind::Update || wait == Wait::Only || (phases == 1 && wait == Wait::None)
        {
            return;
        }
        // What an earlier update did from here on, this one may undo; what comes before was done, or shows.
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
        // Where a later phase gives the real name, a second execution is told by its nonce.
        if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
            self.watch(started, nonce, started.at_ms, true);
        }
        Ok(())
    }
}
