//! Old snapshots, and what was replaced by hand: kept for people, never read by a run.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use engine::state::Snapshot;

use super::files::{Files, LARGEST, file_failed, identity_at};
use crate::cipher::{self, STATE};
use crate::error::StoreError;
use crate::frame::NUMBER_MAX;
use crate::{disk, format};

/// The number of old snapshots that are kept.
const BACKUPS: usize = 20;
/// The number of replacements by hand of which the replaced files are kept.
const REPLACED: usize = 10;
/// The beginning of the names of files that were replaced by hand; a serial and the file's own name follow.
const ASIDE: &str = "replaced-after-";

/// Gives the current snapshot its name among the backups.
pub(super) fn keep(files: &Files, serial: u64) -> Result<(), StoreError> {
    let (state, backup) = (files.state(), files.backup(serial));
    match second_name(files, &state, &backup) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => make_way(files, serial),
        result => result.map_err(|error| file_failed("make", &backup, error)),
    }
}

/// A save that was cut short has made the backup of this serial; or it is of another history, which
/// counts the same serials. That one is put aside.
fn make_way(files: &Files, serial: u64) -> Result<(), StoreError> {
    let (state, backup) = (files.state(), files.backup(serial));
    let failed = |error| file_failed("make", &backup, error);
    if is_same(files, &state, &backup).map_err(failed)? {
        return Ok(());
    }
    let aside = aside(files, serial, "backup.json");
    files.disk.rename(&backup, &aside).map_err(failed)?;
    second_name(files, &state, &backup).map_err(failed)
}

fn is_same(files: &Files, one: &Path, other: &Path) -> std::io::Result<bool> {
    if identity_at(one).is_some_and(|identity| identity_at(other) == Some(identity)) {
        return Ok(true);
    }
    // What stands there and is no file is no backup, and makes way.
    let is_file = disk::look(other).is_ok();
    Ok(is_file && files.disk.read(one, LARGEST)? == files.disk.read(other, LARGEST)?)
}

/// Gives a file a second name; where that cannot be, makes a copy of it.
fn second_name(files: &Files, from: &Path, to: &Path) -> std::io::Result<()> {
    match files.disk.link(from, to) {
        Err(error) if has_no_second_names(&error) => copy(files, from, to),
        result => result,
    }
}

/// File systems without second names say so in one of two ways. Others have too many of a file
/// already, or have the two folders on two devices.
fn has_no_second_names(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported
            | ErrorKind::PermissionDenied
            | ErrorKind::TooManyLinks
            | ErrorKind::CrossesDevices
    )
}

/// Whole or not at all: a part of a copy would be taken for another history later.
fn copy(files: &Files, from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let bytes = files.disk.read(from, LARGEST)?.ok_or(ErrorKind::NotFound)?;
    let staged = to.with_added_extension("tmp");
    let file = files.disk.create(&staged)?;
    files.disk.write(&file, &bytes)?;
    // What it is a copy of has lasted; as the only one that is left, it must as well.
    files.disk.sync(&file)?;
    files.disk.rename(&staged, to)
}

/// Seals what was kept before there was a key. Each file is replaced as a whole, so a crash leaves
/// one that is sealed or one that the next save seals; so does one that cannot be replaced now.
pub(super) fn seal(files: &Files) {
    if !files.cipher.is_on() {
        return;
    }
    let ours = names(files).into_iter().filter(|name| is_ours(name));
    for path in ours.map(|name| files.backups().join(name)) {
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
    let read =
        disk::nofollow().read(true).open(path).and_then(|file| file.take(8).read_to_end(&mut head));
    read.is_err() || cipher::is_sealed(&head)
}

/// Lists the serials of the backups, in order. What cannot be listed is not there.
pub(super) fn serials(files: &Files) -> Vec<u64> {
    let mut serials: Vec<u64> = names(files).iter().filter_map(|name| serial(name)).collect();
    serials.sort_unstable();
    serials
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
        StoreError::suspicious(what, "nothing was changed; choose another serial")
    })
}

/// Removes the oldest backups. An error is no reason to fail a run; the next one tries again.
pub(super) fn prune(files: &Files) {
    let serials = serials(files);
    for serial in &serials[..serials.len().saturating_sub(BACKUPS)] {
        std::fs::remove_file(files.backup(*serial)).ok();
    }
}

/// Keeps what is about to be replaced for whoever wants to look at it. It may be unreadable or
/// missing, and neither may stand in the way of bringing back what is good.
pub(super) fn set_aside(files: &Files, serial: u64) {
    for path in [files.state(), files.journal()] {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        second_name(files, &path, &aside(files, serial, &name)).ok();
    }
    prune_aside(files);
}

/// Removes what was replaced so often ago that nobody will look at it any more.
fn prune_aside(files: &Files) {
    let found = names(files).into_iter();
    let found: Vec<_> = found.filter_map(|name| Some((serial_aside(&name)?, name))).collect();
    let serials: BTreeSet<u64> = found.iter().map(|(serial, _)| *serial).collect();
    let Some(oldest) = serials.iter().rev().nth(REPLACED - 1) else { return };
    for (_, name) in found.iter().filter(|(serial, _)| serial < oldest) {
        std::fs::remove_file(files.backups().join(name)).ok();
    }
}

/// The names of the files in the folder of backups. What cannot be listed is not there, and what is no
/// regular file is nothing that was kept.
pub(super) fn names(files: &Files) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(files.backups()) else { return Vec::new() };
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The serial of the backup that has this name.
pub(super) fn serial(name: &str) -> Option<u64> {
    let serial = name.strip_suffix(".json")?.parse().ok()?;
    (serial <= NUMBER_MAX && format!("{serial}.json") == name).then_some(serial)
}

/// The serial after which what has this name was replaced.
fn serial_aside(name: &str) -> Option<u64> {
    let (serial, _) = name.strip_prefix(ASIDE)?.split_once('-')?;
    serial.parse().ok()
}

/// Returns true if Plumb keeps files of this name here. All others stay as they are.
fn is_ours(name: &str) -> bool {
    // A copy that was cut short has all that a whole one has.
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    serial(name).or_else(|| serial_aside(name)).is_some()
}

/// The name of what was replaced after a serial.
fn aside(files: &Files, serial: u64, name: &str) -> PathBuf {
    files.backups().join(format!("{ASIDE}{serial}-{name}"))
}
