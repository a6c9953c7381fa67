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
//! Liveness comes from the kernel: a lock dies with its holder, so none is ever stale. The journal
//! is locked as well as the lock file: as long as a holder lives, nobody else can write, even if a
//! person deletes the lock file. A holder whose lock or journal is no longer the file of that name
//! is fenced.
//!
//! The folder may be a link to where it is; what is in it is none: see [`home`]. Other things of the
//! folder, such as the service's data, are not looked at.

mod backups;
mod held;
mod home;
mod lock;
mod mark;
mod read;
mod restore;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::state::Snapshot;
use tokio::runtime::{Handle, RuntimeFlavor};

use self::held::FileHeld;
pub use self::home::refuse_astray;
use self::lock::{Attempt, Lock};
use crate::cipher::{self, Cipher, STATE};
use crate::disk::{Disk, RealDisk};
use crate::mark::{marked, refuse_any, refuse_left};
use crate::{Held, Holder, Loaded, Store, StoreError, Version};

/// More bytes than any file here has: 250,000 instances of some KiB each.
const LARGEST: u64 = 4 << 30;
/// How often a waiting run looks whether the lock is free.
const POLL: Duration = Duration::from_millis(50);
/// Even who does not want to wait waits this long, because `load` may be looking at the lock.
const GRACE: Duration = Duration::from_millis(100);

/// A store in a folder.
#[derive(Clone)]
pub struct FileStore {
    files: Files,
}

impl FileStore {
    /// The store in `folder`, which need not exist. Nothing is read or made yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk), folder)
    }

    /// The same on another disk, for tests.
    pub fn on(disk: Arc<dyn Disk>, folder: impl Into<PathBuf>) -> Self {
        Self { files: Files { folder: folder.into(), disk, cipher: Cipher::off() } }
    }

    /// With a key: what it writes is sealed, and what it reads may be.
    #[must_use]
    pub fn sealed(mut self, cipher: Cipher) -> Self {
        self.files.cipher = cipher;
        self
    }

    /// Takes the lock of a folder that may hold a state.
    async fn take_whole(&self, wait: Duration) -> Result<Lock, StoreError> {
        blocking(|| home::refuse_hollow(&self.files))?;
        self.take(wait).await
    }

    /// Polls for the lock until it is taken, or `wait` is over.
    async fn take(&self, wait: Duration) -> Result<Lock, StoreError> {
        blocking(|| home::prepare(&self.files))?;
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
            home::refuse_links(&self.files)?;
            let (mark, place) = (mark::read(&self.files)?, self.place());
            refuse_left(mark.as_ref(), &place)?;
            let holder = lock::holder(&self.files.lock());
            let loaded =
                read::read(&self.files)?.map_or_else(Loaded::nothing, |found| found.loaded);
            marked(Loaded { holder, ..loaded }, mark, &place)
        })
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        let lock = self.take_whole(wait).await?;
        let mark = blocking(|| mark::read(&self.files))?;
        refuse_any(mark.as_ref(), &self.place())?;
        Ok(Box::new(blocking(|| FileHeld::open(self.files.clone(), lock, holder, None))?))
    }

    async fn lock_to_move(
        &self,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn Held>, StoreError> {
        let lock = self.take_whole(wait).await?;
        let mark = blocking(|| mark::read(&self.files))?;
        Ok(Box::new(blocking(|| FileHeld::open(self.files.clone(), lock, holder, mark))?))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let lock = self.take(Duration::ZERO).await?;
        blocking(|| restore::restore(self.files.clone(), lock, holder, snapshot))
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        home::refuse_links(&self.files)?;
        Ok(self.files.backup_serials())
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        home::refuse_links(&self.files)?;
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

/// Runs work that blocks, file reads and writes, where the caller is.
///
/// Not `spawn_blocking`: the work borrows, and an append that is cut off half-way because its
/// future was dropped must not exist. On a runtime of many threads the other tasks of this thread
/// move elsewhere meanwhile; on a runtime of one thread everything waits for the disk, which is
/// the price of such a runtime.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// The names in the folder.
#[derive(Clone)]
struct Files {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    cipher: Cipher,
}

impl Files {
    fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("journal")
    }

    /// Says where the state went that was here once, or comes from.
    fn moved(&self) -> PathBuf {
        self.folder.join("moved")
    }

    fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    fn backup(&self, serial: u64) -> PathBuf {
        self.backups().join(format!("{serial}.json"))
    }

    /// The serials of the backups, in order. What cannot be listed is not there.
    fn backup_serials(&self) -> Vec<u64> {
        let mut serials: Vec<u64> =
            backups::names(self).iter().filter_map(|name| backups::serial(name)).collect();
        serials.sort_unstable();
        serials
    }

    /// Opens the bytes of a snapshot.
    fn open_state<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
        let path = self.state();
        self.cipher.open(STATE, bytes).map_err(|error| error.of(&path.display().to_string()))
    }

    /// Writes a new file, durable but for its name, which is temporary.
    fn stage(&self, path: &Path, bytes: &[u8]) -> Result<Staged, StoreError> {
        let temporary = path.with_added_extension("tmp");
        let failed = |what, error| file_failed(what, &temporary, error);
        let file = self.disk.create(&temporary).map_err(|error| failed("create", error))?;
        self.disk.write(&file, bytes).map_err(|error| failed("write", error))?;
        self.disk.sync(&file).map_err(|error| failed("sync", error))?;
        Ok(Staged { file, temporary, path: path.to_owned() })
    }

    /// Gives a staged file its name, durably. On an error it may have it or not.
    fn publish(&self, staged: Staged) -> Result<File, StoreError> {
        let Staged { file, temporary, path } = staged;
        self.disk
            .rename(&temporary, &path)
            .map_err(|error| file_failed("replace", &path, error))?;
        let folder = path.parent().unwrap_or(&self.folder);
        self.disk.sync_folder(folder).map_err(|error| file_failed("sync", folder, error))?;
        Ok(file)
    }

    /// Refuses with the way back to the newest backup, which goes over what is there.
    fn suspicious(&self, what: impl Into<String>) -> StoreError {
        StoreError::suspicious(what, self.way_back("plumb state push --force"))
    }

    /// Refuses a journal beside a state that is whole, which is newer than every backup.
    fn without_journal(&self, what: impl Into<String>) -> StoreError {
        let help = format!(
            "nothing was changed; if {} cannot be brought back otherwise, `plumb state push --force {}` \
             goes on without it, and `plumb plan` then shows what differs; what was made since that \
             state was saved is not known then",
            self.journal().display(),
            self.state().display()
        );
        StoreError::suspicious(what, help)
    }

    /// Refuses because there is nothing, with the same way back.
    fn missing(&self, what: impl Into<String>) -> StoreError {
        StoreError::Missing { what: what.into(), help: self.way_back("plumb state push") }
    }

    fn way_back(&self, push: &str) -> String {
        match self.backup_serials().last() {
            Some(serial) => format!(
                "nothing was changed; if the files cannot be brought back otherwise, `{push} {}` \
                 puts the newest backup in place, and `plumb plan` then shows what differs from it",
                self.backup(*serial).display()
            ),
            None => format!(
                "nothing was changed, and there is no backup in {}; bring the files of {} back \
                 from a copy, or move the whole folder away to begin anew: objects that exist are \
                 then no longer known",
                self.backups().display(),
                self.folder.display()
            ),
        }
    }
}

/// A file that is written and has no name yet.
struct Staged {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

fn file_failed(what: &str, path: &Path, error: std::io::Error) -> StoreError {
    let what = format!("cannot {what} {}", path.display());
    match error.kind() {
        // Ours, of a file that is larger than any of Plumb's; the system says the same of a file
        // that cannot grow, which is like a full disk.
        ErrorKind::FileTooLarge if error.raw_os_error().is_none() => StoreError::suspicious(
            format!("{} is not a file that Plumb wrote: {error}", path.display()),
            "nothing was changed; look who put it there, and bring the right file back",
        ),
        _ => StoreError::failed(what, error),
    }
}

/// What a file is, under whatever name.
type Identity = (u64, u64);

fn identity_of(file: &File) -> std::io::Result<Identity> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// What the file of this name itself is; none if there is none, or it cannot be told.
fn identity_at(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
