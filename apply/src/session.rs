//! A session: the state under its lock, from opening to closing.
//!
//! This is the only place where records reach the store. Every record is folded before it is appended, so an
//! impossible record is refused before it is written.

use std::time::Duration;

use engine::digest::SealKey;
use engine::journal::{IllegalRecord, Record};
use engine::state::Snapshot;
use state::mark::Mark;
use state::{Holder, Loaded, LockedStore, Store, Version};

use crate::{ApplyError, Host};

/// The size in bytes up to which a journal is not folded into a snapshot during a run. A larger journal is
/// folded once it is twice as large as the largest one that this session folded before.
const JOURNAL_BYTES_SMALL: u64 = 4 * 1024 * 1024;

/// The state that a store holds, with the journal folded in.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The state.
    pub snapshot: Snapshot,
    /// True if no state was ever saved in the store.
    pub first_run: bool,
    /// The holder of the lock; `None` if nobody holds it.
    pub holder: Option<Holder>,
    /// The mark of a move in the store; `None` if it has none.
    pub mark: Option<Mark>,
    /// The moment at which the store was read.
    pub at: Moment,
}

/// A moment in the life of a store. If two moments are equal, nothing was written between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    version: Version,
    records: usize,
}

/// Folds the journal of a store into its state. A store without a state gets a new state, with a random
/// lineage and key.
pub fn fold(loaded: Loaded, host: &dyn Host) -> Result<Folded, ApplyError> {
    let Loaded { snapshot, version, records, holder, mark } = loaded;
    let at = Moment { version, records: records.len() };
    let first_run = snapshot.is_none();
    let new = || Snapshot::new(lineage(host), SealKey::from_random(host.random()));
    let snapshot = folded(snapshot.unwrap_or_else(new), &records)?;
    Ok(Folded { snapshot, first_run, holder, mark, at })
}

/// Folds the journal of a store into its state. Returns `None` if the store has no state.
pub fn fold_if_any(loaded: &Loaded) -> Result<Option<Snapshot>, IllegalRecord> {
    loaded.snapshot.clone().map(|snapshot| folded(snapshot, &loaded.records)).transpose()
}

fn folded(mut snapshot: Snapshot, records: &[Record]) -> Result<Snapshot, IllegalRecord> {
    for record in records {
        snapshot.fold(record)?;
    }
    Ok(snapshot)
}

/// A random lineage: 32 hexadecimal digits.
fn lineage(host: &dyn Host) -> String {
    host.random()[..16].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The state under its lock.
pub struct Session {
    held: Box<dyn LockedStore>,
    version: Version,
    snapshot: Snapshot,
    /// True if records were appended that the stored snapshot does not hold.
    dirty: bool,
    /// The records that are folded into the snapshot and not yet durable.
    outbox: Vec<Record>,
    /// The size of the largest journal that this session folded into a snapshot.
    folded_bytes_max: u64,
}

impl Session {
    /// Takes the lock and folds the journal. On a first run, makes the state; a saved plan passes the lineage
    /// and key of that state as `origin`.
    pub async fn open(
        store: &dyn Store,
        holder: &Holder,
        wait: Duration,
        host: &dyn Host,
        origin: Option<(String, SealKey)>,
    ) -> Result<Self, ApplyError> {
        let mut held = store.lock(holder, wait).await?;
        let loaded = held.loaded().clone();
        let mut version = loaded.version.clone();
        let dirty = !loaded.records.is_empty();
        let folded = fold(loaded, host)?;
        let mut snapshot = folded.snapshot;
        if folded.first_run {
            if let Some((lineage, key)) = origin {
                snapshot = Snapshot::new(lineage, key);
            }
            version = held.initialise(&snapshot).await?;
        }
        Ok(Self { held, version, snapshot, dirty, outbox: Vec::new(), folded_bytes_max: 0 })
    }

    /// Returns the state with all records so far.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Folds a record and queues it for the next [`Session::flush`].
    pub fn record(&mut self, record: Record) -> Result<(), ApplyError> {
        self.snapshot.fold(&record)?;
        self.outbox.push(record);
        Ok(())
    }

    /// Makes all recorded records durable, in order, before it returns.
    pub async fn flush(&mut self) -> Result<(), ApplyError> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        self.dirty = true;
        let records = std::mem::take(&mut self.outbox);
        self.held.append(&records).await?;
        if self.held.journal_bytes() > JOURNAL_BYTES_SMALL.max(2 * self.folded_bytes_max) {
            self.save().await?;
        }
        Ok(())
    }

    /// Writes a record that changes nothing. The write fails if this run has lost the lock.
    pub(crate) async fn confirm(&mut self) -> Result<(), ApplyError> {
        let outputs = self.snapshot.outputs.clone();
        self.record(Record::Outputs { outputs })?;
        self.flush().await
    }

    /// Replaces the whole state, for commands that edit it.
    pub async fn replace(&mut self, snapshot: Snapshot) -> Result<(), ApplyError> {
        self.snapshot = snapshot;
        self.dirty = true;
        self.save().await
    }

    async fn save(&mut self) -> Result<(), ApplyError> {
        self.snapshot.serial += 1;
        let before = self.held.journal_bytes();
        self.version = self.held.save(&self.snapshot, &self.version).await?;
        self.dirty = false;
        // A snapshot is about as large as the journal that it replaced, or larger; what matters is
        // that writing snapshots stays rarer the larger they are.
        self.folded_bytes_max = self.folded_bytes_max.max(before);
        Ok(())
    }

    /// Writes the snapshot, if there is something new, and releases the lock.
    pub async fn close(mut self) -> Result<(), ApplyError> {
        self.flush().await?;
        if self.dirty {
            self.save().await?;
        }
        self.held.release().await?;
        Ok(())
    }
}
