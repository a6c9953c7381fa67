//! Writing the files of a spec: completely or not at all, and never over a change that someone else made in
//! the meantime.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::CommandError;

/// The end of the name of a file while it is written. It is not the name of a spec file.
const UNFINISHED: &str = ".plumb-new";

/// Replaces the text `old` of a file by a new one. Without `old`, the file must not exist. A link stays a
/// link.
pub(crate) fn replace(path: &Path, old: Option<&str>, new: &str) -> Result<(), CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write {}", path.display()), &error)
    };
    let current = match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    if current.as_deref() != old.map(str::as_bytes) {
        let message = format!("{} was changed by somebody else meanwhile", path.display());
        return Err(
            CommandError::new(message).help("nothing was written to it: run the command again")
        );
    }
    let target = match old {
        Some(_) => path.canonicalize().map_err(fail)?,
        None => path.to_owned(),
    };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(UNFINISHED)
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(fail)?;
    file.write_all(new.as_bytes()).map_err(fail)?;
    if old.is_some() {
        let found = std::fs::metadata(&target).map_err(fail)?;
        file.as_file().set_permissions(found.permissions()).map_err(fail)?;
    }
    file.as_file().sync_all().map_err(fail)?;
    file.persist(&target).map(drop).map_err(|error| fail(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_with_its_permissions_and_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.toml"), dir.path().join("link.toml"));
        replace(&path, None, "one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a.toml", &link).unwrap();
        replace(&link, Some("one"), "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_somebody_else_wrote_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        std::fs::write(&path, "theirs").unwrap();
        for old in [None, Some("ours")] {
            let error = replace(&path, old, "new").unwrap_err();
            assert!(error.message.contains("meanwhile"), "{}", error.message);
        }
        assert!(replace(&dir.path().join("b.toml"), Some("x"), "new").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    }
}
