//! The files that a spec names, with `file("…")` and its like or as a descriptor, and those that its modules name: only
//! what lies in the folder of the spec or the module is read, for both may come from someone else. The name of a file is
//! that of a [`FileRequest`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::config::Document;
use engine::expression::FileRequest;

use crate::folder::{Folder, STATE_FOLDER};

/// The largest file that is read, in bytes.
const FILE_MAX: u64 = 1024 * 1024;
/// The maximum number of files and folders in a listed folder.
const LISTED_MAX: usize = 10_000;

/// Returns the contents of the files that the spec names with `file("…")`, or an error text for each that
/// cannot be read. A file must be inside the spec's folder, or the module's, after links are resolved.
pub(crate) fn read_all(
    folder: &Folder,
    document: &Document,
) -> BTreeMap<String, Result<Arc<str>, String>> {
    let mut files: BTreeMap<_, _> =
        document.files.iter().map(|name| (name.clone(), read(folder, name))).collect();
    for (source, module) in &document.library {
        let place = source.place();
        for name in &module.files {
            files.insert(name.clone(), read_inside(folder, &place, name));
        }
    }
    files
}

/// Returns the content of one file that the spec names.
pub(crate) fn read(folder: &Folder, name: &str) -> Result<Arc<str>, String> {
    read_inside(folder, "", name)
}

/// Returns the content of a file that must be inside `place`. Both paths are relative to the folder of the
/// spec.
pub(crate) fn read_inside(folder: &Folder, place: &str, name: &str) -> Result<Arc<str>, String> {
    if let Some(inputs) = folder.saved() {
        let file = inputs.files.get(name).cloned();
        return file.unwrap_or_else(|| Err("the plan file does not hold it".to_owned()));
    }
    read_below(folder, place, name)
}

/// Returns the content of a file inside `place`. Both paths are relative to the folder of the spec.
fn read_below(folder: &Folder, place: &str, name: &str) -> Result<Arc<str>, String> {
    if let Some(open) = folder.open_text(&folder.join(place).join(name)) {
        return Ok(Arc::clone(open));
    }
    let cannot = |error: std::io::Error| format!("cannot read it: {error}");
    let own = folder.path().canonicalize().map_err(cannot)?;
    let root = own.join(place).canonicalize().map_err(cannot)?;
    let request = FileRequest::of_name(name);
    let path = own.join(request.path()).canonicalize().map_err(cannot)?;
    let Ok(inside) = path.strip_prefix(&root) else {
        let whose = if place.is_empty() { "spec" } else { "module" };
        return Err(format!("it lies outside the {whose}'s folder"));
    };
    // Plumb's own folder holds keys, and the spec may come from someone else. So may a link of that name to
    // another folder of the spec. Fetched modules are in that folder, too.
    let kept = own.join(STATE_FOLDER).canonicalize();
    let is_kept = kept.is_ok_and(|kept| path.starts_with(&kept) && !root.starts_with(&kept));
    if is_kept || inside.components().any(|part| part.as_os_str() == STATE_FOLDER) {
        return Err(format!("it lies in {STATE_FOLDER}, which is Plumb's own"));
    }
    let found = std::fs::metadata(&path).map_err(cannot)?;
    if let FileRequest::Listing(_) = request {
        return listing(&path).map(Arc::from);
    }
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > FILE_MAX {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let bytes = std::fs::read(&path).map_err(cannot)?;
    if let FileRequest::Bytes(_) = request {
        return Ok(STANDARD.encode(bytes).into());
    }
    let no_text = "it is not UTF-8 text: filebase64(…) reads files of bytes";
    String::from_utf8(bytes).map(Arc::from).map_err(|_| no_text.to_owned())
}

/// Returns the paths of the files in a folder and its subfolders, sorted, one per line. Leaves out links and
/// Plumb's own files.
fn listing(folder: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot list it: {error}");
    let (mut files, mut folders) = (Vec::new(), vec![String::new()]);
    let mut seen = 0;
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&below)).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(cannot)?);
            seen += 1;
            if seen > LISTED_MAX {
                return Err(format!("it holds more than {LISTED_MAX} files and folders"));
            }
            let Some(name) = name.to_str().filter(|name| !name.contains('\n')) else { continue };
            if kind.is_dir() && name != STATE_FOLDER {
                folders.push(format!("{below}{name}/"));
            } else if kind.is_file() {
                files.push(format!("{below}{name}"));
            }
        }
    }
    files.sort();
    Ok(files.join("\n"))
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

    #[test]
    fn a_folder_is_a_list_of_its_files() {
        let (dir, folder) = folder(&[("b.txt", b""), ("a.txt", b"\xff")]);
        for path in ["more/deep/c.txt", ".plumb/key"] {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(&*read(&folder, "./").unwrap(), "a.txt\nb.txt\nmore/deep/c.txt");
        assert_eq!(&*read(&folder, "more/").unwrap(), "deep/c.txt");
        assert_eq!(read(&folder, "etc/").unwrap_err(), "it lies outside the spec's folder");
        assert!(read(&folder, "none/").unwrap_err().starts_with("cannot read it"));
        assert!(read(&folder, "a.txt/").is_err());
    }

    #[test]
    fn bytes_are_read_in_base64() {
        let (_dir, folder) = folder(&[("a.bin", b"\xff\x00"), ("a.txt", b"ok")]);
        assert_eq!(&*read(&folder, "base64:a.bin").unwrap(), "/wA=");
        assert_eq!(&*read(&folder, "base64:a.txt").unwrap(), "b2s=");
        let said = read(&folder, "a.bin").unwrap_err();
        assert_eq!(said, "it is not UTF-8 text: filebase64(…) reads files of bytes");
        assert!(read(&folder, "base64:../a.bin").is_err());
    }
}
