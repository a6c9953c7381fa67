//! The restoration of a snapshot by a person, over whatever is stored: see [`crate::Store::restore`].
//!
//! It has the order of a save: the new snapshot names the end of the present journal, so that a crash between
//! the two writes leaves the old or the new state. If there is no readable journal, one without records is
//! written first: beside the present files it is as wrong as the one that it replaces, and in an empty folder
//! it counts as nothing.

use engine::state::Snapshot;

use super::files::{Files, LARGEST};
use super::lock::Lock;
use super::log::{FileLog, OpenJournal, lock_journal};
use super::read::FoundJournal;
use super::{backups, folder};
use crate::blocking::blocking;
use crate::error::StoreError;
use crate::fenced_log::{self, FencedLog as _};
use crate::format::{self, Header};
use crate::frame::{self, End, SnapshotRef};
use crate::holder::Holder;
use crate::store::Version;

/// The content that is replaced, as far as it is readable.
struct Existing {
    header: Option<Header>,
    snapshot: Option<Snapshot>,
    journal: Option<(SnapshotRef, FoundJournal)>,
    /// True if there is no state and no trace of one.
    is_nothing: bool,
    highest_serial: u64,
    highest_epoch: u64,
}

impl Existing {
    fn look(files: &Files, lock: &Lock) -> Self {
        let state = files.disk.read(&files.state(), LARGEST);
        let journal = files.disk.read(&files.journal(), LARGEST);
        let newest_backup = backups::serials(files).last().copied();
        let seen = lock.note.seen.as_ref().map(|seen| seen.serial);
        let is_nothing =
            matches!((&state, &journal), (Ok(None), Ok(None))) && newest_backup.or(seen).is_none();
        let state = state.ok().flatten();
        let state = state.as_deref().and_then(|bytes| files.open_state(bytes).ok());
        let header = state.as_deref().and_then(|bytes| format::peek(bytes).ok());
        let snapshot = state.as_deref().and_then(|bytes| format::decode(bytes).ok());
        let journal = journal.ok().flatten().and_then(|bytes| read_journal(files, bytes));
        let of_header = header.as_ref().map(|header| header.serial);
        let of_journal = journal.as_ref().map(|(base, _)| base.serial);
        let serials = [of_header, of_journal, seen, newest_backup];
        let epochs = [
            header.as_ref().map_or(0, |header| header.epoch),
            journal.as_ref().map_or(0, |(_, journal)| journal.end.epoch),
            lock.note.epoch,
        ];
        Self {
            snapshot: snapshot.map(|(_, snapshot)| snapshot),
            is_nothing,
            highest_serial: serials.into_iter().flatten().max().unwrap_or(0),
            highest_epoch: epochs.into_iter().max().unwrap_or(0),
            header,
            journal,
        }
    }
}

fn read_journal(files: &Files, bytes: Vec<u8>) -> Option<(SnapshotRef, FoundJournal)> {
    let journal = frame::read(&bytes, &files.cipher).ok()?;
    let found = FoundJournal::new(&journal, bytes);
    Some((journal.base, found))
}

/// Replaces the existing content by a snapshot.
pub(super) async fn restore(
    files: Files,
    lock: Lock,
    holder: &Holder,
    snapshot: &Snapshot,
) -> Result<Version, StoreError> {
    // The present journal stays open, and so locked, until the new one has its name.
    let (log, snapshot, journal) = blocking(|| prepare(files, lock, holder, snapshot))?;
    fenced_log::restore(log, &snapshot, journal.end).await
}

/// Prepares the folder; returns the log, the snapshot with its new serial, and the journal that the snapshot
/// follows.
fn prepare(
    files: Files,
    lock: Lock,
    holder: &Holder,
    snapshot: &Snapshot,
) -> Result<(FileLog, Snapshot, OpenJournal), StoreError> {
    folder::hide(&files)?;
    let existing = Existing::look(&files, &lock);
    // Serial 0 is for states that were never saved: a journal that follows it may stand alone.
    let least = if existing.is_nothing { 1 } else { 2 };
    let serial = (existing.highest_serial.max(snapshot.serial) + 1).max(least);
    let snapshot = Snapshot { serial, ..snapshot.clone() };
    let mut log = FileLog::new(files, lock, existing.highest_epoch + 1);
    log.sync_names()?;
    let is_other =
        existing.header.as_ref().is_some_and(|header| header.lineage != snapshot.lineage);
    let journal = prepare_journal(&mut log, holder, existing, &snapshot)?;
    folder::probe(&log.files)?;
    if is_other || log.lock.knows_other_than(&snapshot.lineage) {
        log.lock.forget()?;
    }
    Ok((log, snapshot, journal))
}

/// Keeps the present files; returns the journal that the snapshot follows. That journal is locked until it is
/// dropped: deleting the lock file does not end a run that writes the journal.
fn prepare_journal(
    log: &mut FileLog,
    holder: &Holder,
    existing: Existing,
    snapshot: &Snapshot,
) -> Result<OpenJournal, StoreError> {
    let Existing { snapshot: replaced, journal, is_nothing, .. } = existing;
    let (readable, damaged) = match journal {
        Some((_, found)) => (Some(log.continue_journal(found)?), None),
        None => (None, log.files.disk.open(&log.files.journal()).ok()),
    };
    if let Some(file) = &damaged {
        lock_journal(file, &log.files)?;
    }
    log.lock.sign_on(holder, log.epoch())?;
    backups::set_aside(&log.files, snapshot.serial - 1);
    // A readable snapshot becomes an ordinary backup: the newest one, and listed as one.
    if let Some(replaced) = replaced {
        backups::keep(&log.files, replaced.serial).ok();
    }
    if let Some(journal) = readable {
        return Ok(journal);
    }
    let serial = if is_nothing { 0 } else { snapshot.serial - 1 };
    let base = SnapshotRef { lineage: snapshot.lineage.clone(), serial, digest: String::new() };
    log.begin_journal(&base, End::default())
}
