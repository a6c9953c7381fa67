//! The file with the mark of a state that is moving: see [`crate::mark`].

use std::io::ErrorKind;

use super::files::{Files, LARGEST, file_failed};
use crate::error::StoreError;
use crate::mark::Mark;

/// Returns the mark of the folder; none if there is none.
pub(super) fn read(files: &Files) -> Result<Option<Mark>, StoreError> {
    let path = files.moved();
    let bytes = files.disk.read(&path, LARGEST).map_err(|e| file_failed("read", &path, e))?;
    Ok(bytes.map(|bytes| Mark::parse(&String::from_utf8_lossy(&bytes))))
}

/// Marks the folder, or removes its mark, durably. If a power cut undid that, runs would use a location that
/// does not count.
pub(super) fn write(files: &Files, mark: Option<&Mark>) -> Result<(), StoreError> {
    let path = files.moved();
    if let Some(mark) = mark {
        let staged = files.stage(&path, mark.text().as_bytes())?;
        return files.publish(staged).map(drop);
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(file_failed("remove", &path, error))
        }
        // The folder is synced even if there is no file: a run that removed it may have been killed before
        // that was durable.
        _ => {
            let folder = &files.folder;
            files.disk.sync_folder(folder).map_err(|error| file_failed("sync", folder, error))
        }
    }
}
