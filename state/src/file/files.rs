//! The names in the folder, and the way in which a file gets its name.

use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cipher::{Cipher, STATE};
use crate::disk::Disk;
use crate::error::StoreError;

/// The largest file that is read, in bytes: 250,000 instances of some KiB each are smaller.
pub(super) const LARGEST: u64 = 4 << 30;

/// The names in the folder.
#[derive(Clone)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) cipher: Cipher,
}

impl Files {
    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.folder.join("journal")
    }

    /// Returns the path of the file that names the location to which the state was moved, or from which it
    /// comes.
    pub(super) fn moved(&self) -> PathBuf {
        self.folder.join("moved")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(super) fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    pub(super) fn backup(&self, serial: u64) -> PathBuf {
        self.backups().join(format!("{serial}.json"))
    }

    /// Opens the bytes of a snapshot.
    pub(super) fn open_state<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
        let path = self.state();
        self.cipher.open(STATE, bytes).map_err(|error| error.of(&path.display().to_string()))
    }

    /// Writes a new file durably, under a temporary name.
    pub(super) fn stage(&self, path: &Path, bytes: &[u8]) -> Result<Staged, StoreError> {
        let temporary = path.with_added_extension("tmp");
        let failed = |what, error| file_failed(what, &temporary, error);
        let file = self.disk.create(&temporary).map_err(|error| failed("create", error))?;
        self.disk.write(&file, bytes).map_err(|error| failed("write", error))?;
        self.disk.sync(&file).map_err(|error| failed("sync", error))?;
        Ok(Staged { file, temporary, path: path.to_owned() })
    }

    /// Gives a staged file its name, durably. After an error the file may have it or not.
    pub(super) fn publish(&self, staged: Staged) -> Result<File, StoreError> {
        let Staged { file, temporary, path } = staged;
        self.disk
            .rename(&temporary, &path)
            .map_err(|error| file_failed("replace", &path, error))?;
        let folder = path.parent().unwrap_or(&self.folder);
        self.disk.sync_folder(folder).map_err(|error| file_failed("sync", folder, error))?;
        Ok(file)
    }
}

/// A written file that does not have its final name yet.
pub(super) struct Staged {
    pub(super) file: File,
    temporary: PathBuf,
    path: PathBuf,
}

pub(super) fn file_failed(what: &str, path: &Path, error: std::io::Error) -> StoreError {
    let what = format!("cannot {what} {}", path.display());
    match error.kind() {
        // This error is ours, for a file larger than any of Plumb's. The operating system has the same kind
        // for a file that cannot grow, which is like a full disk.
        ErrorKind::FileTooLarge if error.raw_os_error().is_none() => StoreError::suspicious(
            format!("{} was not written by Plumb: {error}", path.display()),
            "nothing was changed; find out who put it there, and restore the right file",
        ),
        _ => StoreError::failed(what, error),
    }
}

/// The identity of a file, whatever its name: device and inode.
pub(super) type Identity = (u64, u64);

pub(super) fn identity_of(file: &File) -> std::io::Result<Identity> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Returns the identity of the file with this name; none if there is none, or it cannot be read.
pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
