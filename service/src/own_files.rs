//! The names of the service's files in its data folder, and the check that nothing foreign has
//! these names.
//!
//! The folder may have come with a repository. A link in the place of a file would choose which
//! file of this machine is written or removed, and opening a pipe would wait for its other end. The
//! folder itself may be a link, because the person who starts the service names it. The content of
//! the files is checked by the modules that write them.

use std::fs::{DirBuilder, FileType, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The names of the files, including those of the command that starts the service.
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

/// Patterns for git that match all files of the service, including temporary ones.
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

/// The error that an entry of the data folder has a name of the service and is not of the expected
/// kind.
#[derive(Debug, thiserror::Error)]
#[error("{} is {kind}", path.display())]
pub struct Strange {
    /// The path of the entry.
    pub path: PathBuf,
    kind: String,
}

/// Checks that every entry of a data folder with a name of the service is of the expected kind.
/// Opens nothing; callers check before they use the folder.
pub fn refuse_strange(data: &Path) -> Result<(), Strange> {
    for path in FILES.map(|name| data.join(name)) {
        refuse_strange_file(&path)?;
    }
    for path in FOLDERS.map(|name| data.join(name)) {
        refuse(path, "no folder", FileType::is_dir)?;
    }
    Ok(())
}

/// Refuses an entry that has the path of a file of the service and is not a regular file.
pub(crate) fn refuse_strange_file(path: &Path) -> Result<(), Strange> {
    refuse(path.to_owned(), "not a regular file", FileType::is_file)
}

fn refuse(path: PathBuf, other: &str, is_own: fn(&FileType) -> bool) -> Result<(), Strange> {
    // An entry that cannot be examined gives its error when it is opened.
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

/// Returns options that open a file itself and follow no link. A file that they create is for its
/// owner only.
pub(crate) fn itself() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).mode(0o600);
    options
}

/// Makes a folder, if it does not exist, inside of a folder that does.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            refuse(path.to_owned(), "no folder", FileType::is_dir).map_err(io::Error::other)
        }
        made => made,
    }
}

/// Writes a `.gitignore` that keeps the service's files out of git: keys, environments, inputs of
/// jobs. It lists them by name, because the folder may contain other things as well. A `.gitignore`
/// with content stays as it is.
pub(crate) fn hide(data: &Path) -> io::Result<()> {
    let path = data.join(".gitignore");
    if path.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let names = PATTERNS.map(|name| format!("/{name}\n"));
    // The file is opened for appending: of two commands that do this at once, neither overwrites
    // the other.
    let mut file = itself().create(true).append(true).open(&path)?;
    file.write_all(format!("# plumb serve\n{}", names.concat()).as_bytes())?;
    file.sync_all()
}

/// Writes a file that only its owner can read: either the whole text, or nothing.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    // The file is created anew, because a left-over file or link of that name has its own mode or
    // leads to another place.
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

/// Makes the creations, renames and removals in a folder durable.
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
