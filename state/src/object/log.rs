//! The writes of a run that holds the lock object: no other code writes the objects of a state.
//!
//! The next object of the journal decides everything: only one run can make it. A new holder first makes one
//! itself, so that no earlier holder can. An append makes one. A save writes its snapshot under its own name
//! and then makes the one that names the snapshot.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::lock::Lock;
use super::objects::Objects;
use super::read::{FRAME_BYTES_MIN, frame_name, serial_of, snapshot_name};
use crate::cipher::{self, Cipher};
use crate::error::StoreError;
use crate::fenced_log::{EncodedSnapshot, FencedLog, Position, Replaced, lock_lost, seal_records};
use crate::frame::{Frame, SnapshotRef};
use crate::mark::Mark;

/// The number of older snapshots that are kept.
const KEPT: usize = 20;
/// The days for which the first frame of an epoch is kept. It blocks a holder that was suspended since before
/// that epoch; no service accepts a request that was signed so long ago.
const EPOCH_START_DAYS: i64 = 30;
/// The time that a holder which is dropped without a release may take to release its lock.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The log of a state in a bucket or container.
pub(super) struct ObjectLog {
    objects: Objects,
    cipher: Cipher,
    lock: Lock,
    epoch: u64,
    /// The journal; none until a first run has made its state.
    journal: Option<JournalObjects>,
}

/// The objects of the journal.
struct JournalObjects {
    /// The number of the first frame.
    base: u64,
    /// The number of the last frame.
    last: u64,
    /// The numbers of the first frames of their epochs.
    epoch_starts: BTreeSet<u64>,
}

/// The reason that an object of the journal does not count.
enum Refused {
    /// There is another object with its number, so no run will ever read this one.
    TakenAlready,
    /// Another reason. The object may exist, and be read.
    Otherwise(StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Otherwise(error)
    }
}

impl From<Refused> for StoreError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TakenAlready => lock_lost(),
            Refused::Otherwise(error) => error,
        }
    }
}

impl ObjectLog {
    /// Returns the log of a state of which only the lock object is known.
    pub(super) async fn new(objects: Objects, cipher: Cipher, lock: Lock) -> Self {
        let epoch = lock.body().await.epoch;
        Self { objects, cipher, lock, epoch, journal: None }
    }

    /// Makes the epoch higher than one that was written.
    pub(super) fn rise_above(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch + 1);
    }

    /// Shuts out every earlier holder: makes the next object after the ones that were found. Returns false if
    /// another run was faster.
    pub(super) async fn seal(
        &mut self,
        position: &mut Position,
        epoch_starts: Vec<u64>,
        base: u64,
    ) -> Result<bool, StoreError> {
        let frame = seal_records(self, &[], position.end)?;
        let last = frame.end.lsn;
        if !self.objects.create(&frame_name(last), &frame.bytes).await? {
            return Ok(false);
        }
        let epoch_starts = epoch_starts.into_iter().chain([last]).collect();
        self.journal = Some(JournalObjects { base, last, epoch_starts });
        position.end = frame.end;
        position.journal_bytes += self.frame_bytes(&frame);
        self.publish(position.header.snapshot_ref()).await?;
        Ok(true)
    }

    /// Writes the current snapshot, and the place of its journal, into the lock object.
    async fn publish(&self, snapshot: SnapshotRef) -> Result<(), StoreError> {
        let Some(JournalObjects { base, last, .. }) = self.journal else { return Ok(()) };
        let epoch = self.epoch;
        self.lock
            .update(move |body| {
                body.epoch = body.epoch.max(epoch);
                body.base = base;
                body.lsn = last;
                body.seen = Some(snapshot);
            })
            .await
    }

    /// Makes the next object of the journal, unless another run has made it.
    async fn push(&self, frame: &Frame) -> Result<(), Refused> {
        if !self.objects.create(&frame_name(frame.end.lsn), &frame.bytes).await? {
            return Err(Refused::TakenAlready);
        }
        // Old objects of the journal are removed in the end, and with them the object that would block this
        // one. So a run that was suspended for long also checks the lock.
        Ok(self.lock.confirm().await?)
    }

    /// Removes the objects that a save has folded in, and the oldest of those that are kept. Objects that
    /// cannot be removed stay; they do not count.
    async fn clear_away(
        &self,
        before: Option<JournalObjects>,
        base: u64,
        now: &SnapshotRef,
        replaced: &Replaced,
    ) {
        let objects = &self.objects;
        let folded = before.iter().flat_map(|before| {
            (before.base..base).filter(|lsn| !before.epoch_starts.contains(lsn)).map(frame_name)
        });
        objects.remove(folded.collect()).await;
        objects.remove(self.old_epoch_starts(base).await).await;
        let last = if let Replaced::Snapshot(last) = replaced { Some(last) } else { None };
        objects.remove(self.old_snapshots(now, last).await).await;
    }

    /// Returns the frames before the journal that are old enough to be removed. Only the service's clock
    /// decides about their age.
    async fn old_epoch_starts(&self, base: u64) -> Vec<String> {
        let listed = self.objects.list("journal", None).await.unwrap_or_default();
        let Some(now) = listed.iter().map(|(_, meta)| meta.last_modified).max() else {
            return Vec::new();
        };
        listed
            .iter()
            .filter(|(name, meta)| {
                name.parse::<u64>().is_ok_and(|lsn| lsn < base)
                    && (now - meta.last_modified).num_days() > EPOCH_START_DAYS
            })
            .map(|(name, _)| format!("journal/{name}"))
            .collect()
    }

    /// Returns the snapshots that are too many, those that never counted, and, with a key, those that were
    /// written without one.
    async fn old_snapshots(&self, now: &SnapshotRef, last: Option<&SnapshotRef>) -> Vec<String> {
        let objects = &self.objects;
        let listed = objects.list("snapshots", None).await.unwrap_or_default();
        let current = snapshot_name(now);
        // Of each serial, one snapshot counted. Another one is from a run that was killed before the journal
        // named it, or that was driven out. One with a later serial may be about to count.
        let (mut drop, mut older) = (Vec::new(), Vec::new());
        for (file, _) in &listed {
            let name = format!("snapshots/{file}");
            let serial = serial_of(file);
            let counted = [Some(now), last].into_iter().flatten();
            let counted = counted.filter(|counted| Some(counted.serial) == serial);
            let of_serial: Vec<String> = counted.map(snapshot_name).collect();
            if !of_serial.is_empty() && !of_serial.contains(&name) {
                drop.push(name);
            } else if name < current {
                older.push(name);
            }
        }
        let (too_many, keep) = older.split_at(older.len().saturating_sub(KEPT));
        drop.extend_from_slice(too_many);
        if self.cipher.is_on() {
            for name in keep {
                let head = objects.head(name, 4).await.ok().flatten();
                if head.is_some_and(|head| !cipher::is_sealed(&head)) {
                    drop.push(name.clone());
                }
            }
        }
        drop
    }
}

/// Writes the end of the journal, and releases the lock.
async fn release_lock(log: &mut ObjectLog) -> Result<(), StoreError> {
    if let Some(journal) = &log.journal {
        log.lock.note(journal.last).await;
    }
    log.lock.release().await
}

#[async_trait]
impl FencedLog for ObjectLog {
    fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn append(&mut self, frame: &Frame) -> Result<(), StoreError> {
        self.push(frame).await?;
        if let Some(journal) = &mut self.journal {
            journal.last = frame.end.lsn;
        }
        Ok(())
    }

    async fn replace(
        &mut self,
        EncodedSnapshot { header, bytes, base }: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<(), StoreError> {
        let snapshot = header.snapshot_ref();
        let name = snapshot_name(&snapshot);
        self.objects.overwrite(&name, bytes).await?;
        let pushed = self.push(base).await;
        if matches!(pushed, Err(Refused::TakenAlready)) {
            // No journal names the snapshot, and none will, because its digest belongs to this epoch.
            self.objects.remove(vec![name]).await;
        }
        pushed?;
        let lsn = base.end.lsn;
        let now = JournalObjects { base: lsn, last: lsn, epoch_starts: BTreeSet::new() };
        let before = self.journal.replace(now);
        // The lock object only helps to find the journal. As long as it could not be written, the objects
        // that it names must stay.
        match self.publish(snapshot.clone()).await {
            Ok(()) => self.clear_away(before, lsn, &snapshot, replaced).await,
            Err(error @ StoreError::Fenced(_)) => return Err(error),
            Err(_) => {}
        }
        if matches!(replaced, Replaced::Anything) { self.mark(None).await } else { Ok(()) }
    }

    async fn mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.lock.update(|body| body.moved = mark.map(Mark::text)).await
    }

    /// A read of an object costs a request, however small the object is.
    fn frame_bytes(&self, frame: &Frame) -> u64 {
        FRAME_BYTES_MIN.max(frame.bytes.len() as u64)
    }

    async fn release(mut self) -> Result<(), StoreError> {
        release_lock(&mut self).await
    }
}

impl Drop for ObjectLog {
    /// Releases the lock of a run that ends with an error, too, so that other runs need not wait until it
    /// counts as dead. If that is not possible, they wait.
    fn drop(&mut self) {
        if self.lock.is_released() || std::thread::panicking() {
            return;
        }
        let Ok(handle) = Handle::try_current() else { return };
        if handle.runtime_flavor() != RuntimeFlavor::MultiThread {
            return;
        }
        tokio::task::block_in_place(|| {
            let releasing = tokio::time::timeout(RELEASE_TIMEOUT, release_lock(self));
            handle.block_on(releasing).map(Result::ok).ok();
        });
    }
}
