//! The lock file: the kernel's lock on it, and what its holders write into it.
//!
//! The first sector notes the last epoch and the newest snapshot that was seen here, the rest says
//! who holds the lock. Both are hints that nothing waits for on the disk: the note is a lower
//! bound, which shows that an older state was put back, and the holder is for messages.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{Files, Identity, file_failed, identity_at, identity_of};
use crate::disk;
use crate::error::StoreError;
use crate::frame::{NUMBER_MAX, SnapshotRef};
use crate::holder::Holder;

/// The note has one sector, so that it is written whole or not at all.
const NOTE: usize = 512;
const HOLDER: usize = 3584;

/// A lock that this process holds. Dropping it releases it.
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    identity: Identity,
    is_released: bool,
    /// The note of the last holder.
    pub(super) note: Note,
}

/// A note on the past of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The epoch of the last holder.
    pub(super) epoch: u64,
    /// The newest snapshot that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<SnapshotRef>,
}

impl Note {
    /// Returns true if its numbers can be counted up from.
    fn is_sane(&self) -> bool {
        let serial = self.seen.as_ref().map_or(0, |seen| seen.serial);
        self.epoch.max(serial) <= NUMBER_MAX
    }
}

/// The result of an attempt to take the lock.
pub(super) enum Attempt {
    Taken(Lock),
    Held(Box<Holder>),
}

/// Tries to take the lock, without waiting.
pub(super) fn attempt(files: &Files) -> Result<Attempt, StoreError> {
    let path = files.lock();
    loop {
        let failed = |error| file_failed("open", &path, error);
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            let what = format!("{} is not a regular file", path.display());
            return Err(StoreError::suspicious(what, "nothing was changed; remove it"));
        }
        let file = disk::nofollow()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Attempt::Held(Box::new(read_holder(&file).unwrap_or_default())));
            }
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => continue,
            Err(TryLockError::Error(error)) => return Err(file_failed("lock", &path, error)),
        }
        let identity = identity_of(&file).map_err(failed)?;
        // Somebody may have removed the file between the two; then this lock is on nothing.
        if identity_at(&path) == Some(identity) {
            let note = read_note(&file)?.unwrap_or_default();
            return Ok(Attempt::Taken(Lock { file, path, identity, is_released: false, note }));
        }
    }
}

/// Returns the run that holds the lock right now.
pub(super) fn holder(path: &Path) -> Option<Holder> {
    disk::look(path).ok()??;
    let file = disk::nofollow().read(true).open(path).ok()?;
    // Only where a holder did not sign off the lock is tried, because for that moment it is taken.
    let holder = read_holder(&file)?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then_some(holder)
}

/// Reads the note of the last holder; none if there never was one.
pub(super) fn note(path: &Path) -> Result<Option<Note>, StoreError> {
    if !matches!(disk::look(path), Ok(Some(_))) {
        return Ok(None);
    }
    let file =
        disk::nofollow().read(true).open(path).map_err(|error| file_failed("open", path, error))?;
    read_note(&file)
}

fn read_note(file: &File) -> Result<Option<Note>, StoreError> {
    let text = read_text(file, 0, NOTE)
        .map_err(|error| StoreError::failed("cannot read the lock file", error))?;
    if text.is_empty() {
        return Ok(None);
    }
    // A damaged note still says that there was one; what it said, the journal says as well.
    let note: Note = serde_json::from_str(&text).unwrap_or_default();
    Ok(Some(if note.is_sane() { note } else { Note::default() }))
}

fn read_holder(file: &File) -> Option<Holder> {
    let text = read_text(file, NOTE, HOLDER).ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    Some(holder.sanitised())
}

/// The text in a part of the file, without the padding.
fn read_text(file: &File, at: usize, size: usize) -> std::io::Result<String> {
    let mut bytes = vec![0; size];
    let mut read = 0;
    while read < size {
        match file.read_at(&mut bytes[read..], (at + read) as u64)? {
            0 => break,
            count => read += count,
        }
    }
    // Most of it is padding, which is no text yet.
    let end = bytes[..read].iter().rposition(|byte| !b" \n\0".contains(byte));
    let text = String::from_utf8_lossy(&bytes[..end.map_or(0, |end| end + 1)]);
    Ok(text.trim_start_matches([' ', '\n', '\0']).to_owned())
}

fn write_text(file: &File, at: usize, size: usize, text: &str) -> std::io::Result<()> {
    let mut bytes = vec![b' '; size];
    bytes[size - 1] = b'\n';
    // A text that is too long is left out, not cut: a part of it would say something else.
    if text.len() < size {
        bytes[..text.len()].copy_from_slice(text.as_bytes());
    }
    file.write_all_at(&bytes, at as u64)
}

impl Lock {
    /// Says whether the file that is locked is still the one that others would lock.
    pub(super) fn is_in_place(&self) -> bool {
        identity_at(&self.path) == Some(self.identity)
    }

    /// Notes who holds the lock from now on, under which epoch.
    pub(super) fn sign_on(&mut self, holder: &Holder, epoch: u64) -> Result<(), StoreError> {
        self.note.epoch = epoch;
        let text = serde_json::to_string(&holder.sanitised()).unwrap_or_default();
        self.write_note()
            .and_then(|()| write_text(&self.file, NOTE, HOLDER, &text))
            .map_err(|error| file_failed("write", &self.path, error))
    }

    /// Notes a snapshot that is durable. The note is a hint, so an error is none of anybody's.
    pub(super) fn saw(&mut self, seen: SnapshotRef) {
        self.note.seen = Some(seen);
        self.write_note().ok();
    }

    /// Returns true if the note is about another lineage.
    pub(super) fn knows_other_than(&self, lineage: &str) -> bool {
        self.note.seen.as_ref().is_some_and(|seen| seen.lineage != lineage)
    }

    /// Forgets what was seen, durably: a state of another lineage is about to take its place.
    pub(super) fn forget(&mut self) -> Result<(), StoreError> {
        self.note.seen = None;
        self.write_note()
            .and_then(|()| self.file.sync_data())
            .map_err(|error| file_failed("write", &self.path, error))
    }

    fn write_note(&self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.note).unwrap_or_default();
        write_text(&self.file, 0, NOTE, &text)
    }

    /// Signs off and releases.
    pub(super) fn release(mut self) -> Result<(), StoreError> {
        self.unlock().map_err(|error| file_failed("unlock", &self.path, error))
    }

    fn unlock(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.is_released, true) {
            return Ok(());
        }
        // First the name, then the lock: behind it the name may be another holder's.
        write_text(&self.file, NOTE, HOLDER, "").ok();
        self.file.unlock()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.unlock().ok();
    }
}
