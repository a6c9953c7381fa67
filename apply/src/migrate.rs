//! `migrate`: a state moves from one store to another, with no moment at which it is lost.
//!
//! Both stores are locked. The new place is marked as arriving, the state is copied there, read back and
//! compared. Then the old place is marked as left, and then the mark of the new place is removed. So the old
//! place can be used until it is left, the new place as soon as its mark is gone, and never both. A run at
//! the old place in between makes the copy outdated, and the next attempt replaces the copy. The old place
//! keeps its content. If the move is cut short anywhere, the same command continues it.
//!
//! Both marks name the run that wrote them. A move that was cut short after the old place was left is
//! finished only if both marks name the same run. The names of the places do not prove enough: two places may
//! have one name, and a copy that an earlier attempt brought to the wrong one must not be put in use.
//!
//! The old place needs no mark before it is left. Its lock is held, and the write of the mark fails if the
//! lock was lost, so no other run has continued there from the state that was copied.

use std::time::Duration;

use engine::journal::IllegalRecord;
use engine::state::Snapshot;
use state::mark::{Mark, Purpose};
use state::{Holder, LockedStore, Store, StoreError};

use crate::session::fold_if_any;

/// The result of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// The state was moved; it has this many addresses.
    Moved(usize),
    /// The state was moved by an earlier attempt.
    Before,
}

/// The reason why a state was not moved. It stays in the old place, which stays the valid one.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A store failed, is locked, or holds something invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A journal contradicts itself.
    #[error(transparent)]
    Journal(#[from] IllegalRecord),
    /// The old store has no state.
    #[error("there is no state in {0}")]
    Nothing(String),
    /// The new store has another version of this state.
    #[error("there is another version of this state in {place}: serial {serial}")]
    AnotherVersion {
        /// The place.
        place: String,
        /// The serial of that version.
        serial: u64,
    },
    /// The new store has another state.
    #[error("there is another state in {place}: lineage {lineage}")]
    AnotherState {
        /// The place.
        place: String,
        /// The lineage of that state.
        lineage: String,
    },
    /// The old store was left for a place of that name, but the new store is not that place.
    #[error("{to} is not the place of that name to which the state was moved from {from}")]
    AnotherPlace {
        /// The place that was left.
        from: String,
        /// The name of the place to which the state was moved.
        to: String,
    },
    /// The new store gave back something else than was written to it.
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
    let mut source = old.lock_for(Purpose::Move, holder, Duration::ZERO).await?;
    let left = left_for(source.loaded().mark.clone(), old, new)?;
    let Some(snapshot) = fold_if_any(source.loaded())? else {
        source.release().await?;
        return Err(MigrateError::Nothing(old.place()));
    };
    let mut target = new.lock_for(Purpose::Move, holder, Duration::ZERO).await?;
    let run = match &left {
        Some(left) => goes_on(left, target.loaded().mark.as_ref(), old, new)?,
        None => holder.run.clone(),
    };
    let snapshot = settle(&mut *source, snapshot).await?;
    let arriving = Mark::Arriving { from: old.place(), run: run.clone() };
    copy(&snapshot, &arriving, new, &mut *target).await?;
    source.set_mark(Some(&Mark::Left { to: new.place(), run })).await?;
    target.set_mark(None).await?;
    target.release().await?;
    source.release().await?;
    Ok(Migrated::Moved(snapshot.entries.len()))
}

/// Returns true if the old place is marked as left for the new one, which has a state and can be used.
async fn was_moved(old: &dyn Store, new: &dyn Store) -> Result<bool, StoreError> {
    match old.load().await {
        Err(StoreError::Moved { to, .. }) if to == new.place() => match new.load().await {
            Ok(loaded) if loaded.mark.is_some() => Ok(false),
            Ok(loaded) if loaded.snapshot.is_some() => Ok(true),
            Ok(_) => Err(left(old, new)),
            Err(StoreError::Arriving { .. }) => Ok(false),
            Err(error) => Err(error),
        },
        Err(error @ StoreError::Moved { .. }) => Err(error),
        _ => Ok(false),
    }
}

fn left(old: &dyn Store, new: &dyn Store) -> StoreError {
    StoreError::Moved { from: old.place(), to: new.place() }
}

/// Returns the mark of the old place, if an earlier attempt left that place for the new one. Fails if the old
/// place has another mark.
fn left_for(
    mark: Option<Mark>,
    old: &dyn Store,
    new: &dyn Store,
) -> Result<Option<Mark>, StoreError> {
    match mark {
        Some(Mark::Left { ref to, .. }) if *to == new.place() => Ok(mark),
        Some(mark) => Err(mark.refusal(&old.place())),
        None => Ok(None),
    }
}

/// Returns the run of the move that left the old place. Fails unless the same run brought the state to the
/// new place.
fn goes_on(
    left_for: &Mark,
    there: Option<&Mark>,
    old: &dyn Store,
    new: &dyn Store,
) -> Result<String, MigrateError> {
    match there {
        Some(Mark::Arriving { run, .. }) if run == left_for.run() => Ok(run.clone()),
        Some(Mark::Arriving { .. }) => {
            Err(MigrateError::AnotherPlace { from: old.place(), to: new.place() })
        }
        Some(Mark::Left { .. }) | None => Err(left(old, new).into()),
    }
}

/// Saves the state with its journal folded in, so that serials identify versions of the state. Even if the
/// move is cut short and runs continue at the old place, no other version gets the serial of the copy.
async fn settle(source: &mut dyn LockedStore, snapshot: Snapshot) -> Result<Snapshot, StoreError> {
    if source.loaded().records.is_empty() {
        return Ok(snapshot);
    }
    let version = source.loaded().version.clone();
    let settled = Snapshot { serial: snapshot.serial + 1, ..snapshot };
    source.save(&settled, &version).await?;
    Ok(settled)
}

/// Marks the new place as arriving, writes the state there and reads it back.
async fn copy(
    snapshot: &Snapshot,
    arriving: &Mark,
    new: &dyn Store,
    target: &mut dyn LockedStore,
) -> Result<(), MigrateError> {
    let there = fold_if_any(target.loaded())?;
    if let Some(there) = there.as_ref().filter(|there| *there != snapshot)
        && !is_older_copy(there, snapshot, arriving, target)
    {
        return Err(taken(there, snapshot, new.place()));
    }
    if target.loaded().mark.as_ref() != Some(arriving) {
        target.set_mark(Some(arriving)).await?;
    }
    match there {
        None => drop(target.initialise(snapshot).await?),
        Some(there) if there == *snapshot => {}
        Some(_) => {
            let version = target.loaded().version.clone();
            target.save(snapshot, &version).await?;
        }
    }
    match fold_if_any(&new.load().await?)? {
        Some(back) if back == *snapshot => Ok(()),
        _ => Err(MigrateError::Changed(new.place())),
    }
}

/// Returns true if the new place has an older version of this state: an earlier attempt brought it before the
/// old place was used again, or the state was once moved away from there and now comes back.
fn is_older_copy(
    there: &Snapshot,
    snapshot: &Snapshot,
    arriving: &Mark,
    target: &dyn LockedStore,
) -> bool {
    let may_be = match (&target.loaded().mark, arriving) {
        // Each attempt is another run, so the runs of the marks are not compared.
        (Some(Mark::Arriving { from, .. }), Mark::Arriving { from: place, .. }) => from == place,
        (mark, _) => matches!(mark, Some(Mark::Left { .. })),
    };
    may_be && there.lineage == snapshot.lineage && there.serial < snapshot.serial
}

fn taken(there: &Snapshot, snapshot: &Snapshot, place: String) -> MigrateError {
    if there.lineage == snapshot.lineage {
        MigrateError::AnotherVersion { place, serial: there.serial }
    } else {
        MigrateError::AnotherState { place, lineage: there.lineage.clone() }
    }
}
