//! State in a folder, `.plumb/` beside the spec.
//!
//! ```text
//! state.json            the snapshot (`format`), replaced by renaming
//! journal               the records since (`frame`), replaced by renaming when a snapshot is saved
//! lock                  locked by the kernel while a run holds it; tells who, and what was seen
//! backups/SERIAL.json   the last 20 snapshots before this one
//! moved                 only where the state is on the move, or was moved away: from or to where
//! .gitignore            so that none of this is committed
//! ```
//!
//! The kernel decides who is alive: a lock dies with its holder, so no lock is ever stale. The journal is
//! locked in addition to the lock file: as long as a holder lives, no other run can write, even if a person
//! deletes the lock file. A holder is fenced if its lock or its journal is no longer the file of that name.
//!
//! The folder may be a link to its real place, but the files in it must be no links: see `folder`. Other
//! things in the folder, such as the service's data, are ignored.

mod backups;
mod files;
mod folder;
mod lock;
mod log;
mod mark;
mod read;
mod refusals;
mod restore;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::state::Snapshot;

use self::files::{Files, LARGEST};
pub use self::folder::refuse_astray;
use self::lock::{Attempt, Lock};
use crate::blocking::blocking;
use crate::cipher::{self, Cipher};
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;
use crate::holder::Holder;
use crate::mark::{Purpose, refuse_left};
use crate::store::{Loaded, LockedStore, Store, Version};

/// The pause between two attempts to take the lock.
const POLL: Duration = Duration::from_millis(50);
/// The shortest wait for the lock, even with a `wait` of zero, because `load` may be testing the lock.
const GRACE: Duration = Duration::from_millis(100);

/// A store in a folder.
#[derive(Clone)]
pub struct FileStore {
    files: Files,
}

impl FileStore {
    /// Returns the store in `folder`, which need not exist. Nothing is read or made yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk), folder)
    }

    /// Returns the store on another disk, for tests.
    pub fn on(disk: Arc<dyn Disk>, folder: impl Into<PathBuf>) -> Self {
        Self { files: Files { folder: folder.into(), disk, cipher: Cipher::off() } }
    }

    /// Sets a key: the store seals the data that it writes, and opens sealed data.
    #[must_use]
    pub fn sealed(mut self, cipher: Cipher) -> Self {
        self.files.cipher = cipher;
        self
    }

    /// Polls for the lock until it is taken, or `wait` is over.
    async fn take(&self, wait: Duration) -> Result<Lock, StoreError> {
        blocking(|| folder::prepare(&self.files))?;
        let until = tokio::time::Instant::now() + wait.max(GRACE);
        loop {
            match blocking(|| lock::attempt(&self.files))? {
                Attempt::Taken(lock) => return Ok(lock),
                Attempt::Held(holder) if tokio::time::Instant::now() >= until => {
                    return Err(StoreError::Locked(holder));
                }
                Attempt::Held(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

#[async_trait]
impl Store for FileStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        blocking(|| {
            folder::refuse_links(&self.files)?;
            let (mark, place) = (mark::read(&self.files)?, self.place());
            refuse_left(mark.as_ref(), &place)?;
            let holder = lock::holder(&self.files.lock());
            let found = read::read(&self.files)?;
            let loaded = found.map_or_else(Loaded::nothing, |found| found.loaded);
            loaded.seen_with(holder, mark, &place)
        })
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        blocking(|| folder::refuse_hollow(&self.files))?;
        let lock = self.take(wait).await?;
        let opened = blocking(|| {
            let mark = mark::read(&self.files)?;
            purpose.check(mark.as_ref(), &self.place())?;
            log::open(self.files.clone(), lock, holder, mark)
        });
        Ok(Box::new(opened?))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let lock = self.take(Duration::ZERO).await?;
        restore::restore(self.files.clone(), lock, holder, snapshot).await
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        folder::refuse_links(&self.files)?;
        Ok(backups::serials(&self.files))
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        folder::refuse_links(&self.files)?;
        blocking(|| backups::read(&self.files, serial))
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        let read = blocking(|| self.files.disk.read(&self.files.state(), LARGEST));
        Ok(read.is_ok_and(|bytes| bytes.is_some_and(|bytes| !cipher::is_sealed(&bytes))))
    }

    fn place(&self) -> String {
        self.files.folder.display().to_string()
    }
}
