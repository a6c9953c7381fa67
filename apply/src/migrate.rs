//! `migrate`: a state moves from one store to another, with no moment at which it is lost.
//!
//! Both are locked. The new place is marked as one where the state arrives, the state is copied there,
//! read back and compared; then the old place is marked as left, and then the other mark is taken
//! away. So the old place can be used until it is left, the new one from the moment that its mark is
//! gone, and never both: who works at the old place meanwhile makes the copy an old one, which the
//! next attempt replaces. Nothing is removed, and cut short anywhere, it goes on when it is done again.
//!
//! Both marks bear the run that wrote them. A move that is cut short after the old place was left is
//! finished only where the other mark is of the same run: names do not prove it, as two places may have
//! one name, and what an earlier attempt brought to the wrong one must not be put in use there.
//!
//! The old place needs no mark of its own before that: its lock is held, and the one write that leaves
//! it fails where the lock was lost, so nobody has gone on there from what was copied.

use std::time::Duration;

use engine::journal::IllegalRecord;
use engine::state::Snapshot;
use state::mark::{Mark, Purpose};
use state::{Holder, LockedStore, Store, StoreError};

use crate::session::fold_if_any;

/// The end of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// So many addresses were moved.
    Moved(usize),
    /// They were moved before.
    Before,
}

/// A reason not to move a state. It is where it was, and stays the one that counts.
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
    /// The old store was left for a place of that name, which is not the new store.
    #[error("{to} is not the place of that name to which the state was moved from {from}")]
    AnotherPlace {
        /// The place that was left.
        from: String,
        /// The name.
        to: String,
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

/// The mark of the old place, if an earlier attempt has come so far that it is left for the new one. A
/// place with another mark has nothing to move.
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

/// The run of the move that left the old place, if it is the one that brought the state to the new one.
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

/// Folds the journal in for good, so that serials tell versions of the state apart: that of a copy
/// is never the serial of another version, wherever a move is cut short and the old place goes on.
async fn settle(source: &mut dyn LockedStore, snapshot: Snapshot) -> Result<Snapshot, StoreError> {
    if source.loaded().records.is_empty() {
        return Ok(snapshot);
    }
    let version = source.loaded().version.clone();
    let settled = Snapshot { serial: snapshot.serial + 1, ..snapshot };
    source.save(&settled, &version).await?;
    Ok(settled)
}

/// Writes the state to the new place, which is marked as arriving before anything changes there, and
/// reads it back.
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

/// Returns true if what is at the new place is this state, from before: an earlier attempt brought it, after
/// which the old place went on, or it was left there when the state moved away, and now comes back.
fn is_older_copy(
    there: &Snapshot,
    snapshot: &Snapshot,
    arriving: &Mark,
    target: &dyn LockedStore,
) -> bool {
    let may_be = match (&target.loaded().mark, arriving) {
        // Another attempt is another run.
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
