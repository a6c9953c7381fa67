//! The stored state for commands: read without a lock, or edited under a lock.

use std::path::Path;
use std::time::Duration;

use apply::ApplyError;
use apply::session::{Folded, Session, fold, fold_if_any};
use engine::journal::Record;
use engine::state::Snapshot;
use engine::stored::DamagedValue;
use state::Loaded;

use crate::error::{CommandError, Status, chain};
use crate::folder::Folder;
use crate::log::Phase;
use crate::runtime;
use crate::system::System;

/// A stored state at one moment.
pub(crate) struct Stored {
    /// The state with the journal folded in; `None` if nothing was ever applied.
    pub(crate) snapshot: Option<Snapshot>,
    /// The records since the last snapshot.
    pub(crate) records: Vec<Record>,
}

/// Reads the state of a folder, without a lock.
pub(crate) fn read(folder: &Folder) -> Result<Stored, CommandError> {
    let store = folder.store()?;
    let loaded = runtime::wait_for(async { Ok(store.load().await?) })?;
    folded(loaded)
}

/// Reads the state of a folder, and refuses a folder that has neither a state nor a spec.
pub(crate) fn read_here(folder: &Folder) -> Result<Stored, CommandError> {
    let stored = read(folder)?;
    if stored.snapshot.is_none() && folder.spec_if_any().is_ok_and(|spec| spec.is_none()) {
        let place = folder.path().display();
        return Err(CommandError::new(format!("there is neither a spec nor a state in {place}"))
            .help("`plumb init` writes a small spec; `-C DIR` works in another folder"));
    }
    Ok(stored)
}

/// Reads the state of a folder. Fails if nothing was ever applied there.
pub(crate) fn read_some(folder: &Folder) -> Result<Snapshot, CommandError> {
    read(folder)?.snapshot.ok_or_else(|| nothing_applied(folder.plumb().as_path()))
}

fn nothing_applied(place: &Path) -> CommandError {
    CommandError::new(format!("nothing was applied yet: there is no state in {}", place.display()))
        .help("`plumb apply` makes one; `-C DIR` works in another folder")
}

/// Reads the state of a folder, with the journal folded in. Without a state, returns a new one.
pub(crate) async fn load(folder: &Folder) -> Result<Folded, CommandError> {
    let _phase = Phase::begin("read the state");
    Ok(fold(folder.store()?.load().await?, &System)?)
}

/// Reads the state of a folder, for commands that read the spec afterwards. If the spec does not say where
/// the state is, returns a new state: reading the spec then reports the mistake.
pub(crate) async fn load_if_told(folder: &Folder) -> Result<Folded, CommandError> {
    if folder.settings().is_err() {
        Ok(fold(Loaded::nothing(), &System)?)
    } else {
        load(folder).await
    }
}

/// Returns an empty state, for checks of a spec without its state.
pub(crate) fn no_state() -> Snapshot {
    Snapshot::new(String::new(), engine::digest::SealKey::from_random([0; 32]))
}

/// Folds the journal of a loaded state into it.
pub(crate) fn folded(loaded: Loaded) -> Result<Stored, CommandError> {
    let snapshot = fold_if_any(&loaded).map_err(ApplyError::from)?;
    let Loaded { records, .. } = loaded;
    Ok(Stored { snapshot, records })
}

fn suspicious(error: &dyn std::error::Error) -> CommandError {
    CommandError::new(chain(error))
        .status(Status::Suspicious)
        .help("nothing was changed; put a backup in place with `plumb state push --force FILE`")
}

/// Returns the error for a value of the state that cannot be read.
pub(crate) fn damaged(error: &DamagedValue) -> CommandError {
    suspicious(error)
}

/// Edits the state under its lock. `edit` returns the records. They are folded before they are written, so
/// impossible records are never written.
pub(crate) fn edit(
    folder: &Folder,
    command: &str,
    edit: impl FnOnce(&Snapshot) -> Result<Vec<Record>, CommandError>,
) -> Result<(), CommandError> {
    let store = folder.store()?;
    let holder = System::holder(command);
    runtime::wait_for(async {
        // Taking a lock would make the folder, and a session would make a state. A folder without a state
        // must stay as it is.
        if store.load().await?.snapshot.is_none() {
            return Err(nothing_applied(&folder.plumb()));
        }
        let mut session = Session::open(&*store, &holder, Duration::ZERO, &System, None).await?;
        for record in edit(session.snapshot())? {
            session.record(record)?;
        }
        Ok(session.close().await?)
    })
}
