//! A locked store on top of a fenced log, with the order of checks and writes that all backends share.
//!
//! A backend implements [`FencedLog`]: the writes of one frame, one snapshot and one mark, which take effect
//! only while this holder has the lock. The rest is here: the check that a write may follow the stored data,
//! encoding and sealing, and the rule that nothing is written after a failure.

use std::borrow::Cow;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use tracing::debug;

use crate::blocking::blocking;
use crate::cipher::{Cipher, STATE};
use crate::error::StoreError;
use crate::fence::Fence;
use crate::format::{self, Header};
use crate::frame::{End, Frame, Journal, SnapshotRef};
use crate::mark::Mark;
use crate::store::{Loaded, LockedStore, Version};

/// The target of the log lines about the lock, for filters of the log.
pub(crate) const LOCK_LOG: &str = "plumb::lock";

/// The writes of one backend, by the holder of its lock. Each write takes effect only if no other holder has
/// taken over; otherwise it fails with [`StoreError::Fenced`].
#[async_trait]
pub(crate) trait FencedLog: Send + Sync {
    /// Returns the cipher for all stored data.
    fn cipher(&self) -> &Cipher;

    /// Returns the epoch of this holder, which is higher than that of every earlier one.
    fn epoch(&self) -> u64;

    /// Returns an error if it is known without a write that the lock is lost.
    fn check_lock(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Appends one frame, durably.
    async fn append(&mut self, frame: &Frame) -> Result<(), StoreError>;

    /// Replaces the snapshot, durably, and the journal by one that begins with the snapshot's base.
    async fn replace(
        &mut self,
        new: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<(), StoreError>;

    /// Sets or removes the mark, durably.
    async fn mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError>;

    /// Returns the number of bytes that a frame counts for in [`LockedStore::journal_bytes`].
    fn frame_bytes(&self, frame: &Frame) -> u64 {
        frame.bytes.len() as u64
    }

    /// Releases the lock.
    async fn release(self) -> Result<(), StoreError>;
}

/// A snapshot in its stored form, and the first frame of the journal that follows it.
pub(crate) struct EncodedSnapshot {
    pub(crate) header: Header,
    pub(crate) bytes: Vec<u8>,
    pub(crate) base: Frame,
}

/// The content that a snapshot replaces. A backend fails if it finds another content.
#[derive(Debug)]
pub(crate) enum Replaced {
    /// An empty store.
    Nothing,
    /// This snapshot.
    Snapshot(SnapshotRef),
    /// Any content, including the mark: a person restores a state.
    Anything,
}

/// The position at the end of the stored data: the current snapshot and the journal after it.
pub(crate) struct Position {
    pub(crate) header: Header,
    pub(crate) end: End,
    pub(crate) journal_bytes: u64,
}

/// Joins the parts that were read from a store; returns none if the journal does not follow the snapshot.
pub(crate) fn join(
    header: Header,
    snapshot: Snapshot,
    journal: Journal,
) -> Option<(Loaded, Position)> {
    if !header.is_followed_by(&journal) {
        return None;
    }
    let (version, snapshot) = (header.version(), Some(snapshot));
    let loaded = Loaded { snapshot, version, records: journal.records, ..Loaded::nothing() };
    let journal_bytes = journal.whole as u64;
    Some((loaded, Position { header, end: journal.end, journal_bytes }))
}

/// The locked store of all backends.
pub(crate) struct FencedStore<L> {
    log: L,
    loaded: Loaded,
    /// The end of the stored data; none until a first run has made its state.
    position: Option<Position>,
    fence: Fence,
}

impl<L: FencedLog> FencedStore<L> {
    /// Returns a store that writes after the loaded data.
    pub(crate) fn new(log: L, loaded: Loaded, position: Option<Position>) -> Self {
        debug!(target: LOCK_LOG, epoch = log.epoch(), "lock taken");
        Self { log, loaded, position, fence: Fence::default() }
    }

    fn check(&mut self) -> Result<(), StoreError> {
        self.fence.check()?;
        let checked = self.log.check_lock();
        self.fence.pass(checked)
    }

    async fn put(
        &mut self,
        snapshot: &Snapshot,
        checkpoint: End,
        replaced: Replaced,
    ) -> Result<Version, StoreError> {
        let new = blocking(|| EncodedSnapshot::new(&self.log, snapshot, checkpoint))?;
        let result = self.log.replace(&new, &replaced).await;
        self.fence.pass(result)?;
        let journal_bytes = self.log.frame_bytes(&new.base);
        let EncodedSnapshot { header, base, .. } = new;
        let version = header.version();
        self.position = Some(Position { header, end: base.end, journal_bytes });
        Ok(version)
    }
}

/// Replaces whatever is stored by a snapshot, after a journal that ends at `checkpoint`, and releases the
/// lock. See [`crate::Store::restore`].
pub(crate) async fn restore<L: FencedLog>(
    log: L,
    snapshot: &Snapshot,
    checkpoint: End,
) -> Result<Version, StoreError> {
    let mut store = FencedStore::new(log, Loaded::nothing(), None);
    let version = store.put(snapshot, checkpoint, Replaced::Anything).await?;
    Box::new(store).release().await?;
    Ok(version)
}

impl EncodedSnapshot {
    /// Encodes and seals a snapshot that contains the journal up to `checkpoint`.
    pub(crate) fn new(
        log: &impl FencedLog,
        snapshot: &Snapshot,
        checkpoint: End,
    ) -> Result<Self, StoreError> {
        let (cipher, epoch) = (log.cipher(), log.epoch());
        let failed = "cannot write the state";
        let (header, plain) = format::encode(snapshot, epoch, checkpoint)
            .map_err(|error| StoreError::failed(failed, error))?;
        let sealed = cipher.seal(STATE, &plain);
        let sealed = match sealed.map_err(|error| StoreError::failed(failed, error))? {
            Cow::Owned(sealed) => sealed,
            Cow::Borrowed(_) => plain,
        };
        let base = seal_base(log, &header.snapshot_ref(), checkpoint)?;
        Ok(Self { header, bytes: sealed, base })
    }
}

/// Seals the first frame of a journal that follows `base` and the frame before it.
pub(crate) fn seal_base(
    log: &impl FencedLog,
    base: &SnapshotRef,
    after: End,
) -> Result<Frame, StoreError> {
    Frame::base(base, after, log.epoch(), log.cipher()).map_err(unwritable)
}

/// Seals records as the frame after `after`.
pub(crate) fn seal_records(
    log: &impl FencedLog,
    records: &[Record],
    after: End,
) -> Result<Frame, StoreError> {
    Frame::records(records, after, log.epoch(), log.cipher()).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::failed("cannot write the journal", error)
}

/// Returns the error of a holder whose lock another run has taken.
pub(crate) fn lock_lost() -> StoreError {
    StoreError::Fenced("another run took the lock of the state".to_owned())
}

/// Refuses a snapshot that must not follow the stored one.
fn check_successor(
    old: &Header,
    expected: &Version,
    snapshot: &Snapshot,
) -> Result<(), StoreError> {
    let serial = old.serial;
    if old.version() != *expected {
        return Err(StoreError::Fenced(format!(
            "the state has serial {serial}, and another version of it was to be replaced"
        )));
    }
    if old.lineage != snapshot.lineage {
        return Err(StoreError::suspicious(
            format!("a state of lineage {} was to replace {}", snapshot.lineage, old.lineage),
            "nothing was changed; `plumb state push --force` replaces a state by another one",
        ));
    }
    if snapshot.serial <= serial {
        let why = format!("serial {} was to replace serial {serial}", snapshot.serial);
        return Err(StoreError::Fenced(why));
    }
    Ok(())
}

#[async_trait]
impl<L: FencedLog> LockedStore for FencedStore<L> {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.check()?;
        if self.position.is_some() {
            return Err(StoreError::Fenced("there is a state already".to_owned()));
        }
        self.put(snapshot, End::default(), Replaced::Nothing).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.check()?;
        let Some(position) = &mut self.position else {
            return Err(StoreError::refused("a record was written before the first state"));
        };
        if records.is_empty() {
            return Ok(());
        }
        let frame = seal_records(&self.log, records, position.end)?;
        let result = self.log.append(&frame).await;
        self.fence.pass(result)?;
        position.journal_bytes += self.log.frame_bytes(&frame);
        position.end = frame.end;
        Ok(())
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.check()?;
        let Some(Position { header, end, .. }) = &self.position else {
            return Err(StoreError::refused("a state was saved before the first one"));
        };
        check_successor(header, expected, snapshot)?;
        let (replaced, end) = (Replaced::Snapshot(header.snapshot_ref()), *end);
        self.put(snapshot, end, replaced).await
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.check()?;
        let result = self.log.mark(mark).await;
        self.fence.pass(result)
    }

    fn journal_bytes(&self) -> u64 {
        self.position.as_ref().map_or(0, |position| position.journal_bytes)
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        let epoch = self.log.epoch();
        let released = self.log.release().await;
        debug!(target: LOCK_LOG, epoch, is_ok = released.is_ok(), "lock released");
        released
    }
}
