//! A store that ends the process at a chosen write, as a power cut would, for the tests that crash the real
//! binary at each journal record. Only debug builds have this switch.
//!
//! `PLUMB_TEST_DIE=before:N` ends the process in place of the N-th write of records, `after:N` once that
//! write is durable, and `move:N` once the N-th write of a snapshot or a mark is durable, in either place of
//! a move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use state::mark::{Mark, Purpose};
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};

/// Returns the store, or one around it that ends the process at the write that the environment names.
pub(crate) fn around(store: Arc<dyn Store>) -> Arc<dyn Store> {
    let Ok(text) = std::env::var("PLUMB_TEST_DIE") else { return store };
    let death = match text.split_once(':').map(|(when, number)| (when, number.parse())) {
        Some(("before", Ok(number))) => Death::BeforeRecords(number),
        Some(("after", Ok(number))) => Death::AfterRecords(number),
        Some(("move", Ok(number))) => Death::AfterMove(number),
        _ => return store,
    };
    Arc::new(Dying { store, death })
}

/// The numbers of writes in this process: of records, and of snapshots and marks.
static RECORDS: AtomicU64 = AtomicU64::new(0);
static MOVES: AtomicU64 = AtomicU64::new(0);

/// The write at which the process ends.
#[derive(Clone, Copy)]
enum Death {
    BeforeRecords(u64),
    AfterRecords(u64),
    AfterMove(u64),
}

impl Death {
    /// Ends the process after a write of a snapshot or a mark, if it is the chosen one.
    fn moved<T>(self, written: Result<T, StoreError>) -> Result<T, StoreError> {
        let number = MOVES.fetch_add(1, Ordering::Relaxed) + 1;
        if written.is_ok() && matches!(self, Self::AfterMove(due) if due == number) {
            std::process::abort();
        }
        written
    }
}

struct Dying {
    store: Arc<dyn Store>,
    death: Death,
}

#[async_trait]
impl Store for Dying {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let held = self.store.lock_for(purpose, holder, wait).await?;
        Ok(Box::new(DyingHeld { held, death: self.death }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.store.restore(holder, snapshot).await
    }

    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        self.store.holder().await
    }

    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        self.store.drive_out(run).await
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        self.store.serials().await
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        self.store.past(serial).await
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        self.store.is_plain().await
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

struct DyingHeld {
    held: Box<dyn LockedStore>,
    death: Death,
}

#[async_trait]
impl LockedStore for DyingHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.death.moved(self.held.initialise(snapshot).await)
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let number = RECORDS.fetch_add(1, Ordering::Relaxed) + 1;
        if matches!(self.death, Death::BeforeRecords(due) if due == number) {
            std::process::abort();
        }
        self.held.append(records).await?;
        if matches!(self.death, Death::AfterRecords(due) if due == number) {
            std::process::abort();
        }
        Ok(())
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.death.moved(self.held.save(snapshot, expected).await)
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.death.moved(self.held.set_mark(mark).await)
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}
