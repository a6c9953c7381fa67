//! A store in memory, for tests: the same rules as every other, gone with the process.
//!
//! Clones are handles to one store, so a test can be the second run, or look at what the first
//! one left behind. Two things can be asked for that real stores do by themselves: that writes
//! fail from some point on, and that the holder loses its place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;

use crate::mark::{self, Mark};
use crate::{Held, Holder, Loaded, Store, StoreError, Version};

const PLACE: &str = "memory";
const POLL: Duration = Duration::from_millis(10);

/// See the module.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    snapshot: Option<Snapshot>,
    /// Raised by every write of a snapshot, so that versions never repeat.
    writes: u64,
    records: Vec<Record>,
    holder: Option<Holder>,
    mark: Option<Mark>,
    /// Raised by every holder, and by whoever drives one out.
    epoch: u64,
    /// How many writes still succeed.
    writes_left: Option<u64>,
}

impl Shared {
    fn version(&self) -> Version {
        match self.snapshot {
            Some(_) => Version(self.writes.to_string()),
            None => Version::none(),
        }
    }

    fn loaded(&self) -> Loaded {
        Loaded {
            snapshot: self.snapshot.clone(),
            version: self.version(),
            records: self.records.clone(),
            holder: None,
            mark: self.mark.clone(),
        }
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

    fn put(&mut self, snapshot: Snapshot) -> Version {
        self.snapshot = Some(snapshot);
        self.writes += 1;
        self.records.clear();
        self.version()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store that an earlier run left behind.
    pub fn with(snapshot: Snapshot, records: Vec<Record>) -> Self {
        let store = Self::new();
        let mut shared = store.shared();
        shared.put(snapshot);
        shared.records = records;
        drop(shared);
        store
    }

    /// Lets `writes` more appends and saves succeed, and all later ones fail; none lets all succeed.
    pub fn fail_after(&self, writes: Option<u64>) {
        self.shared().writes_left = writes;
    }

    /// Takes the lock away from whoever holds it, as a store with leases does.
    pub fn drive_out(&self) {
        let mut shared = self.shared();
        shared.epoch += 1;
        shared.holder = None;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // No invariant spans two changes, so a test that panicked in between left it whole.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, holder: &Holder) -> Result<MemoryHeld, Holder> {
        let mut shared = self.shared();
        if let Some(other) = &shared.holder {
            return Err(other.clone());
        }
        shared.holder = Some(holder.clone());
        shared.epoch += 1;
        let (loaded, epoch) = (shared.loaded(), shared.epoch);
        drop(shared);
        Ok(MemoryHeld { store: self.clone(), loaded, epoch, broken: false })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let shared = self.shared();
        mark::refuse_left(shared.mark.as_ref(), PLACE)?;
        let loaded = Loaded { holder: shared.holder.clone(), ..shared.loaded() };
        mark::marked(loaded, shared.mark.clone(), PLACE)
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        let held = self.lock_to_move(holder, wait).await?;
        mark::refuse_any(held.loaded().mark.as_ref(), PLACE)?;
        Ok(held)
    }

    async fn lock_to_move(
        &self,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn Held>, StoreError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            match self.take(holder) {
                Ok(held) => return Ok(Box::new(held)),
                Err(other) if tokio::time::Instant::now() >= until => {
                    return Err(StoreError::Locked(Box::new(other)));
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let held = self.take(holder).map_err(|other| StoreError::Locked(Box::new(other)))?;
        let mut shared = held.store.shared();
        shared.count_write()?;
        let known = shared.snapshot.as_ref().map_or(0, |known| known.serial);
        let serial = known.max(snapshot.serial) + 1;
        shared.mark = None;
        Ok(shared.put(Snapshot { serial, ..snapshot.clone() }))
    }

    fn place(&self) -> String {
        PLACE.to_owned()
    }
}

struct MemoryHeld {
    store: MemoryStore,
    loaded: Loaded,
    epoch: u64,
    broken: bool,
}

impl MemoryHeld {
    /// Writes, if this holder still has its place; an error poisons.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Shared) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.broken {
            return Err(StoreError::refused("nothing more is written, because a write failed"));
        }
        let mut shared = self.store.shared();
        if shared.epoch != self.epoch {
            return Err(StoreError::Fenced("another run took the lock".to_owned()));
        }
        let result = shared.count_write();
        self.broken = result.is_err();
        result?;
        work(&mut shared)
    }

    fn check_version(&self, expected: &Version) -> Result<(), StoreError> {
        if self.store.shared().version() == *expected {
            return Ok(());
        }
        Err(StoreError::Fenced("the state is not the version to be replaced".to_owned()))
    }
}

#[async_trait]
impl Held for MemoryHeld {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.write(|shared| match shared.snapshot {
            None => Ok(shared.put(snapshot.clone())),
            Some(_) => Err(StoreError::Fenced("there is a state already".to_owned())),
        })
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.write(|shared| {
            if shared.snapshot.is_none() {
                return Err(StoreError::refused("a record was written before the first state"));
            }
            shared.records.extend_from_slice(records);
            Ok(())
        })
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.check_version(expected)?;
        self.write(|shared| {
            let Some(old) = &shared.snapshot else {
                return Err(StoreError::refused("a state was saved before the first one"));
            };
            if snapshot.lineage != old.lineage {
                let what = "a state of another lineage was to replace this one";
                return Err(StoreError::suspicious(what, "nothing was changed"));
            }
            if snapshot.serial <= old.serial {
                let (new, old) = (snapshot.serial, old.serial);
                return Err(StoreError::Fenced(format!("serial {new} was to replace {old}")));
            }
            Ok(shared.put(snapshot.clone()))
        })
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.write(|shared| {
            shared.mark = mark.cloned();
            Ok(())
        })
    }

    fn journal_bytes(&self) -> u64 {
        // About what a record has in a file; nothing is stored here.
        self.store.shared().records.len() as u64 * 400
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Drop for MemoryHeld {
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

    fn handle(store: &MemoryStore) -> conformance::Place {
        let store = store.clone();
        Box::new(move || Box::new(store.clone()))
    }

    #[tokio::test]
    async fn conforms() {
        conformance::run(|| handle(&MemoryStore::new())).await;
    }

    #[tokio::test]
    async fn a_holder_that_was_driven_out_writes_nothing() {
        let store = MemoryStore::with(conformance::snapshot(0), Vec::new());
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
        let store = MemoryStore::with(conformance::snapshot(0), Vec::new());
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
