//! A store that ends the process at a chosen write, as a power cut would: for the tests that crash
//! the real binary at each journal record. Debug builds only; a release build has no such switch.
//!
//! `PLUMB_TEST_DIE=before:N` dies instead of the N-th write, `after:N` once it is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use state::{Held, Holder, Loaded, Store, StoreError, Version};

/// The store, or one around it that dies where the environment says so.
pub(crate) fn around(store: Arc<dyn Store>) -> Arc<dyn Store> {
    let Ok(text) = std::env::var("PLUMB_TEST_DIE") else { return store };
    match text.split_once(':').map(|(when, number)| (when, number.parse())) {
        Some((when @ ("before" | "after"), Ok(number))) => {
            let death = Death { after: when == "after", left: AtomicU64::new(number) };
            Arc::new(Dying { store, death: Arc::new(death) })
        }
        _ => store,
    }
}

struct Death {
    after: bool,
    left: AtomicU64,
}

impl Death {
    fn due(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

struct Dying {
    store: Arc<dyn Store>,
    death: Arc<Death>,
}

#[async_trait]
impl Store for Dying {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        let held = self.store.lock(holder, wait).await?;
        Ok(Box::new(DyingHeld { held, death: self.death.clone() }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.store.restore(holder, snapshot).await
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
    held: Box<dyn Held>,
    death: Arc<Death>,
}

#[async_trait]
impl Held for DyingHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.held.initialise(snapshot).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let due = self.death.due();
        if due && !self.death.after {
            std::process::abort();
        }
        self.held.append(records).await?;
        if due {
            std::process::abort();
        }
        Ok(())
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.held.save(snapshot, expected).await
    }

    async fn retire(&mut self, to: &str) -> Result<(), StoreError> {
        self.held.retire(to).await
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}
