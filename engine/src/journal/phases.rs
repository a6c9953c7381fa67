//! What the end of a phase makes of its object: it is there, has come further, is ready, or is gone.

use std::collections::BTreeMap;

use super::records::{PhaseRef, ProgramKind, Seen, Started};
use super::{IllegalRecord, illegal};
use crate::state::{Entry, Nonce, Object, Progress, Snapshot};

/// How long after it was sent a delete may still take effect, in milliseconds: an hour. What was changed
/// after that has outlived it.
pub(super) const DELETE_LATE_MS: u64 = 60 * 60 * 1000;

impl Snapshot {
    pub(super) fn advance(
        &mut self,
        started: &Started,
        seen: Option<&Seen>,
    ) -> Result<(), IllegalRecord> {
        let PhaseRef { kind, program, phase, .. } = started.phase;
        let address = &started.address;
        if started.ends_its_object() {
            return match &started.object {
                Some(id) => self.remove(address, id),
                None => illegal(format_args!("{address} was deleted without an object")),
            };
        }
        let progress = match kind {
            // How far its create had come is remembered: a delete begins anew each time.
            ProgramKind::Delete => self.progress_of_delete(started),
            ProgramKind::Create if !started.phase.is_last() => {
                let Some(nonce) = self.nonce_of(started) else {
                    return illegal(format_args!("{address} was created without a nonce"));
                };
                Progress::Created { program, done: phase + 1, nonce }
            }
            ProgramKind::Create | ProgramKind::Update => Progress::Ready,
        };
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
        if kind != ProgramKind::Delete {
            // What has outlived its delete by so much has outlived it for good.
            let late = |sent_ms: &u64| started.at_ms.saturating_sub(*sent_ms) <= DELETE_LATE_MS;
            object.delete_sent_ms = object.delete_sent_ms.filter(late);
            object.managed.clone_from(&started.managed);
            object.sensitive.clone_from(&started.sensitive);
            if let Some(entry) = self.entries.get_mut(address) {
                entry.dependencies.clone_from(&started.dependencies);
            }
        }
        Ok(())
    }

    /// How far an object has come when a phase of its delete is done.
    fn progress_of_delete(&self, started: &Started) -> Progress {
        let entry = self.entries.get(&started.address);
        let object = entry.and_then(|entry| entry.object(started.object.as_ref()?));
        match object.map(|object| object.progress.clone()) {
            Some(Progress::Deleting { before, .. }) => {
                Progress::Deleting { done: started.phase.phase + 1, before }
            }
            other => other.unwrap_or_default(),
        }
    }

    /// What a delete does before its end may stay done, whatever becomes known of its call: what the
    /// object was before is remembered. One whose create was not finished goes on being that.
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

    fn nonce_of(&self, started: &Started) -> Option<Nonce> {
        started.nonce.clone().or_else(|| {
            let entry = self.entries.get(&started.address)?;
            match &entry.object(started.object.as_ref()?)?.progress {
                Progress::Created { nonce, .. } => Some(nonce.clone()),
                _ => None,
            }
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
        });
        // Where a later phase gives the real name, a second execution is told by its nonce.
        if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
            self.watch(started, nonce, started.at_ms, true);
        }
        Ok(())
    }
}
