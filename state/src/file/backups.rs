//! Old snapshots, and files that a person replaced: kept for people, never read by a run.

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
/// The number of replacements by a person whose replaced files are kept.
const REPLACED: usize = 10;
/// The beginning of the names of files that a person replaced; a serial and the file's own name follow.
const ASIDE: &str = "replaced-after-";

/// Gives the current snapshot its name among the backups.
pub(super) fn keep(files: &Files, serial: u64) -> Result<(), StoreError> {
    let (state, backup) = (files.state(), files.backup(serial));
    match second_name(files, &state, &backup) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => make_way(files, serial),
        result => result.map_err(|error| file_failed("make", &backup, error)),
    }
}

/// Makes room for the backup of a serial. A backup of this serial may exist already: from a save that was cut
/// short, or from another history that counts the same serials. The latter is moved aside.
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
    // Anything that is not a file is no backup, and is moved.
    let is_file = disk::look(other).is_ok();
    Ok(is_file && files.disk.read(one, LARGEST)? == files.disk.read(other, LARGEST)?)
}

/// Gives a file a second name; if that is not possible, makes a copy of it.
fn second_name(files: &Files, from: &Path, to: &Path) -> std::io::Result<()> {
    match files.disk.link(from, to) {
        Err(error) if has_no_second_names(&error) => copy(files, from, to),
        result => result,
    }
}

/// Returns true if the error means that a file cannot get a second name. File systems without second names
/// report one of two errors. Others allow no further name for the file, or have the two folders on two
/// devices.
fn has_no_second_names(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported
            | ErrorKind::PermissionDenied
            | ErrorKind::TooManyLinks
            | ErrorKind::CrossesDevices
    )
}

/// Copies a file completely or not at all: a part of a copy would later look like another history.
fn copy(files: &Files, from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let bytes = files.disk.read(from, LARGEST)?.ok_or(ErrorKind::NotFound)?;
    let staged = to.with_added_extension("tmp");
    let file = files.disk.create(&staged)?;
    files.disk.write(&file, &bytes)?;
    // The copy must be durable, because it may be the only file that is left.
    files.disk.sync(&file)?;
    files.disk.rename(&staged, to)
}

/// Seals backups from before there was a key. Each file is replaced as a whole, so after a crash it is either
/// sealed or the next save seals it. The same is true for a file that cannot be replaced now.
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

/// Returns true if a file begins like a sealed piece. Reads only the first bytes, because there may be many
/// large files.
fn begins_sealed(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read =
        disk::nofollow().read(true).open(path).and_then(|file| file.take(8).read_to_end(&mut head));
    read.is_err() || cipher::is_sealed(&head)
}

/// Returns the serials of the backups, in order. A folder that cannot be listed counts as empty.
pub(super) fn serials(files: &Files) -> Vec<u64> {
    let mut serials: Vec<u64> = names(files).iter().filter_map(|name| serial(name)).collect();
    serials.sort_unstable();
    serials
}

/// Returns a backup; none if there is none with that serial.
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

/// Removes the oldest backups. An error does not fail the run; the next run tries again.
pub(super) fn prune(files: &Files) {
    let serials = serials(files);
    for serial in &serials[..serials.len().saturating_sub(BACKUPS)] {
        std::fs::remove_file(files.backup(*serial)).ok();
    }
}

/// Keeps the files that are about to be replaced, for people. They may be unreadable or missing, and neither
/// prevents the restoration.
pub(super) fn set_aside(files: &Files, serial: u64) {
    for path in [files.state(), files.journal()] {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        second_name(files, &path, &aside(files, serial, &name)).ok();
    }
    prune_aside(files);
}

/// Removes the files of old replacements.
fn prune_aside(files: &Files) {
    let found = names(files).into_iter();
    let found: Vec<_> = found.filter_map(|name| Some((serial_aside(&name)?, name))).collect();
    let serials: BTreeSet<u64> = found.iter().map(|(serial, _)| *serial).collect();
    let Some(oldest) = serials.iter().rev().nth(REPLACED - 1) else { return };
    for (_, name) in found.iter().filter(|(serial, _)| serial < oldest) {
        std::fs::remove_file(files.backups().join(name)).ok();
    }
}

/// Returns the names of the files in the folder of backups. A folder that cannot be listed counts as empty.
/// Anything that is no regular file is left out, because Plumb did not put it there.
pub(super) fn names(files: &Files) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(files.backups()) else { return Vec::new() };
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the serial of the backup with this name; none if it is no name of a backup.
pub(super) fn serial(name: &str) -> Option<u64> {
    let serial = name.strip_suffix(".json")?.parse().ok()?;
    (serial <= NUMBER_MAX && format!("{serial}.json") == name).then_some(serial)
}

/// Returns the serial after which the file with this name was replaced; none if it is no such name.
fn serial_aside(name: &str) -> Option<u64> {
    let (serial, _) = name.strip_prefix(ASIDE)?.split_once('-')?;
    serial.parse().ok()
}

/// Returns true if Plumb gives files here such a name. All other files stay as they are.
fn is_ours(name: &str) -> bool {
    // A copy that was cut short has the same content as a whole one, or less.
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    serial(name).or_else(|| serial_aside(name)).is_some()
}

/// Returns the path for a file that was replaced after a serial.
fn aside(files: &Files, serial: u64, name: &str) -> PathBuf {
    files.backups().join(format!("{ASIDE}{serial}-{name}"))
}
