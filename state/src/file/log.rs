//! The writes of a run that has locked a folder: no other code writes state and journal.
//!
//! A crash may end a save after any of its steps, so they have this order. The new snapshot is written and
//! synced under a temporary name. The old one gets a second name among the backups. The new one gets its
//! name. The folder is synced. Only then does the new journal replace the old one. In between, the snapshot
//! itself says up to which frame the journal is folded into it.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::files::{Files, LARGEST, file_failed, identity_at, identity_of};
use super::lock::Lock;
use super::read::{self, Found, FoundJournal};
use super::{GRACE, backups, folder, mark};
use crate::blocking::blocking;
use crate::cipher::Cipher;
use crate::disk;
use crate::error::StoreError;
use crate::fenced_log::{EncodedSnapshot, FencedLog, FencedStore, Position, Replaced, seal_base};
use crate::frame::{End, Frame, SnapshotRef};
use crate::holder::Holder;
use crate::mark::Mark;
use crate::store::Loaded;

/// The log of a folder.
pub(super) struct FileLog {
    pub(super) files: Files,
    pub(super) lock: Lock,
    epoch: u64,
    /// The open files; none until a first run has made its state.
    open: Option<OpenFiles>,
}

/// The files of a state, kept open, because no other file can then get the same inode.
struct OpenFiles {
    state: File,
    journal: File,
}

/// A journal to which frames are appended.
pub(super) struct OpenJournal {
    file: File,
    pub(super) end: End,
    bytes: u64,
}

/// Reads the folder under the lock, and cleans up after a run that was killed.
pub(super) fn open(
    files: Files,
    lock: Lock,
    holder: &Holder,
    mark: Option<Mark>,
) -> Result<FencedStore<FileLog>, StoreError> {
    folder::hide(&files)?;
    let found = read::read(&files)?;
    let known = found.as_ref().map_or(0, |found| {
        found.header.newest_epoch(found.journal.as_ref().map(|journal| journal.end))
    });
    let epoch = known.max(lock.note.epoch) + 1;
    let mut log = FileLog::new(files, lock, epoch);
    let Some(Found { loaded, header, journal }) = found else {
        folder::probe(&log.files)?;
        log.lock.sign_on(holder, epoch)?;
        return Ok(FencedStore::new(log, Loaded { mark, ..Loaded::nothing() }, None));
    };
    log.sync_names()?;
    let journal = match journal {
        Some(found) => log.continue_journal(found)?,
        None => log.begin_journal(&header.snapshot_ref(), header.checkpoint)?,
    };
    folder::probe(&log.files)?;
    log.lock.sign_on(holder, epoch)?;
    log.lock.saw(header.snapshot_ref());
    let path = log.files.state();
    let state = disk::nofollow().read(true).open(&path);
    let state = state.map_err(|error| file_failed("open", &path, error))?;
    let OpenJournal { file, end, bytes } = journal;
    log.open = Some(OpenFiles { state, journal: file });
    let position = Position { header, end, journal_bytes: bytes };
    Ok(FencedStore::new(log, Loaded { mark, ..loaded }, Some(position)))
}

impl FileLog {
    /// Returns the log of a folder whose content is not known yet.
    pub(super) fn new(files: Files, lock: Lock, epoch: u64) -> Self {
        Self { files, lock, epoch, open: None }
    }

    /// Continues after the whole frames that were found.
    ///
    /// Frames after the base belong to a run that did not end. They may not be durable: the run may have been
    /// killed before its sync, or its sync failed, after which the kernel reports the next sync as a success
    /// although the bytes are lost. The next saved snapshot relies on them, so they are written again. A torn
    /// end stays in the old file.
    pub(super) fn continue_journal(&self, found: FoundJournal) -> Result<OpenJournal, StoreError> {
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
            return Ok(OpenJournal { file: old, end, bytes });
        }
        let file = self.write_journal(&read[..whole])?;
        Ok(OpenJournal { file, end, bytes })
    }

    /// Begins a journal after `after`, which replaces the present one.
    pub(super) fn begin_journal(
        &self,
        base: &SnapshotRef,
        after: End,
    ) -> Result<OpenJournal, StoreError> {
        let frame = seal_base(self, base, after)?;
        let file = self.write_journal(&frame.bytes)?;
        Ok(OpenJournal { file, end: frame.end, bytes: frame.bytes.len() as u64 })
    }

    /// Writes a whole journal, which replaces the present one.
    fn write_journal(&self, bytes: &[u8]) -> Result<File, StoreError> {
        let staged = self.files.stage(&self.files.journal(), bytes)?;
        lock_journal(&staged.file, &self.files)?;
        self.files.publish(staged)
    }

    /// Returns a file that this run has locked and whose name another file, or none, has now.
    fn lost_file(&self) -> Option<PathBuf> {
        if !self.lock.is_in_place() {
            return Some(self.files.lock());
        }
        let open = self.open.as_ref()?;
        let files = [(self.files.journal(), &open.journal), (self.files.state(), &open.state)];
        let is_lost = |path: &Path, file| identity_at(path) != identity_of(file).ok();
        files.into_iter().find(|(path, file)| is_lost(path, file)).map(|(path, _)| path)
    }

    /// Makes the folder's own name durable: without it, the state would look like a first run after a power
    /// cut.
    fn sync_parent(&self) -> Result<(), StoreError> {
        let folder = &self.files.folder;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        self.files.disk.sync_folder(parent).map_err(|error| file_failed("sync", parent, error))
    }

    /// Makes the names durable that were found. A run that was killed between a rename and its sync left
    /// names that the next power cut would undo, together with everything that is written under them.
    pub(super) fn sync_names(&self) -> Result<(), StoreError> {
        self.sync_parent()?;
        let folder = &self.files.folder;
        self.files.disk.sync_folder(folder).map_err(|error| file_failed("sync", folder, error))
    }

    fn write_frame(&self, frame: &Frame) -> Result<(), StoreError> {
        let Some(OpenFiles { journal, .. }) = &self.open else { return Ok(()) };
        let (disk, path) = (&self.files.disk, self.files.journal());
        disk.write(journal, &frame.bytes).map_err(|error| file_failed("write", &path, error))?;
        // A sync that failed is never tried again: the kernel may have dropped the data that it could not
        // write, and would report the second sync as a success.
        disk.sync(journal).map_err(|error| file_failed("sync", &path, error))
    }

    /// Writes the first state. The journal comes first: a journal alone counts as nothing, but a state
    /// without a journal looks damaged.
    fn write_first(&self, new: &EncodedSnapshot) -> Result<OpenFiles, StoreError> {
        self.sync_parent()?;
        let journal = self.write_journal(&new.base.bytes)?;
        let state = self.files.publish(self.files.stage(&self.files.state(), &new.bytes)?)?;
        Ok(OpenFiles { state, journal })
    }

    /// Replaces the stored data by a snapshot and its journal. The snapshot says up to which frame that
    /// journal is folded in, so a crash in between leaves the new state.
    fn write_over(
        &self,
        new: &EncodedSnapshot,
        backup: Option<u64>,
    ) -> Result<OpenFiles, StoreError> {
        let staged = self.files.stage(&self.files.state(), &new.bytes)?;
        if let Some(serial) = backup {
            backups::keep(&self.files, serial)?;
        }
        let state = self.files.publish(staged)?;
        let journal = self.write_journal(&new.base.bytes)?;
        backups::prune(&self.files);
        backups::seal(&self.files);
        Ok(OpenFiles { state, journal })
    }
}

/// Locks the journal in addition to the lock file, which a person may delete.
///
/// Tries for a moment, because a process that a holder started keeps the holder's files for an instant after
/// its end.
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
impl FencedLog for FileLog {
    fn cipher(&self) -> &Cipher {
        &self.files.cipher
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn check_lock(&self) -> Result<(), StoreError> {
        let Some(path) = blocking(|| self.lost_file()) else { return Ok(()) };
        Err(StoreError::Fenced(format!("{} was removed or replaced", path.display())))
    }

    async fn append(&mut self, frame: &Frame) -> Result<(), StoreError> {
        blocking(|| self.write_frame(frame))?;
        // Others see the written data only if the file still has its name.
        self.check_lock()
    }

    async fn replace(
        &mut self,
        new: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<(), StoreError> {
        let written = blocking(|| match replaced {
            Replaced::Nothing => self.write_first(new),
            Replaced::Snapshot(old) => self.write_over(new, Some(old.serial)),
            Replaced::Anything => self.write_over(new, None),
        });
        self.open = Some(written?);
        self.lock.saw(new.header.snapshot_ref());
        if matches!(replaced, Replaced::Anything) { self.mark(None).await } else { Ok(()) }
    }

    async fn mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        blocking(|| mark::write(&self.files, mark))
    }

    async fn release(self) -> Result<(), StoreError> {
        self.lock.release()
    }
}
