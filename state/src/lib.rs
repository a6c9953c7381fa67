//! Where state lives: the store port, the persisted formats, and the backends, each a file.
//!
//! A store holds one snapshot and the journal since. Writing is compare-and-swap by type: whoever
//! saves says which version they replace. The log is fenced, not only the lock: a holder that lost
//! its place can append nothing, and by the rule "journal before world" starts no call.
//!
//! Stores do not fold: they hand out the snapshot and the records since, and know nothing of what
//! the records mean.

pub mod cipher;
pub mod conformance;
pub mod disk;
pub mod file;
pub mod format;
pub mod frame;
mod json;
pub mod mark;
pub mod memory;
#[cfg(feature = "object-store")]
pub mod object;
pub mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
mod standing;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;

use crate::mark::Mark;

/// The highest serial, number of a call, of a frame or of a run that is believed. A run counts up
/// from what it reads, so a number near the end of what its type (in a database: 63 bits) can hold
/// would run over. No state gets there by itself.
pub const NUMBER_MAX: u64 = i64::MAX as u64 / 2;

/// A place where the state of one spec lives.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads without a lock: snapshot and journal of one moment (version, journal, version again),
    /// and who holds the lock, if somebody does.
    async fn load(&self) -> Result<Loaded, StoreError>;

    /// Takes the lock, waiting at most `wait` for another holder to let go. A place that bears a
    /// [`Mark`] is refused.
    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError>;

    /// The same for who moves a state, whatever the mark: it is in [`Loaded::mark`] then, and to be
    /// heeded by the caller. Nothing else may call it.
    async fn lock_to_move(
        &self,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn Held>, StoreError> {
        self.lock(holder, wait).await
    }

    /// Puts `snapshot` in place of whatever is there, readable or not, under a serial higher than
    /// any seen here, with an empty journal and without a mark. What was there is kept aside where
    /// that is possible.
    ///
    /// This is the way out of [`StoreError::Suspicious`] and its like, for a person who decided it; nothing
    /// else may call it. It takes the lock, without waiting.
    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError>;

    /// Who holds the lock, if somebody does. Where a holder can be driven out, this is told also of a place whose
    /// state is away, damaged, or sealed with another key: such a place may be left so by whoever stands still.
    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        Ok(self.load().await?.holder)
    }

    /// Drives out `run` if it holds the lock, alive or not: nothing that it still writes has any
    /// effect, and the lock is free. False where it does not hold the lock (any more).
    ///
    /// Only a person may decide that: a run that is at work ends with an error. Where a lock cannot
    /// be taken from a process that stands still, this is refused, and nothing is changed.
    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        Err(StoreError::refused(format!("the lock of run {run} ends with its process only")))
    }

    /// The serials of the older snapshots that are kept, in order.
    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        Ok(Vec::new())
    }

    /// An older snapshot, if it is kept.
    async fn past(&self, _serial: u64) -> Result<Option<Snapshot>, StoreError> {
        Ok(None)
    }

    /// Whether there is a state that was written without a key.
    async fn is_plain(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Where it is, for people, without secrets.
    fn place(&self) -> String;
}

/// A store whose lock this process holds. Dropping it releases the lock.
#[async_trait]
pub trait Held: Send {
    /// What the store held when the lock was taken. Torn ends of the journal have been cut off.
    fn loaded(&self) -> &Loaded;

    /// Makes the state of a first run durable, before anything else is written: its lineage, its
    /// key and serial 0. From then on a missing state is a lost state, never a first run.
    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError>;

    /// Appends records and makes them durable, all or none, before it returns. An error poisons
    /// the journal: nothing more can be appended, and no snapshot saved.
    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError>;

    /// Replaces the snapshot, atomically and durably, if it is still at `expected`; then starts a
    /// new journal. The snapshot contains everything that was appended, and its serial is higher
    /// than the one it replaces. An error poisons: whether the snapshot was replaced is then for
    /// the next load to say.
    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError>;

    /// Marks the place, or takes its mark away, durably: from then on whoever reads or locks it is
    /// told what the mark says. Puts nothing away, and the mark stays whatever this holder writes.
    async fn set_mark(&mut self, _mark: Option<&Mark>) -> Result<(), StoreError> {
        Err(StoreError::refused("a state cannot be moved from here or to here"))
    }

    /// How many bytes the journal has, to judge when a snapshot is due.
    fn journal_bytes(&self) -> u64;

    /// Releases the lock and says whether that worked.
    async fn release(self: Box<Self>) -> Result<(), StoreError>;
}

/// The version of a stored snapshot, opaque but for equality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

impl Version {
    /// The version of a store in which nothing was saved yet.
    pub fn none() -> Self {
        Self(String::new())
    }
}

/// What a store holds.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The snapshot; none when nothing was ever saved here (a first run).
    pub snapshot: Option<Snapshot>,
    /// Its version.
    pub version: Version,
    /// The records since, in order.
    pub records: Vec<Record>,
    /// Who holds the lock right now.
    pub holder: Option<Holder>,
    /// What the place is marked with: who only reads sees nothing but [`Mark::Arriving`].
    pub mark: Option<Mark>,
}

impl Loaded {
    /// What a store holds in which nothing was ever saved.
    pub fn nothing() -> Self {
        Self {
            snapshot: None,
            version: Version::none(),
            records: Vec::new(),
            holder: None,
            mark: None,
        }
    }
}

/// Who holds, or wants, a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The run's random name.
    pub run: String,
    /// The command, such as `apply`.
    pub command: String,
    /// The user's name, or empty.
    pub user: String,
    /// The machine's name, or empty.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// A store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds the lock. What the store does not know of them is empty.
    #[error("another run holds the lock")]
    Locked(Box<Holder>),
    /// This run lost its place: another one took over, or the snapshot is at another version.
    #[error("this run lost its place: {0}")]
    Fenced(String),
    /// State or journal cannot be read, or are not what they should be. Nothing was changed.
    #[error("{what}")]
    Suspicious {
        /// What is wrong, naming the file.
        what: String,
        /// What to do.
        help: String,
    },
    /// There must be a state here, and there is none. Nothing was changed.
    #[error("{what}")]
    Missing {
        /// What says that there was one.
        what: String,
        /// What to do.
        help: String,
    },
    /// The state was moved away from here, on purpose. Nothing was changed.
    #[error("the state was moved from {from} to {to}")]
    Moved {
        /// The place that was left.
        from: String,
        /// The place where it is now, as [`Store::place`] says it.
        to: String,
    },
    /// The state is on its way here, and is not yet to be used here. Nothing was changed.
    #[error("the state is on its way from {from} to {to}")]
    Arriving {
        /// The place that it comes from, as [`Store::place`] says it.
        from: String,
        /// This place.
        to: String,
    },
    /// The store cannot keep a state safely, or cannot be used as it is set up. Nothing was changed.
    #[error("{what}")]
    Unfit {
        /// Why.
        what: String,
        /// What to do.
        help: String,
    },
    /// Reading or writing failed.
    #[error("{what}")]
    Failed {
        /// What failed, naming the file.
        what: String,
        /// Why.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    fn failed(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { what: what.into(), source: Some(source.into()) }
    }

    fn refused(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    fn suspicious(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Suspicious { what: what.into(), help: help.into() }
    }
}
