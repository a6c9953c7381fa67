//! The port: a store, and a store that this process has locked.

use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;

use crate::error::StoreError;
use crate::holder::Holder;
use crate::mark::{Mark, Purpose};

/// A location that holds the state of one spec.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads snapshot and journal as of one moment, and the holder of the lock. Takes no lock.
    async fn load(&self) -> Result<Loaded, StoreError>;

    /// Takes the lock, and waits at most `wait` for another holder to release it. Refuses a location whose
    /// [`Mark`] forbids the purpose.
    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError>;

    /// Takes the lock for a run; refuses every marked location.
    async fn lock(
        &self,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        self.lock_for(Purpose::Run, holder, wait).await
    }

    /// Replaces whatever is stored, readable or not, by `snapshot`, under a serial higher than any seen here,
    /// with an empty journal and without a mark. Keeps a copy of the replaced data if the backend can.
    ///
    /// This is the way out of [`StoreError::Suspicious`] and [`StoreError::Missing`], for a person who
    /// decided it; no other code may call it. It takes the lock, without waiting.
    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError>;

    /// Returns the holder of the lock; none if there is none. A backend whose locks can be taken away also
    /// returns the holder for a state that is lost, damaged or sealed with another key: a stuck run may have
    /// left it so.
    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        Ok(self.load().await?.holder)
    }

    /// Takes the lock away from `run`, alive or not: none of its further writes has any effect. Returns false
    /// if that run does not hold the lock.
    ///
    /// Only a person may decide that: a working run ends with an error. A backend whose locks end with their
    /// process refuses, and changes nothing.
    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        Err(StoreError::refused(format!(
            "the lock of run {run} cannot be taken away; it is released when its process ends"
        )))
    }

    /// Lists the serials of the older snapshots that are kept, in order.
    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns an older snapshot; none if it is not kept.
    async fn past(&self, _serial: u64) -> Result<Option<Snapshot>, StoreError> {
        Ok(None)
    }

    /// Returns true if there is a state that was written without a key.
    async fn is_plain(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns a description of the location, without secrets.
    fn place(&self) -> String;
}

/// A store that this process has locked. Dropping it releases the lock.
#[async_trait]
pub trait LockedStore: Send {
    /// Returns the content at the time when the lock was taken, without a torn end of the journal.
    fn loaded(&self) -> &Loaded;

    /// Makes the state of a first run durable, before anything else is written: its lineage, its key and
    /// serial 0. From then on a missing state is a lost state, and never means a first run.
    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError>;

    /// Appends records and makes them durable, all or none, before it returns. After an error nothing more
    /// can be appended, and no snapshot can be saved.
    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError>;

    /// Replaces the snapshot, atomically and durably, if it still has the version `expected`; then starts a
    /// new journal. The snapshot contains all appended records, and its serial is higher than the one that it
    /// replaces. After an error nothing more can be written: only the next load shows if the snapshot was
    /// replaced.
    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError>;

    /// Sets or removes the mark of the location, durably. Other writes of this holder do not change the mark.
    async fn set_mark(&mut self, _mark: Option<&Mark>) -> Result<(), StoreError> {
        Err(StoreError::refused("this store cannot take part in a migration"))
    }

    /// Returns the size of the journal in bytes, from which callers decide when to save a snapshot.
    fn journal_bytes(&self) -> u64;

    /// Releases the lock; returns an error if that failed.
    async fn release(self: Box<Self>) -> Result<(), StoreError>;
}

/// The version of a stored snapshot. It can only be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

impl Version {
    /// Returns the version of a store in which nothing was saved yet.
    pub fn none() -> Self {
        Self(String::new())
    }
}

/// The content of a store.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The snapshot; none if nothing was ever saved here (a first run).
    pub snapshot: Option<Snapshot>,
    /// The version of the snapshot.
    pub version: Version,
    /// The records since, in order.
    pub records: Vec<Record>,
    /// The run that holds the lock right now; none if none does.
    pub holder: Option<Holder>,
    /// The mark of the location; none if it has none. A load without a lock returns only [`Mark::Arriving`].
    pub mark: Option<Mark>,
}

impl Loaded {
    /// Returns the content of a store in which nothing was ever saved.
    pub fn nothing() -> Self {
        Self {
            snapshot: None,
            version: Version::none(),
            records: Vec::new(),
            holder: None,
            mark: None,
        }
    }

    /// Adds the lock and the mark that a load without a lock sees. Refuses a location to which a state is on
    /// its way and at which none has arrived, because that is no first run.
    pub(crate) fn seen_with(
        self,
        holder: Option<Holder>,
        mark: Option<Mark>,
        place: &str,
    ) -> Result<Self, StoreError> {
        match mark {
            Some(mark) if self.snapshot.is_none() => Err(mark.refusal(place)),
            mark => Ok(Self { holder, mark, ..self }),
        }
    }
}
