//! A runner's side of the store: every write can fail, written or not, and what became durable is
//! booked, so that calls can be held against it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use state::{Held, Holder, Loaded, Store, StoreError, Version};

use crate::runner::Runner;
use crate::sky::lock;

/// See the module.
pub(crate) struct Desk {
    pub(crate) store: Box<dyn Store>,
    pub(crate) runner: Arc<Runner>,
}

struct DeskHeld {
    held: Box<dyn Held>,
    runner: Arc<Runner>,
    broken: bool,
}

impl DeskHeld {
    /// Whether a write fails, and if so whether it was written all the same.
    fn fails(&mut self, what: &str) -> Option<bool> {
        let rates = &self.runner.rates;
        let written = if self.runner.chance(rates.write_fails) {
            false
        } else if self.runner.chance(rates.write_lies) {
            true
        } else {
            return None;
        };
        self.broken = true;
        self.runner.note(format_args!("{what} fails, written: {written}"));
        lock(&self.runner.sky).count("failed writes");
        Some(written)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.broken { Err(failed("an earlier write failed")) } else { Ok(()) }
    }
}

fn failed(what: &str) -> StoreError {
    StoreError::Failed { what: what.to_owned(), source: None }
}

#[async_trait]
impl Store for Desk {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        self.runner.boundary("lock").await;
        let held = self.store.lock(holder, wait).await?;
        self.runner.note("locked");
        Ok(Box::new(DeskHeld { held, runner: self.runner.clone(), broken: false }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.store.restore(holder, snapshot).await
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

#[async_trait]
impl Held for DeskHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.runner.boundary("before the first state").await;
        self.check()?;
        let fails = self.fails("the first state");
        if fails == Some(false) {
            return Err(failed("no space"));
        }
        let version = self.held.initialise(snapshot).await?;
        self.runner.boundary("after the first state").await;
        if fails.is_some() { Err(failed("no answer")) } else { Ok(version) }
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.runner.boundary("before an append").await;
        self.check()?;
        let fails = self.fails("an append");
        if fails == Some(false) {
            return Err(failed("no space"));
        }
        self.held.append(records).await?;
        lock(&self.runner.sky).written(self.runner.number, records);
        self.runner.note(format_args!("appends {}", words(records)));
        self.runner.boundary("after an append").await;
        if fails.is_some() { Err(failed("no answer")) } else { Ok(()) }
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.runner.boundary("before a save").await;
        self.check()?;
        let fails = self.fails("a save");
        if fails == Some(false) {
            return Err(failed("no space"));
        }
        let version = self.held.save(snapshot, expected).await?;
        self.runner.note(format_args!("saves serial {}", snapshot.serial));
        self.runner.boundary("after a save").await;
        if fails.is_some() { Err(failed("no answer")) } else { Ok(version) }
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.runner.boundary("release").await;
        self.held.release().await
    }
}

/// Records in a word each.
fn words(records: &[Record]) -> String {
    let word = |record: &Record| match record {
        Record::RunOpened { .. } => "opened".to_owned(),
        Record::Started(started) => format!(
            "started({} {:?}{} {})",
            started.call, started.phase.kind, started.phase.phase, started.address
        ),
        Record::Finished { call, .. } => format!("finished({call})"),
        Record::Doubted { call, .. } => format!("doubted({call})"),
        Record::Resolved { call, .. } => format!("resolved({call})"),
        Record::Seen { address, .. } => format!("seen({address})"),
        Record::Vanished { address, .. } => format!("vanished({address})"),
        Record::Adopted { address, object, .. } => format!("adopted({address} {})", object.id),
        Record::Forgot { address, .. } => format!("forgot({address})"),
        Record::Unwatched { .. } => "unwatched".to_owned(),
        Record::Moved { .. } => "moved".to_owned(),
        Record::Outputs { .. } => "outputs".to_owned(),
        Record::RunClosed { outcome } => format!("closed({outcome})"),
    };
    records.iter().map(word).collect::<Vec<_>>().join(" ")
}
