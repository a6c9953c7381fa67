//! `push`: puts a state in place of another by hand, under the lock.
//!
//! The stored state may be the only record of some objects: records of a killed run, calls whose outcome is
//! unknown, one-time names that are watched. Without `force`, a push that would lose any of these is refused.
//! With `force`, they are carried over where they fit, and the rest is named as lost. In both cases the
//! stored state is locked, read and then replaced by a save, so the work of a run in between is never lost.
//! A stored state that cannot be read, or is of another lineage, is replaced by [`Store::restore`] instead.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::address::Address;
use engine::journal::{CallId, IllegalRecord, Pending, Record, Started};
use engine::state::{Nonce, Snapshot, Watched, Which};
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};

use crate::session::fold_if_any;

/// The result of a push: the entries of the old state that were kept, and those that were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The entries of the old state that were added to the pushed state, described for people.
    pub carried: Vec<String>,
    /// The entries of the old state that no state has any more, described for people.
    pub lost: Vec<String>,
}

/// The reason why a state was not put in place. The stored state is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The store failed, is locked, or holds something invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored journal contradicts itself.
    #[error(transparent)]
    Journal(#[from] IllegalRecord),
    /// The push would lose entries of the stored state.
    #[error("{0}")]
    WouldLose(String),
}

/// Puts `new` in place of what a store holds.
pub async fn push(
    store: &dyn Store,
    holder: &Holder,
    new: &Snapshot,
    force: bool,
) -> Result<Pushed, PushError> {
    let held = match store.lock(holder, Duration::ZERO).await {
        Ok(held) => held,
        // The store is empty. Filling it is the purpose of a push.
        Err(StoreError::Missing { .. }) => return restore(store, holder, new).await,
        Err(
            StoreError::Suspicious { .. } | StoreError::Moved { .. } | StoreError::Arriving { .. },
        ) if force => return restore(store, holder, new).await,
        Err(error) => return Err(error.into()),
    };
    match there(held.loaded()) {
        Ok(Some(there)) if there.saved.lineage == new.lineage => {
            replace(held, &there, new, force).await
        }
        Ok(None) => first(held, new).await,
        Err(error) if !force => Err(error.into()),
        Ok(Some(there)) if !force => Err(PushError::WouldLose(format!(
            "the file is of lineage {}, and the state here of lineage {}",
            new.lineage, there.saved.lineage
        ))),
        found => {
            held.release().await?;
            let lost = found
                .ok()
                .flatten()
                .map_or_else(Vec::new, |there| there.now.objects().map(told).collect());
            Ok(Pushed { lost, ..restore(store, holder, new).await? })
        }
    }
}

/// The state that a store holds.
struct There {
    saved: Snapshot,
    version: Version,
    /// The saved state with the journal folded in.
    now: Snapshot,
    records: usize,
}

fn there(loaded: &Loaded) -> Result<Option<There>, IllegalRecord> {
    let Some(saved) = loaded.snapshot.clone() else { return Ok(None) };
    let now = fold_if_any(loaded)?.unwrap_or_else(|| saved.clone());
    Ok(Some(There { saved, version: loaded.version.clone(), now, records: loaded.records.len() }))
}

async fn restore(store: &dyn Store, holder: &Holder, new: &Snapshot) -> Result<Pushed, PushError> {
    store.restore(holder, new).await?;
    Ok(Pushed::default())
}

/// Saves a state to a store that has none. An empty state is made first, as a first run does.
async fn first(mut held: Box<dyn LockedStore>, new: &Snapshot) -> Result<Pushed, PushError> {
    let empty = Snapshot::new(new.lineage.clone(), new.seal_key.clone());
    let version = held.initialise(&empty).await?;
    held.save(&Snapshot { serial: new.serial + 1, ..new.clone() }, &version).await?;
    held.release().await?;
    Ok(Pushed::default())
}

/// Replaces the stored state by another version of it.
async fn replace(
    mut held: Box<dyn LockedStore>,
    there: &There,
    new: &Snapshot,
    force: bool,
) -> Result<Pushed, PushError> {
    if !force {
        fits(there, new)?;
    }
    let mut new = new.clone();
    let pushed = carry_over(&there.now, &mut new);
    let (mut version, mut serial) = (there.version.clone(), there.saved.serial);
    if there.records > 0 {
        // A backup has no journal. So the state with its journal folded in is saved once, and becomes the
        // backup when the new state replaces it.
        serial += 1;
        version = held.save(&Snapshot { serial, ..there.now.clone() }, &version).await?;
    }
    new.serial = serial.max(new.serial) + 1;
    held.save(&new, &version).await?;
    held.release().await?;
    Ok(pushed)
}

/// Checks that a state may replace another version of itself without `force`.
fn fits(there: &There, new: &Snapshot) -> Result<(), PushError> {
    let There { saved, now, records, .. } = there;
    let refuse = |why: String| Err(PushError::WouldLose(why));
    if new.serial < saved.serial {
        return refuse(format!(
            "the file has serial {}, and the state here serial {}: it is older",
            new.serial, saved.serial
        ));
    }
    if now != saved && new != now {
        return refuse(format!(
            "a run that did not end has left {records} records in the journal, and the file does not \
             know them"
        ));
    }
    if let Some((call, pending)) = unknown_calls(now, new).next() {
        let address = &pending.started.address;
        return refuse(format!(
            "the outcome of call {call} about {address} is not known, and the file does not mention it"
        ));
    }
    if new.serial == saved.serial
        && let Some(watched) = unknown_names(now, new).next()
    {
        return refuse(format!(
            "the one-time name {} of {} is still watched, and the file does not know it",
            watched.nonce, watched.address
        ));
    }
    Ok(())
}

fn unknown_calls<'a>(
    now: &'a Snapshot,
    new: &'a Snapshot,
) -> impl Iterator<Item = (CallId, &'a Pending)> {
    // A state with a later serial that has given this call's number has recorded how the call ended.
    let is_known = |call: &CallId| {
        new.pending.contains_key(call) || (new.serial > now.serial && call.0 < new.next_call)
    };
    now.pending.iter().filter(move |(call, _)| !is_known(call)).map(|(call, it)| (*call, it))
}

fn unknown_names<'a>(now: &'a Snapshot, new: &'a Snapshot) -> impl Iterator<Item = &'a Watched> {
    let is_known = |nonce: &Nonce| new.watched.iter().any(|watched| watched.nonce == *nonce);
    now.watched.iter().filter(move |watched| !is_known(&watched.nonce))
}

/// Adds to the new state the calls and one-time names that may still turn into objects. Returns what was
/// added and what could not be.
fn carry_over(now: &Snapshot, new: &mut Snapshot) -> Pushed {
    let before = new.clone();
    let mut pushed = Pushed::default();
    for watched in unknown_names(now, &before) {
        new.watched.push(watched.clone());
    }
    for (call, pending) in unknown_calls(now, &before) {
        let (address, started) = (&pending.started.address, &pending.started);
        if carry_call(new, pending) {
            pushed.carried.push(format!("call {call} about {address}, whose outcome is not known"));
        } else if let Some(nonce) = started.nonce.as_ref().filter(|_| !is_named(started)) {
            new.watched.push(Watched::of(started, nonce.clone(), started.at_ms, false));
            pushed.carried.push(format!("the one-time name of call {call} about {address}"));
        } else {
            pushed.lost.push(format!("call {call} about {address}, whose outcome is not known"));
        }
    }
    // A lineage never gives the number of a call twice.
    new.next_call = before.next_call.max(now.next_call);
    let known: BTreeSet<Which<'_>> = before.objects().map(|(_, which)| which).collect();
    let lost = now.objects().filter(|(_, which)| !known.contains(which));
    pushed.lost.extend(lost.map(told));
    pushed
}

/// Returns true if a create gives its object the name or id that the spec says: no object bears its one-time
/// name.
fn is_named(started: &Started) -> bool {
    started.name.is_some() || started.secret_name.is_some()
}

/// Adds a call as the journal would. Returns false if the call cannot be under way in this state.
fn carry_call(new: &mut Snapshot, pending: &Pending) -> bool {
    let call = pending.started.call;
    let next = std::mem::replace(&mut new.next_call, call.0);
    let done = new.fold(&Record::Started(Box::new(pending.started.clone()))).is_ok();
    if done && let Some(reason) = pending.doubt.clone() {
        // The call was added just now, so it can be in doubt.
        new.fold(&Record::Doubted { call, reason, accepted: pending.accepted }).ok();
    }
    new.next_call = next;
    done
}

fn told((address, which): (&Address, Which<'_>)) -> String {
    format!("{address} ({})", which.id)
}
