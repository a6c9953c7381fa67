//! `migrate`: a state moves from one store to another, with no moment at which it is lost.
//!
//! Both are locked. The state is copied, read back and compared, and only then is the old store
//! marked as left; nothing of it is removed. Cut short anywhere, it goes on when it is done again.

use std::time::Duration;

use engine::journal::IllegalRecord;
use engine::state::Snapshot;
use state::{Held, Holder, Store, StoreError};

use crate::session::fold_if_any;

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// So many addresses were moved.
    Moved(usize),
    /// They were moved before.
    Before,
}

/// Why a state was not moved. It is where it was, and stays the one that counts.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A store failed, is locked, or holds what it should not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A journal contradicts itself.
    #[error(transparent)]
    Journal(#[from] IllegalRecord),
    /// There is nothing to move.
    #[error("there is no state in {0}")]
    Nothing(String),
    /// The new store has another version of the state.
    #[error("there is another version of this state in {place}: serial {serial}")]
    AnotherVersion {
        /// Where.
        place: String,
        /// Which.
        serial: u64,
    },
    /// The new store has another state.
    #[error("there is another state in {place}: lineage {lineage}")]
    AnotherState {
        /// Where.
        place: String,
        /// Which.
        lineage: String,
    },
    /// The new store does not keep what it is given.
    #[error("what was written to {0} is not what is read from it")]
    Changed(String),
}

/// Moves the state of `old` to `new`.
pub async fn migrate(
    old: &dyn Store,
    new: &dyn Store,
    holder: &Holder,
) -> Result<Migrated, MigrateError> {
    if was_moved(old, new).await? {
        return Ok(Migrated::Before);
    }
    let mut source = old.lock(holder, Duration::ZERO).await?;
    let Some(snapshot) = fold_if_any(source.loaded())? else {
        source.release().await?;
        return Err(MigrateError::Nothing(old.place()));
    };
    let target = copy(&snapshot, new, holder).await?;
    source.retire(&new.place()).await?;
    target.release().await?;
    source.release().await?;
    Ok(Migrated::Moved(snapshot.entries.len()))
}

/// Whether the old place is marked as left for the new one, which has a state.
async fn was_moved(old: &dyn Store, new: &dyn Store) -> Result<bool, StoreError> {
    match old.load().await {
        Err(StoreError::Moved { to, .. }) if to == new.place() => {
            Ok(new.load().await?.snapshot.is_some())
        }
        _ => Ok(false),
    }
}

/// Writes a state where none is, and reads it back. It stays locked there.
async fn copy(
    snapshot: &Snapshot,
    new: &dyn Store,
    holder: &Holder,
) -> Result<Box<dyn Held>, MigrateError> {
    let mut target = new.lock(holder, Duration::ZERO).await?;
    let copied = match fold_if_any(target.loaded())? {
        None => {
            target.initialise(snapshot).await?;
            snapshot.clone()
        }
        // An earlier attempt was cut short behind this.
        Some(there) if there == *snapshot => there,
        // And somebody has gone on there since, from this very state.
        Some(there) if is_since(new, &there, snapshot).await? => there,
        Some(there) => return Err(taken(there, snapshot, new.place())),
    };
    match fold_if_any(&new.load().await?)? {
        Some(back) if back == copied => Ok(target),
        _ => Err(MigrateError::Changed(new.place())),
    }
}

/// Whether a state of the new place was made from the one of the old place. Where that went on as
/// well, it was not, and neither may be given up for the other.
async fn is_since(
    new: &dyn Store,
    there: &Snapshot,
    snapshot: &Snapshot,
) -> Result<bool, StoreError> {
    if there.lineage != snapshot.lineage || there.serial <= snapshot.serial {
        return Ok(false);
    }
    Ok(new.past(snapshot.serial).await?.as_ref() == Some(snapshot))
}

fn taken(there: Snapshot, snapshot: &Snapshot, place: String) -> MigrateError {
    if there.lineage == snapshot.lineage {
        MigrateError::AnotherVersion { place, serial: there.serial }
    } else {
        MigrateError::AnotherState { place, lineage: there.lineage }
    }
}
