//! A state whose lock this process holds: the only place that writes its objects.
//!
//! Everything that counts is decided by who makes the next object of the journal. A new holder first
//! makes one itself, so that no earlier one can; an append makes one; a save writes its snapshot
//! under a name of its own and then makes the one that names it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::Shared;
use super::lock::{Body, Lock, Seen, fenced};
use super::log::{Found, bytes_of, frame_name, serial_of, snapshot_name};
use crate::format::Header;
use crate::frame::{self, Base, End};
use crate::mark::Mark;
use crate::standing::Standing;
use crate::{Held, Loaded, StoreError, Version, cipher, write};

/// How many older snapshots are kept.
const KEPT: usize = 20;
/// For how many days the first frame of an epoch is kept. It stands in the way of a holder that
/// stood still since before; no service takes a request that was signed so long ago.
const FIRSTS_DAYS: i64 = 30;
/// How long a holder that is dropped without a word may take to let go.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct ObjectHeld {
    shared: Arc<Shared>,
    lock: Lock,
    epoch: u64,
    loaded: Loaded,
    /// None until a first run has made its state.
    at: Option<At>,
    standing: Standing,
}

/// Where the store stands.
pub(super) struct At {
    header: Header,
    base: u64,
    end: End,
    bytes: u64,
    firsts: BTreeSet<u64>,
}

/// Why an object of the journal does not count.
enum Refused {
    /// There is another one under its number: nobody will ever read this one.
    TakenAlready,
    /// Another reason. It may be there, and be read.
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
            Refused::TakenAlready => fenced(),
            Refused::Otherwise(error) => error,
        }
    }
}

impl ObjectHeld {
    /// Holds a place of which nothing is known yet but what its lock says.
    pub(super) fn new(shared: Arc<Shared>, lock: Lock, body: &Body) -> Self {
        let loaded = Loaded { mark: body.mark(), ..Loaded::nothing() };
        let (epoch, standing) = (body.epoch, Standing::default());
        Self { shared, lock, epoch, loaded, at: None, standing }
    }

    /// Makes sure that the epoch is higher than one that was written.
    pub(super) fn rise_above(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch + 1);
    }

    /// Goes on behind what was found, if nobody else did meanwhile: false then.
    pub(super) async fn seal(&mut self, found: Found) -> Result<bool, StoreError> {
        let (bytes, end) = frame::seal_records(&[], found.end, self.epoch, &self.shared.cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        if !self.shared.objects.create(&frame_name(end.lsn), &bytes).await? {
            return Ok(false);
        }
        let Found { loaded, header, base, bytes: before, firsts, .. } = found;
        let firsts = firsts.into_iter().chain([end.lsn]).collect();
        self.loaded = Loaded { mark: self.loaded.mark.take(), ..loaded };
        let bytes = before + bytes_of([bytes.len() as u64]);
        self.at = Some(At { header, base, end, bytes, firsts });
        self.tell().await?;
        Ok(true)
    }

    /// Says in the lock object where the store stands.
    async fn tell(&self) -> Result<(), StoreError> {
        let Some(At { header, base, end, .. }) = &self.at else { return Ok(()) };
        let Header { lineage, serial, digest, .. } = header.clone();
        let (base, lsn, epoch) = (*base, end.lsn, self.epoch);
        self.lock
            .update(move |body| {
                body.epoch = body.epoch.max(epoch);
                body.base = base;
                body.lsn = lsn;
                body.seen = Some(Seen { lineage, serial, digest });
            })
            .await
    }

    /// Makes the next object of the journal, or learns that somebody else has.
    async fn push(&self, lsn: u64, bytes: &[u8]) -> Result<(), Refused> {
        if !self.shared.objects.create(&frame_name(lsn), bytes).await? {
            return Err(Refused::TakenAlready);
        }
        // Objects of the journal are cleared away in the end, and then what stood in this one's way
        // may be gone: who was away for long looks at the lock as well.
        Ok(self.lock.confirm().await?)
    }

    pub(super) async fn put(
        &mut self,
        snapshot: &Snapshot,
        checkpoint: End,
    ) -> Result<Version, StoreError> {
        let result = self.put_now(snapshot, checkpoint).await;
        self.standing.keep(result)
    }

    async fn put_now(
        &mut self,
        snapshot: &Snapshot,
        checkpoint: End,
    ) -> Result<Version, StoreError> {
        let Shared { cipher, objects, .. } = &*self.shared;
        let (header, bytes) = write::encode(cipher, snapshot, self.epoch, checkpoint)?;
        let name = snapshot_name(header.serial, &header.digest);
        objects.overwrite(&name, &bytes).await?;
        let base = Base {
            lineage: header.lineage.clone(),
            serial: header.serial,
            digest: header.digest.clone(),
        };
        let (bytes, end) = frame::seal_base(&base, checkpoint, self.epoch, cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let pushed = self.push(end.lsn, &bytes).await;
        if matches!(pushed, Err(Refused::TakenAlready)) {
            // No journal names it, nor will one: its digest is of this epoch.
            objects.remove(vec![name]).await;
        }
        pushed?;
        let version = header.version();
        let bytes = bytes_of([bytes.len() as u64]);
        let at = At { header, base: end.lsn, end, bytes, firsts: BTreeSet::new() };
        let before = self.at.replace(at);
        // The lock object only helps to find what the journal says. While it could not be told,
        // what it names must stay.
        match self.tell().await {
            Ok(()) => self.clear_away(before).await,
            Err(error @ StoreError::Fenced(_)) => return Err(error),
            Err(_) => {}
        }
        Ok(version)
    }

    /// Removes what a save has folded in, and what is older than what is kept. What cannot be
    /// removed stays: it does not count.
    async fn clear_away(&self, before: Option<At>) {
        let (Some(now), objects) = (&self.at, &self.shared.objects) else { return };
        let folded = before.iter().flat_map(|before| {
            (before.base..now.base).filter(|lsn| !before.firsts.contains(lsn)).map(frame_name)
        });
        objects.remove(folded.collect()).await;
        objects.remove(self.old_firsts(now.base).await).await;
        let last = before.as_ref().map(|before| &before.header);
        objects.remove(self.old_snapshots(&now.header, last).await).await;
    }

    /// The frames before the journal that have stood there long enough. Their ages are told by the
    /// service's clock alone.
    async fn old_firsts(&self, base: u64) -> Vec<String> {
        let listed = self.shared.objects.list("journal", None).await.unwrap_or_default();
        let Some(now) = listed.iter().map(|(_, meta)| meta.last_modified).max() else {
            return Vec::new();
        };
        listed
            .iter()
            .filter(|(name, meta)| {
                name.parse::<u64>().is_ok_and(|lsn| lsn < base)
                    && (now - meta.last_modified).num_days() > FIRSTS_DAYS
            })
            .map(|(name, _)| format!("journal/{name}"))
            .collect()
    }

    /// The snapshots that are too many, those that never counted, and with a key those that were
    /// written without one.
    async fn old_snapshots(&self, now: &Header, last: Option<&Header>) -> Vec<String> {
        let objects = &self.shared.objects;
        let listed = objects.list("snapshots", None).await.unwrap_or_default();
        let current = snapshot_name(now.serial, &now.digest);
        // Of one serial one snapshot counted. Another one is of a run that was killed before the
        // journal named it, or was driven out. Of a later serial it may be about to count.
        let (mut drop, mut older) = (Vec::new(), Vec::new());
        for (file, _) in &listed {
            let name = format!("snapshots/{file}");
            let serial = serial_of(file);
            let counted = [Some(now), last].into_iter().flatten();
            let counted = counted.filter(|header| Some(header.serial) == serial);
            let of_serial: Vec<String> =
                counted.map(|header| snapshot_name(header.serial, &header.digest)).collect();
            if !of_serial.is_empty() && !of_serial.contains(&name) {
                drop.push(name);
            } else if name < current {
                older.push(name);
            }
        }
        let (too_many, keep) = older.split_at(older.len().saturating_sub(KEPT));
        drop.extend_from_slice(too_many);
        if self.shared.cipher.is_on() {
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

/// The serials of the snapshots that are there, in order.
pub(super) async fn serials(shared: &Shared) -> Result<Vec<(u64, String)>, StoreError> {
    let listed = shared.objects.list("snapshots", None).await?;
    Ok(listed.into_iter().filter_map(|(name, _)| Some((serial_of(&name)?, name))).collect())
}

#[async_trait]
impl Held for ObjectHeld {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.standing.check()?;
        if self.at.is_some() {
            return Err(StoreError::Fenced("there is a state already".to_owned()));
        }
        self.put(snapshot, End::default()).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.standing.check()?;
        let Some(at) = &self.at else {
            return Err(StoreError::refused("a record was written before the first state"));
        };
        if records.is_empty() {
            return Ok(());
        }
        let (bytes, end) = frame::seal_records(records, at.end, self.epoch, &self.shared.cipher)
            .map_err(|error| StoreError::failed("cannot write the journal", error))?;
        let result = self.push(end.lsn, &bytes).await.map_err(StoreError::from);
        self.standing.keep(result)?;
        if let Some(at) = &mut self.at {
            at.end = end;
            at.bytes += bytes_of([bytes.len() as u64]);
        }
        Ok(())
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.standing.check()?;
        let Some(At { header, end, .. }) = &self.at else {
            return Err(StoreError::refused("a state was saved before the first one"));
        };
        write::check_successor(header, expected, snapshot)?;
        let end = *end;
        self.put(snapshot, end).await
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.standing.check()?;
        self.lock.update(|body| body.moved = mark.map(Mark::text)).await
    }

    fn journal_bytes(&self) -> u64 {
        self.at.as_ref().map_or(0, |at| at.bytes)
    }

    async fn release(mut self: Box<Self>) -> Result<(), StoreError> {
        self.let_go().await
    }
}

impl ObjectHeld {
    /// Says how far the journal goes, and lets go.
    async fn let_go(&mut self) -> Result<(), StoreError> {
        let lsn = self.at.as_ref().map(|at| at.end.lsn);
        if let Some(lsn) = lsn
            && self.standing.check().is_ok()
        {
            self.lock.note(lsn).await;
        }
        self.lock.release().await
    }
}

impl Drop for ObjectHeld {
    /// A run that ends with an error says so, too: then nobody need wait until it is taken for
    /// gone. Where that is not possible, it is.
    fn drop(&mut self) {
        if self.lock.is_released() || std::thread::panicking() {
            return;
        }
        let Ok(handle) = Handle::try_current() else { return };
        if handle.runtime_flavor() != RuntimeFlavor::MultiThread {
            return;
        }
        tokio::task::block_in_place(|| {
            let last_words = tokio::time::timeout(LAST_WORDS, self.let_go());
            handle.block_on(last_words).map(Result::ok).ok();
        });
    }
}
