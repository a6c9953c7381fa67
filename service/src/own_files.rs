//! The names that the service gives in its data folder, and that what stands under them is its own.
//!
//! The folder may have come along with a repository: a link in the place of a file would choose which
//! file of this machine is written to or removed, and to open a pipe is to wait for its other end. The
//! folder itself may be a link, for whoever starts the service names it. What is in the files is the
//! matter of those who write them.

use std::fs::{DirBuilder, FileType, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The files, those of the command that starts the service among them.
const FILES: [&str; 10] = [
    "access.log",
    "key",
    "lock",
    "port",
    "serve.json",
    "service.db",
    "service.db-journal",
    "service.db-shm",
    "service.db-wal",
    "service.log",
];
const FOLDERS: [&str; 5] = ["keys", "logs", "models", "pods", "volumes"];

/// All of them as patterns of git, with what is beside them for a while.
const PATTERNS: [&str; 14] = [
    ".gitignore",
    "*.new",
    "access.log*",
    "key",
    "keys/",
    "lock",
    "logs/",
    "models/",
    "pods/",
    "port",
    "serve.json",
    "service.db*",
    "service.log*",
    "volumes/",
];

/// Something stands in the data folder where the service has its own, and is not of that kind.
#[derive(Debug, thiserror::Error)]
#[error("{} is {kind}", path.display())]
pub struct Strange {
    /// Where it stands.
    pub path: PathBuf,
    kind: String,
}

/// Looks whether all that stands under the service's names in a data folder can be its own. Nothing is
/// opened, and whoever wants to use the folder asks before.
pub fn refuse_strange(data: &Path) -> Result<(), Strange> {
    for path in FILES.map(|name| data.join(name)) {
        refuse_strange_file(&path)?;
    }
    for path in FOLDERS.map(|name| data.join(name)) {
        refuse(path, "no folder", FileType::is_dir)?;
    }
    Ok(())
}

/// Refuses what stands at the place of a file of the service and is none.
pub(crate) fn refuse_strange_file(path: &Path) -> Result<(), Strange> {
    refuse(path.to_owned(), "not a regular file", FileType::is_file)
}

fn refuse(path: PathBuf, other: &str, is_own: fn(&FileType) -> bool) -> Result<(), Strange> {
    // What cannot be looked at says so to whoever opens it.
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    let kind = match found.file_type() {
        it if is_own(&it) => return Ok(()),
        it if it.is_symlink() => link(&path),
        _ => other.to_owned(),
    };
    Err(Strange { path, kind })
}

fn link(path: &Path) -> String {
    let to = std::fs::read_link(path).unwrap_or_default();
    format!("a link to {}", to.display())
}

/// Options that open a file itself, and not what a link of its name leads to; for its owner only where
/// it is made.
pub(crate) fn itself() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).mode(0o600);
    options
}

/// Makes a folder in one that is there, if it is not there itself.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            refuse(path.to_owned(), "no folder", FileType::is_dir).map_err(io::Error::other)
        }
        made => made,
    }
}

/// Keeps what the service writes out of git: keys, environments, inputs of jobs. By name, for the folder
/// may be one that holds other things as well; what somebody wrote there stays.
pub(crate) fn hide(data: &Path) -> io::Result<()> {
    let path = data.join(".gitignore");
    if path.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let names = PATTERNS.map(|name| format!("/{name}\n"));
    // Appended: of two commands that do this at once, neither undoes what the other wrote.
    let mut file = itself().create(true).append(true).open(&path)?;
    file.write_all(format!("# plumb serve\n{}", names.concat()).as_bytes())?;
    file.sync_all()
}

/// Writes a file that only its owner can read, all of it or nothing.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    // It is made anew: a left-over, or a link, of that name has a mode and a place of its own.
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = itself().create_new(true).write(true).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")))
}

/// Makes what was made, renamed or removed in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_name_is_kept_out_of_git() {
        for name in FILES.iter().chain(&FOLDERS) {
            let matches = |pattern: &&str| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => pattern.trim_end_matches('/') == *name,
            };
            assert!(PATTERNS.iter().any(matches), "{name}");
        }
    }

    #[test]
    fn a_folder_is_made_once_and_is_no_link() {
        let (data, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = data.path().join("v1");
        assert!(make_folder(&path).is_ok() && make_folder(&path).is_ok());
        let link = data.path().join("v2");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert!(make_folder(&link).unwrap_err().to_string().contains("v2 is a link to /"));
    }

    #[test]
    fn a_private_file_is_its_owners_only_whatever_was_left_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, left) = (folder.path().join("serve.json"), folder.path().join("serve.new"));
        std::fs::write(&left, "left over").unwrap();
        std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "text").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let other = folder.path().join("other");
        std::fs::write(&other, "of somebody").unwrap();
        std::os::unix::fs::symlink(&other, &left).unwrap();
        write_private(&path, "more").unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "of somebody");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "more");
    }
}
