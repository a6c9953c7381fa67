//! The lock file: the kernel's lock on it, and the text that its holders write into it.
//!
//! The first sector has a note with the last epoch and the newest snapshot that was seen here; the rest names
//! the holder of the lock. Both are hints that no code syncs to the disk. The note is a lower bound, which
//! shows that an older state was put back; the holder is for messages.

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

/// The length of the note in bytes. It is one sector, so that it is written completely or not at all.
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

/// A note about the past of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The epoch of the last holder.
    pub(super) epoch: u64,
    /// The newest snapshot that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<SnapshotRef>,
}

impl Note {
    /// Returns true if the numbers are small enough to be counted up.
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
        // A person may have removed the file between the two calls; then this lock is on no file of that
        // name.
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
    // The lock is tried only if a holder did not sign off, because for that moment the trial itself takes the
    // lock.
    let holder = read_holder(&file)?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then_some(holder)
}

/// Reads the note of the last holder; returns none if there never was one.
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
    // A damaged note still proves that there was one. The journal has the same facts.
    let note: Note = serde_json::from_str(&text).unwrap_or_default();
    Ok(Some(if note.is_sane() { note } else { Note::default() }))
}

fn read_holder(file: &File) -> Option<Holder> {
    let text = read_text(file, NOTE, HOLDER).ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    Some(holder.sanitised())
}

/// Returns the text in a part of the file, without the padding.
fn read_text(file: &File, at: usize, size: usize) -> std::io::Result<String> {
    let mut bytes = vec![0; size];
    let mut read = 0;
    while read < size {
        match file.read_at(&mut bytes[read..], (at + read) as u64)? {
            0 => break,
            count => read += count,
        }
    }
    // Most of it is padding, which may not be valid text.
    let end = bytes[..read].iter().rposition(|byte| !b" \n\0".contains(byte));
    let text = String::from_utf8_lossy(&bytes[..end.map_or(0, |end| end + 1)]);
    Ok(text.trim_start_matches([' ', '\n', '\0']).to_owned())
}

fn write_text(file: &File, at: usize, size: usize, text: &str) -> std::io::Result<()> {
    let mut bytes = vec![b' '; size];
    bytes[size - 1] = b'\n';
    // A text that is too long is left out, because a truncated one would mean something else.
    if text.len() < size {
        bytes[..text.len()].copy_from_slice(text.as_bytes());
    }
    file.write_all_at(&bytes, at as u64)
}

impl Lock {
    /// Returns true if the locked file is still the one that others would lock.
    pub(super) fn is_in_place(&self) -> bool {
        identity_at(&self.path) == Some(self.identity)
    }

    /// Writes the holder of the lock and its epoch.
    pub(super) fn sign_on(&mut self, holder: &Holder, epoch: u64) -> Result<(), StoreError> {
        self.note.epoch = epoch;
        let text = serde_json::to_string(&holder.sanitised()).unwrap_or_default();
        self.write_note()
            .and_then(|()| write_text(&self.file, NOTE, HOLDER, &text))
            .map_err(|error| file_failed("write", &self.path, error))
    }

    /// Notes a durable snapshot. The note is a hint, so an error does not matter.
    pub(super) fn saw(&mut self, seen: SnapshotRef) {
        self.note.seen = Some(seen);
        self.write_note().ok();
    }

    /// Returns true if the note is about another lineage.
    pub(super) fn knows_other_than(&self, lineage: &str) -> bool {
        self.note.seen.as_ref().is_some_and(|seen| seen.lineage != lineage)
    }

    /// Removes the seen snapshot from the note, durably, because a state of another lineage is about to
    /// replace it.
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
        // The name is removed before the lock is released: afterwards it may be another holder's.
        write_text(&self.file, NOTE, HOLDER, "").ok();
        self.file.unlock()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.unlock().ok();
    }
}
