//! The files that a spec names, with `file("…")` or as a descriptor: only what lies in its folder
//! is read, for a spec may come from someone else.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::config::Document;

use crate::folder::{Folder, STATE_FOLDER};

/// The largest file that is read, in bytes.
const FILE_MAX: u64 = 1024 * 1024;

/// The contents of the files that the spec names with `file("…")`; an error text where one cannot
/// be read. Only files inside the spec's folder are read, after links.
pub(crate) fn read_all(
    folder: &Folder,
    document: &Document,
) -> BTreeMap<String, Result<Arc<str>, String>> {
    document.files.iter().map(|name| (name.clone(), read(folder, name))).collect()
}

/// The contents of one such file.
pub(crate) fn read(folder: &Folder, name: &str) -> Result<Arc<str>, String> {
    if let Some(inputs) = folder.saved() {
        let file = inputs.files.get(name).cloned();
        return file.unwrap_or_else(|| Err("the plan file does not hold it".to_owned()));
    }
    let cannot = |error: std::io::Error| format!("cannot read it: {error}");
    let root = folder.path().canonicalize().map_err(cannot)?;
    let path = root.join(name).canonicalize().map_err(cannot)?;
    let Ok(inside) = path.strip_prefix(&root) else {
        return Err("it lies outside the spec's folder".to_owned());
    };
    // What Plumb keeps there holds keys, and a spec may come from someone else; so may a link of that
    // name to another folder in this one.
    let is_kept = root.join(STATE_FOLDER).canonicalize().is_ok_and(|kept| path.starts_with(kept));
    if is_kept || inside.components().any(|part| part.as_os_str() == STATE_FOLDER) {
        return Err(format!("it lies in {STATE_FOLDER}, which is Plumb's own"));
    }
    let found = std::fs::metadata(&path).map_err(cannot)?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > FILE_MAX {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let bytes = std::fs::read(&path).map_err(cannot)?;
    String::from_utf8(bytes).map(Arc::from).map_err(|_| "it is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let folder = Folder::new(dir.path(), None).unwrap();
        (dir, folder)
    }

    #[test]
    fn files_outside_the_folder_are_not_read() {
        let (dir, folder) = folder(&[("a.txt", b"content")]);
        assert_eq!(&*read(&folder, "a.txt").unwrap(), "content");
        assert!(read(&folder, "../../etc/passwd").is_err());
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(read(&folder, "link").unwrap_err(), "it lies outside the spec's folder");
        assert_eq!(read(&folder, ".").unwrap_err(), "it is not a file");
    }

    #[test]
    fn what_plumb_keeps_for_itself_is_not_read() {
        let (dir, folder) = folder(&[]);
        std::fs::create_dir_all(dir.path().join(".plumb/service")).unwrap();
        std::fs::write(dir.path().join(".plumb/service/key"), "hunter2").unwrap();
        std::os::unix::fs::symlink(".plumb/service", dir.path().join("link")).unwrap();
        for name in [".plumb/service/key", "link/key", "./.plumb/service/../service/key"] {
            let error = read(&folder, name).unwrap_err();
            assert_eq!(error, "it lies in .plumb, which is Plumb's own", "{name}");
        }
        std::fs::rename(dir.path().join(".plumb"), dir.path().join("kept")).unwrap();
        std::os::unix::fs::symlink("kept", dir.path().join(".plumb")).unwrap();
        let error = read(&folder, "kept/service/key").unwrap_err();
        assert_eq!(error, "it lies in .plumb, which is Plumb's own");
    }
}
