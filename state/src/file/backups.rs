//! Old snapshots, and what was replaced by hand: kept for people, never read by a run.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use super::{Files, LARGEST, file_failed};
use engine::state::Snapshot;

use crate::StoreError;
use crate::cipher::{self, STATE};
use crate::format;

/// How many old snapshots are kept.
const BACKUPS: usize = 20;
/// Of how many replacements what was there is kept.
const REPLACED: usize = 10;
/// How the names begin of what was replaced by hand; a serial and the file's own name follow.
const ASIDE: &str = "replaced-after-";

/// Gives the current snapshot its name among the backups.
pub(super) fn keep(files: &Files, serial: u64) -> Result<(), StoreError> {
    let (state, backup) = (files.state(), files.backup(serial));
    match files.disk.link(&state, &backup) {
        Ok(()) => Ok(()),
        // A save that was cut short has made it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if is_unsupported(&error) => copy(files, serial),
        Err(error) => Err(file_failed("make", &backup, error)),
    }
}

/// File systems without second names say so in one of two ways.
fn is_unsupported(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied)
}

/// For file systems without second names.
fn copy(files: &Files, serial: u64) -> Result<(), StoreError> {
    let (state, backup) = (files.state(), files.backup(serial));
    let copied = files.disk.read(&state, LARGEST).and_then(|bytes| {
        let file = files.disk.create(&backup)?;
        files.disk.write(&file, &bytes.unwrap_or_default())
    });
    copied.map_err(|error| file_failed("make", &backup, error))
}

/// Seals what was kept before there was a key. Each file is replaced as a whole, so a crash leaves
/// one that is sealed or one that the next save seals; so does one that cannot be replaced now.
pub(super) fn seal(files: &Files) {
    let Ok(entries) = std::fs::read_dir(files.backups()) else { return };
    if !files.cipher.is_on() {
        return;
    }
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if !begins_sealed(&path)
            && let Some(bytes) = files.disk.read(&path, LARGEST).ok().flatten()
            && let Ok(sealed) = files.cipher.seal(STATE, &bytes)
            && let Ok(staged) = files.stage(&path, &sealed)
        {
            files.publish(staged).ok();
        }
    }
}

/// Looks at the first bytes only: there may be many files, and large ones.
fn begins_sealed(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut head));
    read.is_err() || cipher::is_sealed(&head)
}

/// A backup, if there is one of that serial.
pub(super) fn read(files: &Files, serial: u64) -> Result<Option<Snapshot>, StoreError> {
    let path = files.backup(serial);
    let bytes = files.disk.read(&path, LARGEST).map_err(|e| file_failed("read", &path, e))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let name = path.display();
    let plain = files.cipher.open(STATE, &bytes).map_err(|e| e.of(&name.to_string()))?;
    format::decode(&plain).map(|(_, snapshot)| Some(snapshot)).map_err(|error| {
        let what = format!("{name} cannot be read: {error}");
        StoreError::suspicious(what, "nothing was changed; take another one")
    })
}

/// Removes the oldest backups. An error is no reason to fail a run; the next one tries again.
pub(super) fn prune(files: &Files) {
    let serials = files.backup_serials();
    for serial in &serials[..serials.len().saturating_sub(BACKUPS)] {
        std::fs::remove_file(files.backup(*serial)).ok();
    }
}

/// Keeps what is about to be replaced for whoever wants to look at it. It may be unreadable or
/// missing, and neither may stand in the way of bringing back what is good.
pub(super) fn set_aside(files: &Files, serial: u64) {
    for path in [files.state(), files.journal()] {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = files.backups().join(format!("{ASIDE}{serial}-{name}"));
        files.disk.link(&path, &aside).ok();
    }
    prune_aside(files);
}

/// Removes what was replaced so often ago that nobody will look at it any more.
fn prune_aside(files: &Files) {
    let Ok(entries) = std::fs::read_dir(files.backups()) else { return };
    let found = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let (serial, _) = path.file_name()?.to_str()?.strip_prefix(ASIDE)?.split_once('-')?;
        Some((serial.parse::<u64>().ok()?, path))
    });
    let found: Vec<_> = found.collect();
    let serials: BTreeSet<u64> = found.iter().map(|(serial, _)| *serial).collect();
    let Some(oldest) = serials.iter().rev().nth(REPLACED - 1) else { return };
    for (_, path) in found.iter().filter(|(serial, _)| serial < oldest) {
        std::fs::remove_file(path).ok();
    }
}
