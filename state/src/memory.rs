//! A store in memory, for tests of all code above stores.
//!
//! It fails in two ways on request, as real stores do by themselves: writes fail from some point on, and the
//! holder loses the lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;

use crate::cipher::Cipher;
use crate::error::StoreError;
use crate::fenced_log::{
    self, EncodedSnapshot, FencedLog, FencedStore, Position, Replaced, lock_lost, seal_records,
};
use crate::format;
use crate::frame::{End, Frame, pieces};
use crate::holder::Holder;
use crate::mark::{self, Mark, Purpose};
use crate::store::{Loaded, LockedStore, Store, Version};

const PLACE: &str = "memory";
const POLL: Duration = Duration::from_millis(10);

/// A store in memory. Its clones are the same store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    state: Option<Vec<u8>>,
    journal: Vec<Frame>,
    holder: Option<Holder>,
    mark: Option<Mark>,
    /// The epoch, which rises with every holder, and when a holder is driven out.
    epoch: u64,
    /// The number of writes that still succeed; none if all do.
    writes_left: Option<u64>,
}

impl Shared {
    fn read(&self) -> Result<(Loaded, Option<Position>), StoreError> {
        let Some(state) = &self.state else { return Ok((Loaded::nothing(), None)) };
        let damaged = |what: String| StoreError::suspicious(what, "nothing was changed");
        let (header, snapshot) =
            format::decode(state).map_err(|error| damaged(error.to_string()))?;
        let frames = self.journal.iter().map(|frame| (frame.end.lsn, &*frame.bytes));
        let journal = pieces::assemble(frames, &Cipher::off()).map_err(damaged)?;
        let (loaded, position) = journal
            .and_then(|journal| fenced_log::join(header, snapshot, journal.journal))
            .ok_or_else(|| damaged("the journal is not that of the state".to_owned()))?;
        Ok((loaded, Some(position)))
    }

    fn count_write(&mut self) -> Result<(), StoreError> {
        match &mut self.writes_left {
            Some(0) => Err(StoreError::refused("cannot write: the test said so")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a store with the data of an earlier run.
    pub fn with(snapshot: &Snapshot, records: &[Record]) -> Self {
        let store = Self::new();
        let log = MemoryLog { store: store.clone(), epoch: 0 };
        let EncodedSnapshot { bytes, base, .. } =
            EncodedSnapshot::new(&log, snapshot, End::default()).expect("it is not too deep");
        let mut journal = vec![base];
        if !records.is_empty() {
            let frame = seal_records(&log, records, journal[0].end);
            journal.push(frame.expect("they are not too deep"));
        }
        *store.shared() = Shared { state: Some(bytes), journal, ..Shared::default() };
        store
    }

    /// Lets `writes` more appends and saves succeed, and all later ones fail; none lets all succeed.
    pub fn fail_after(&self, writes: Option<u64>) {
        self.shared().writes_left = writes;
    }

    /// Takes the lock away from its holder, as a store with leases does.
    pub fn drive_out(&self) {
        let mut shared = self.shared();
        shared.epoch += 1;
        shared.holder = None;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A panic in another test thread cannot leave the data inconsistent, because each change is complete
        // by itself.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, holder: &Holder) -> Result<MemoryLog, StoreError> {
        let mut shared = self.shared();
        if let Some(other) = &shared.holder {
            return Err(StoreError::Locked(Box::new(other.clone())));
        }
        shared.holder = Some(holder.clone());
        shared.epoch += 1;
        Ok(MemoryLog { store: self.clone(), epoch: shared.epoch })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let shared = self.shared();
        mark::refuse_left(shared.mark.as_ref(), PLACE)?;
        let (loaded, _) = shared.read()?;
        loaded.seen_with(shared.holder.clone(), shared.mark.clone(), PLACE)
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let until = tokio::time::Instant::now() + wait;
        let log = loop {
            match self.take(holder) {
                Err(StoreError::Locked(_)) if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(POLL).await;
                }
                taken => break taken?,
            }
        };
        let mark = self.shared().mark.clone();
        purpose.check(mark.as_ref(), PLACE)?;
        let (loaded, position) = self.shared().read()?;
        Ok(Box::new(FencedStore::new(log, Loaded { mark, ..loaded }, position)))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let log = self.take(holder)?;
        let (_, position) = self.shared().read()?;
        let (known, end) =
            position.map_or((0, End::default()), |found| (found.header.serial, found.end));
        let serial = known.max(snapshot.serial) + 1;
        fenced_log::restore(log, &Snapshot { serial, ..snapshot.clone() }, end).await
    }

    fn place(&self) -> String {
        PLACE.to_owned()
    }
}

struct MemoryLog {
    store: MemoryStore,
    epoch: u64,
}

impl MemoryLog {
    /// Writes, if this holder still has the lock.
    fn write(&self, work: impl FnOnce(&mut Shared)) -> Result<(), StoreError> {
        let mut shared = self.store.shared();
        if shared.epoch != self.epoch {
            return Err(lock_lost());
        }
        shared.count_write()?;
        work(&mut shared);
        Ok(())
    }
}

#[async_trait]
impl FencedLog for MemoryLog {
    fn cipher(&self) -> &Cipher {
        const { &Cipher::off() }
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn append(&mut self, frame: &Frame) -> Result<(), StoreError> {
        self.write(|shared| shared.journal.push(frame.clone()))
    }

    async fn replace(
        &mut self,
        new: &EncodedSnapshot,
        replaced: &Replaced,
    ) -> Result<(), StoreError> {
        self.write(|shared| {
            shared.state = Some(new.bytes.clone());
            shared.journal = vec![new.base.clone()];
            if matches!(replaced, Replaced::Anything) {
                shared.mark = None;
            }
        })
    }

    async fn mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.write(|shared| shared.mark = mark.cloned())
    }

    async fn release(self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        let mut shared = self.store.shared();
        if shared.epoch == self.epoch {
            shared.holder = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    fn handle(store: &MemoryStore) -> conformance::OpenStore {
        let store = store.clone();
        Box::new(move || Box::new(store.clone()))
    }

    #[tokio::test]
    async fn conforms() {
        conformance::run(|| handle(&MemoryStore::new())).await;
    }

    #[tokio::test]
    async fn a_holder_that_was_driven_out_writes_nothing() {
        let store = MemoryStore::with(&conformance::snapshot(0), &[]);
        let mut held = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
        store.drive_out();
        let other = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
        let records = conformance::records(0..1);
        assert!(matches!(held.append(&records).await, Err(StoreError::Fenced(_))));
        drop(held);
        assert!(store.load().await.unwrap().holder.is_some(), "the other still holds it");
        drop(other);
        assert!(store.load().await.unwrap().records.is_empty());
    }

    #[tokio::test]
    async fn a_failed_write_is_the_last() {
        let store = MemoryStore::with(&conformance::snapshot(0), &[]);
        let mut held = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
        store.fail_after(Some(1));
        let records = conformance::records(0..1);
        held.append(&records).await.unwrap();
        assert!(matches!(held.append(&records).await, Err(StoreError::Failed { .. })));
        store.fail_after(None);
        assert!(matches!(held.append(&records).await, Err(StoreError::Failed { .. })));
        assert_eq!(store.load().await.unwrap().records, records);
    }
}
