//! The file operations of a file store, as a seam for tests: each of them can fail.
//!
//! This is no abstraction over file systems: names and handles are those of the operating system. Locks are
//! taken on the handles directly, because no test needs them to fail.
//!
//! No file is opened through a link under its name: a folder may come with a repository, and a link in it
//! could choose which other file of this machine is read, written or locked.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The file operations of a file store.
pub trait Disk: Send + Sync {
    /// Reads a whole file; returns none if there is none. If it is no regular file (but a link, for example),
    /// or has more than `most` bytes, that is an error of the kind `FileTooLarge`.
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>>;

    /// Makes a folder that only this user can enter. An existing one is left as it is.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Opens a new file that only this user can read. Removes a left-over file with that name first.
    fn create(&self, path: &Path) -> io::Result<File>;

    /// Opens a file to read and append.
    fn open(&self, path: &Path) -> io::Result<File>;

    /// Writes all of `bytes`.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Makes the written bytes durable.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Gives a file a second name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file and replaces the file with the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// Returns the metadata of a file whose name only Plumb gives; none if there is none. Anything but a regular
/// file is an error of the kind `FileTooLarge`: opening a pipe would wait for its other end, and a link was
/// made by somebody else, wherever it leads.
pub fn look(path: &Path) -> io::Result<Option<Metadata>> {
    let is_none = |why| Err(io::Error::new(ErrorKind::FileTooLarge, why));
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(found) if found.is_symlink() => is_none("it is a link, not a regular file"),
        Ok(_) => is_none("it is not a regular file"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns options that open a file itself, and not the target of a link with that name.
pub fn nofollow() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(found) = look(path)? else { return Ok(None) };
        let size = found.len();
        if size > most {
            let why = format!("it has {size} bytes, and Plumb never writes more than {most}");
            return Err(io::Error::new(ErrorKind::FileTooLarge, why));
        }
        let file = match nofollow().read(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(most).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        nofollow().read(true).append(true).open(path)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}
