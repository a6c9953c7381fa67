//! A folder whose lock this process holds: the only place that writes state and journal.
//!
//! Saving, in the order that a crash may cut anywhere: the new snapshot is written and synced under
//! a temporary name, the old one gets a second name among the backups, the new one takes its name,
//! the folder is synced, and only then the new journal takes the place of the old one. In between,
//! the snapshot itself says which end of the journal is folded into it.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;

use super::lock::{Lock, Seen};
use super::read::{self, Found, FoundJournal};
use super::{
    Files, GRACE, LARGEST, backups, blocking, file_failed, home, identity_at, identity_of, mark,
};
use crate::format::Header;
use crate::frame::{self, Base, End};
use crate::mark::Mark;
use crate::standing::Standing;
use crate::{Held, Holder, Loaded, StoreError, Version, disk, write};

/// See the module.
pub(super) struct FileHeld {
    pub(super) files: Files,
    pub(super) lock: Lock,
    epoch: u64,
    loaded: Loaded,
    /// None until a first run has made its state.
    at: Option<At>,
    standing: Standing,
}

/// Where the store stands.
struct At {
    header: Header,
    /// The snapshot, kept open: an inode in use is given to no other file.
    state: File,
    journal: Journal,
}

/// The journal that is written to.
pub(super) struct Journal {
    file: File,
    pub(super) end: End,
    bytes: u64,
}

impl FileHeld {
    /// Holds the lock of a folder of which nothing is believed yet.
    pub(super) fn new(files: Files, lock: Lock, epoch: u64) -> Self {
        let (loaded, standing) = (Loaded::nothing(), Standing::default());
        Self { files, lock, epoch, loaded, at: None, standing }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Reads the folder under the lock, and cleans up behind a run that was killed.
    pub(super) fn open(
        files: Files,
        lock: Lock,
        holder: &Holder,
        mark: Option<Mark>,
    ) -> Result<Self, StoreError> {
        home::hide(&files)?;
        let found = read::read(&files)?;
        let known = found.as_ref().map_or(0, newest_epoch);
        let epoch = known.max(lock.note.epoch) + 1;
        let mut held = Self::new(files, lock, epoch);
        held.loaded.mark.clone_from(&mark);
        let Some(Found { loaded, header, journal }) = found else {
            home::probe(&held.files)?;
            held.lock.sign_on(holder, epoch)?;
            return Ok(held);
        };
        held.sync_names()?;
        let journal = match journal {
            Some(found) => held.continue_journal(found)?,
            None => held.start_journal(&follow(&header), header.checkpoint)?,
        };
        home::probe(&held.files)?;
        held.lock.sign_on(holder, epoch)?;
        held.saw(&header);
        let path = held.files.state();
        let state = disk::itself().read(true).open(&path);
        let state = state.map_err(|error| file_failed("open", &path, error))?;
        held.at = Some(At { header, state, journal });
        held.loaded = Loaded { mark, ..loaded };
        Ok(held)
    }

    /// Goes on behind the whole frames that were found.
    ///
    /// Frames behind the base are of a run that did not end. Nobody knows whether they are durable:
    /// it may have been killed before its sync, or its sync failed, after which the kernel calls
    /// the next one a success though the bytes are lost. A snapshot that is saved next counts on
    /// them, so they are written anew. What is torn stays behind with the old file.
    pub(super) fn continue_journal(&self, found: FoundJournal) -> Result<Journal, StoreError> {
        let FoundJournal { bytes: read, whole, end, bare } = found;
        let path = self.files.journal();
        let disk = &self.files.disk;
        let failed = |what, error| file_failed(what, &path, error);
        let old = disk.open(&path).map_err(|error| failed("open", error))?;
        lock_journal(&old, &self.files)?;
        let now = disk.read(&path, LARGEST).map_err(|error| failed("read", error))?;
        if now.as_ref() != Some(&read) {
            let what = format!("{} changed while it was read", path.display());
            return Err(StoreError::Failed { what, source: None });
        }
        let bytes = whole as u64;
        if bare {
            return Ok(Journal { file: old, end, bytes });
        }
        let staged = self.files.stage(&path, &read[..whole])?;
        lock_journal(&staged.file, &self.files)?;
        let file = self.files.publish(staged)?;
        Ok(Journal { file, end, bytes })
    }

    /// Starts a journal behind `after`, in place of what was there.
    pub(super) fn start_journal(&self, base: &Base, after: End) -> Result<Journal, StoreError> {
        let path = self.files.journal();
        let (bytes, end) = frame::seal_base(base, after, self.epoch, &self.files.cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let staged = self.files.stage(&path, &bytes)?;
        lock_journal(&staged.file, &self.files)?;
        let file = self.files.publish(staged)?;
        Ok(Journal { file, end, bytes: bytes.len() as u64 })
    }

    fn saw(&mut self, header: &Header) {
        let Header { lineage, serial, digest, .. } = header.clone();
        self.lock.saw(Seen { lineage, serial, digest });
    }

    /// Refuses when this run has lost its place, or a write has failed before.
    fn check(&mut self) -> Result<(), StoreError> {
        self.standing.check()?;
        let Some(path) = self.lost_file() else { return Ok(()) };
        let why = format!("{} was removed or replaced", path.display());
        self.standing.keep(Err(StoreError::Fenced(why)))
    }

    /// The file that this run believes to hold, and whose name is now another's or nobody's.
    fn lost_file(&self) -> Option<PathBuf> {
        if !self.lock.is_in_place() {
            return Some(self.files.lock());
        }
        let at = self.at.as_ref()?;
        let files = [(self.files.journal(), &at.journal.file), (self.files.state(), &at.state)];
        let is_lost = |path: &Path, file| identity_at(path) != identity_of(file).ok();
        files.into_iter().find(|(path, file)| is_lost(path, file)).map(|(path, _)| path)
    }

    fn initialise_now(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.check()?;
        if self.at.is_some() {
            return Err(StoreError::Fenced("there is a state already".to_owned()));
        }
        let (header, bytes) =
            write::encode(&self.files.cipher, snapshot, self.epoch, End::default())?;
        let result = self.write_first(header, &bytes);
        self.standing.keep(result)
    }

    fn write_first(&mut self, header: Header, bytes: &[u8]) -> Result<Version, StoreError> {
        self.sync_parent()?;
        // The journal first: alone it says nothing, while a state without one has lost something.
        let journal = self.start_journal(&follow(&header), header.checkpoint)?;
        let staged = self.files.stage(&self.files.state(), bytes)?;
        let file = self.files.publish(staged)?;
        Ok(self.stand_at(header, file, journal))
    }

    /// Makes the folder's own name durable: without it a power cut would make a first run of this.
    fn sync_parent(&self) -> Result<(), StoreError> {
        let folder = &self.files.folder;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        self.files.disk.sync_folder(parent).map_err(|error| file_failed("sync", parent, error))
    }

    /// Makes the names durable that were found. A run that was killed between a rename and its sync
    /// left names that the next power cut would take away, and all that is written under them.
    pub(super) fn sync_names(&self) -> Result<(), StoreError> {
        self.sync_parent()?;
        let folder = &self.files.folder;
        self.files.disk.sync_folder(folder).map_err(|error| file_failed("sync", folder, error))
    }

    fn append_now(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.check()?;
        let Some(at) = &self.at else {
            return Err(StoreError::refused("a record was written before the first state"));
        };
        if records.is_empty() {
            return Ok(());
        }
        let (bytes, end) =
            frame::seal_records(records, at.journal.end, self.epoch, &self.files.cipher)
                .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let result = self.write_frame(&bytes, end);
        self.standing.keep(result)?;
        // Only while the file still bears its name do others see what was written.
        self.check()
    }

    fn write_frame(&mut self, bytes: &[u8], end: End) -> Result<(), StoreError> {
        let Some(At { journal, .. }) = &mut self.at else { return Ok(()) };
        let (disk, path) = (&self.files.disk, self.files.journal());
        disk.write(&journal.file, bytes).map_err(|error| file_failed("write", &path, error))?;
        // A sync that failed is never tried again: the kernel may have dropped what it could not
        // write, and would call the second one a success.
        disk.sync(&journal.file).map_err(|error| file_failed("sync", &path, error))?;
        journal.end = end;
        journal.bytes += bytes.len() as u64;
        Ok(())
    }

    fn save_now(&mut self, snapshot: &Snapshot, expected: &Version) -> Result<Version, StoreError> {
        self.check()?;
        let Some(At { header: old, journal, .. }) = &self.at else {
            return Err(StoreError::refused("a state was saved before the first one"));
        };
        write::check_successor(old, expected, snapshot)?;
        let (old, end) = (old.clone(), journal.end);
        let (header, bytes) = write::encode(&self.files.cipher, snapshot, self.epoch, end)?;
        let result = self.replace(Some(old.serial), header, &bytes);
        self.standing.keep(result)
    }

    /// Puts a snapshot and its journal in place of what is there. The snapshot says which end of
    /// that journal is folded in, so a crash in between leaves the new state.
    pub(super) fn replace(
        &mut self,
        old: Option<u64>,
        header: Header,
        bytes: &[u8],
    ) -> Result<Version, StoreError> {
        let staged = self.files.stage(&self.files.state(), bytes)?;
        if let Some(serial) = old {
            backups::keep(&self.files, serial)?;
        }
        let file = self.files.publish(staged)?;
        let journal = self.start_journal(&follow(&header), header.checkpoint)?;
        backups::prune(&self.files);
        backups::seal(&self.files);
        Ok(self.stand_at(header, file, journal))
    }

    fn stand_at(&mut self, header: Header, state: File, journal: Journal) -> Version {
        self.saw(&header);
        let version = header.version();
        self.at = Some(At { header, state, journal });
        version
    }
}

/// The base of the journal that follows a snapshot.
fn follow(header: &Header) -> Base {
    let Header { lineage, serial, digest, .. } = header.clone();
    Base { lineage, serial, digest }
}

/// The newest epoch in which somebody wrote.
fn newest_epoch(found: &Found) -> u64 {
    let journal = found.journal.as_ref().map_or(0, |journal| journal.end.epoch);
    found.header.epoch.max(journal)
}

/// Locks the journal as well as the lock file: that one may be deleted by hand.
///
/// Tries for a moment, because a process that a holder started has its files for an instant after
/// the holder's end.
pub(super) fn lock_journal(file: &File, files: &Files) -> Result<(), StoreError> {
    let until = Instant::now() + GRACE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(Box::default())),
            Err(TryLockError::Error(error)) => {
                return Err(file_failed("lock", &files.journal(), error));
            }
        }
    }
}

#[async_trait]
impl Held for FileHeld {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        blocking(|| self.initialise_now(snapshot))
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        blocking(|| self.append_now(records))
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        blocking(|| self.save_now(snapshot, expected))
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        blocking(|| {
            self.check()?;
            mark::write(&self.files, mark)
        })
    }

    fn journal_bytes(&self) -> u64 {
        self.at.as_ref().map_or(0, |at| at.journal.bytes)
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.lock.release()
    }
}
