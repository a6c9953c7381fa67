//! The reader of the folder: it decides which combinations of files are a state, which are no state yet, and
//! which are damaged.
//!
//! [`judge`] decides that from bytes alone. A journal belongs to a snapshot if its base names the snapshot. A
//! journal that ends exactly at the frame up to which the snapshot has folded it in was left by a crash
//! between the save and the start of the next journal; its records do not count any more. Every other
//! combination is refused.

use engine::state::Snapshot;

use super::files::{Files, LARGEST, file_failed, identity_at};
use super::lock::{self, Note};
use super::{backups, folder};
use crate::error::StoreError;
use crate::format::{self, Header, Unreadable};
use crate::frame::{self, Damage, End, Journal, SnapshotRef};
use crate::store::Loaded;

/// The number of times that files are read again if they change during the read.
const ATTEMPTS: u32 = 50;

/// A state that was found.
pub(super) struct Found {
    pub(super) loaded: Loaded,
    pub(super) header: Header,
    /// The journal that continues; none if it is folded into the snapshot already.
    pub(super) journal: Option<FoundJournal>,
}

/// A journal as it was read.
pub(super) struct FoundJournal {
    pub(super) bytes: Vec<u8>,
    /// The length of the whole frames, in bytes. The bytes after them are torn.
    pub(super) whole: usize,
    pub(super) end: End,
    /// True if the journal consists only of its base, which was durable before it had its name.
    pub(super) bare: bool,
}

impl FoundJournal {
    /// Returns a journal that was read from these bytes.
    pub(super) fn new(read: &Journal, bytes: Vec<u8>) -> Self {
        let Journal { start, end, whole, .. } = *read;
        let bare = end.lsn == start.lsn + 1 && whole == bytes.len();
        Self { bytes, whole, end, bare }
    }
}

/// Reads the folder as of one moment. None means a first run.
pub(super) fn read(files: &Files) -> Result<Option<Found>, StoreError> {
    let (state, journal) = (files.state(), files.journal());
    for _ in 0..ATTEMPTS {
        // The note is read first, so that its snapshot is not later than the one that is read.
        let note = lock::note(&files.lock())?.unwrap_or_default();
        // The backups are read before, too: each was the state before the one that is read.
        let past = Past { note, newest_backup: backups::serials(files).last().copied() };
        let before = identity_at(&state);
        let read =
            |path| files.disk.read(path, LARGEST).map_err(|error| file_failed("read", path, error));
        let (state_bytes, journal_bytes) = (read(&state)?, read(&journal)?);
        if identity_at(&state) == before {
            return judge(files, &past, state_bytes.as_deref(), journal_bytes);
        }
    }
    let what = format!("{} changed each time it was read", state.display());
    Err(StoreError::Failed { what, source: None })
}

/// Traces of earlier states in the folder.
struct Past {
    note: Note,
    newest_backup: Option<u64>,
}

fn judge(
    files: &Files,
    past: &Past,
    state: Option<&[u8]>,
    journal: Option<Vec<u8>>,
) -> Result<Option<Found>, StoreError> {
    let path = files.state();
    let path = path.display();
    let Some(state) = state else {
        return judge_missing(files, past, journal.as_deref()).map(|()| None);
    };
    let state = files.open_state(state)?;
    let (header, snapshot) = format::decode(&state).map_err(|error| match error {
        Unreadable::Newer { .. } => StoreError::suspicious(
            format!("{path} cannot be read: {error}"),
            "nothing was changed; a newer version of Plumb wrote it: use that version or a later one",
        ),
        error => files.suspicious(format!("{path} cannot be read: {error}")),
    })?;
    check_past(files, past, &header)?;
    let name = files.journal();
    let Some(journal) = journal else {
        let what = format!("{} is missing, but {path} exists", name.display());
        return Err(files.without_journal(what));
    };
    let read = frame::read(&journal, &files.cipher).map_err(|damage| {
        files.without_journal(format!("{} cannot be read: {damage}", name.display()))
    })?;
    fit(files, header, snapshot, read, journal).map(Some)
}

/// Refuses a folder without a state in which there was a state earlier.
fn judge_missing(files: &Files, past: &Past, journal: Option<&[u8]>) -> Result<(), StoreError> {
    let (state, journal_path) = (files.state(), files.journal());
    let (state, journal_path) = (state.display(), journal_path.display());
    let journal = journal.map(|bytes| frame::read(bytes, &files.cipher));
    if let Some(Ok(Journal { records, .. })) = &journal
        && !records.is_empty()
    {
        // These records may be all that is known of objects, and only force removes them.
        let count = records.len();
        return Err(files.suspicious(format!(
            "{state} is missing, but {journal_path} has records that follow it ({count})"
        )));
    }
    match earlier_state(files, past, journal.as_ref()) {
        None => folder::refuse_hollow(files),
        Some(proof) => Err(files.missing(format!("{state} is missing, but {proof}"))),
    }
}

/// Returns a description of the trace that proves an earlier state.
fn earlier_state(
    files: &Files,
    past: &Past,
    journal: Option<&Result<Journal, Damage>>,
) -> Option<String> {
    if let Some(seen) = &past.note.seen {
        return Some(format!("{} knows serial {}", files.lock().display(), seen.serial));
    }
    if let Some(serial) = past.newest_backup {
        return Some(format!("there is a backup of serial {serial}"));
    }
    // A first run that was killed at once leaves a journal without records, and nothing else.
    let unborn = |journal: &Result<Journal, Damage>| {
        journal.as_ref().is_ok_and(|journal| journal.base.serial == 0 && journal.end.lsn == 1)
    };
    journal
        .is_some_and(|journal| !unborn(journal))
        .then(|| format!("there is {}", files.journal().display()))
}

/// Refuses a state that is older than one that was seen, or another one.
fn check_past(files: &Files, past: &Past, header: &Header) -> Result<(), StoreError> {
    let path = files.state();
    let path = path.display();
    let serial = header.serial;
    // A crash during a save leaves a backup with the same serial, and none with a later one.
    if let Some(newest) = past.newest_backup.filter(|newest| *newest > serial) {
        return Err(files.suspicious(format!(
            "{path} is older than it should be: it has serial {serial}, and there is a backup of serial \
             {newest}"
        )));
    }
    let Some(seen) = &past.note.seen else { return Ok(()) };
    match header.contradiction(seen) {
        Some(what) => Err(files.suspicious(format!("{path} {what}"))),
        None => Ok(()),
    }
}

fn fit(
    files: &Files,
    header: Header,
    snapshot: Snapshot,
    journal: Journal,
    bytes: Vec<u8>,
) -> Result<Found, StoreError> {
    let Journal { base, end, .. } = &journal;
    let checkpoint = header.checkpoint;
    let follows = header.is_followed_by(&journal);
    // The lineage may differ if a person put this state in place of another one: the chain proves that.
    let folded =
        base.serial < header.serial && (end.lsn, end.chain) == (checkpoint.lsn, checkpoint.chain);
    if !follows && !folded {
        return Err(files.suspicious(misfit(files, &header, base)));
    }
    let version = header.version();
    let found = follows.then(|| FoundJournal::new(&journal, bytes));
    let records = if follows { journal.records } else { Vec::new() };
    let loaded = Loaded { snapshot: Some(snapshot), version, records, ..Loaded::nothing() };
    Ok(Found { loaded, header, journal: found })
}

fn misfit(files: &Files, header: &Header, base: &SnapshotRef) -> String {
    let (state, journal) = (files.state(), files.journal());
    let (state, journal) = (state.display(), journal.display());
    let (found, due) = (header.serial, base.serial);
    if base.lineage != header.lineage {
        let (a, b) = (&header.lineage, &base.lineage);
        format!("{state} has lineage {a}, but {journal} has lineage {b}")
    } else if found < due {
        format!(
            "{state} is older than it should be: it has serial {found}, and {journal} follows serial {due}"
        )
    } else {
        format!(
            "{journal} does not belong to {state}: it follows another state, of serial {due}, and \
             this one has serial {found}"
        )
    }
}
