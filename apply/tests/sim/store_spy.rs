//! A layer around the store of a runner. Every write can fail, written or not. The layer notes what became
//! durable, so that calls can be checked against it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Record;
use engine::state::Snapshot;
use state::mark::Purpose;
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};

use crate::cloud::lock;
use crate::one_run::EPOCH_MS;
use crate::runner::Runner;

/// The layer around a store, see the module.
pub(crate) struct StoreSpy {
    pub(crate) store: Box<dyn Store>,
    pub(crate) runner: Arc<Runner>,
}

struct LockedStoreSpy {
    held: Box<dyn LockedStore>,
    runner: Arc<Runner>,
    broken: bool,
    /// The number of the next call, from the records that were loaded and appended.
    next_call: u64,
    /// The number of appends so far.
    appends: u64,
    /// The size of the journal in bytes that the store claims; None if it shows the real size.
    said_bytes: Option<u64>,
}

impl LockedStoreSpy {
    /// Draws whether a write fails. Returns None if it succeeds, true if it is written although it fails, and
    /// false if nothing is written.
    fn fails(&mut self, what: &str) -> Option<bool> {
        let rates = &self.runner.rates;
        let written = if self.runner.strikes("write_fails", rates.write_fails) {
            false
        } else if self.runner.strikes("write_lies", rates.write_lies) {
            true
        } else {
            return None;
        };
        self.broken = true;
        self.runner.note(format_args!("{what} fails, written: {written}"));
        lock(&self.runner.cloud).count("failed writes");
        Some(written)
    }

    /// Notes that a whole state is durable.
    fn told(&self, snapshot: &Snapshot) {
        let state = (snapshot.lineage.clone(), snapshot.serial, snapshot.next_call);
        lock(&self.runner.cloud).told = Some(state);
    }

    /// Notes that records are durable, and all records before them.
    fn told_records(&mut self, records: &[Record]) {
        self.next_call = after(self.next_call, records);
        if let Some((_, _, next_call)) = &mut lock(&self.runner.cloud).told {
            *next_call = self.next_call;
        }
    }

    /// Counts an append. After every `grows_every` appends the journal claims a size at which the run saves
    /// the state in between. The size triples each time, because the run's limit grows with each save.
    fn grow(&mut self) {
        self.appends += 1;
        let Some(every) =
            self.runner.grows_every.filter(|every| self.appends.is_multiple_of(*every))
        else {
            return;
        };
        let times = u32::try_from(self.appends / every).unwrap().min(20);
        self.said_bytes = Some(5_000_000 * 3_u64.pow(times));
    }

    /// Checks that no call starts after the run was asked to stop.
    fn heeds(&self, records: &[Record]) {
        let Some(stopped) = *self.runner.stopped_ms.lock().unwrap() else { return };
        for record in records {
            if let Record::Started(started) = record
                && started.at_ms > EPOCH_MS + stopped
            {
                let (run, call) = (self.runner.number, started.call);
                let what = format!("r{run}: {call} begins after the run was asked to stop");
                lock(&self.runner.cloud).violation(what);
            }
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.broken { Err(failed("an earlier write failed")) } else { Ok(()) }
    }
}

/// Returns the number of the next call after these records.
fn after(next_call: u64, records: &[Record]) -> u64 {
    let next = |record: &Record| match record {
        Record::Started(started) => started.call.0 + 1,
        _ => 0,
    };
    records.iter().map(next).fold(next_call, u64::max)
}

fn failed(what: &str) -> StoreError {
    StoreError::Failed { what: what.to_owned(), source: None }
}

#[async_trait]
impl Store for StoreSpy {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        self.runner.boundary("lock").await;
        let held = self.store.lock_for(purpose, holder, wait).await?;
        self.runner.note("locked");
        let loaded = held.loaded();
        let known = loaded.snapshot.as_ref().map_or(0, |snapshot| snapshot.next_call);
        let next_call = after(known, &loaded.records);
        if !lock(&self.runner.cloud).asked_for.is_empty()
            && let Some(mut snapshot) = loaded.snapshot.clone()
        {
            // The run itself reports records that do not fold.
            let folds = loaded.records.iter().all(|record| snapshot.fold(record).is_ok());
            if folds {
                lock(&self.runner.cloud).take_over_what(&snapshot);
            }
        }
        let held = LockedStoreSpy {
            held,
            runner: self.runner.clone(),
            broken: false,
            next_call,
            appends: 0,
            said_bytes: None,
        };
        if let Some(snapshot) = &held.loaded().snapshot {
            held.told(snapshot);
        }
        Ok(Box::new(held))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.store.restore(holder, snapshot).await
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

#[async_trait]
impl LockedStore for LockedStoreSpy {
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
        self.told(snapshot);
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
        self.heeds(records);
        self.grow();
        self.told_records(records);
        {
            let mut cloud = lock(&self.runner.cloud);
            cloud.written(self.runner.number, records);
            cloud.adopted(self.runner.number, records);
        }
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
        self.told(snapshot);
        if self.said_bytes.take().is_some() {
            lock(&self.runner.cloud).count("saves in between");
        }
        self.runner.note(format_args!("saves serial {}", snapshot.serial));
        self.runner.boundary("after a save").await;
        if fails.is_some() { Err(failed("no answer")) } else { Ok(version) }
    }

    fn journal_bytes(&self) -> u64 {
        self.said_bytes.unwrap_or_else(|| self.held.journal_bytes())
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.runner.boundary("release").await;
        self.held.release().await
    }
}

/// Returns one word for each record, for the trace.
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
        Record::Triggered { address, .. } => format!("triggered({address})"),
        Record::Vanished { address, .. } => format!("vanished({address})"),
        Record::Adopted { address, object, .. } => format!("adopted({address} {})", object.id),
        Record::Forgot { address, .. } => format!("forgot({address})"),
        Record::Unwatched { .. } => "unwatched".to_owned(),
        Record::Moved { .. } => "moved".to_owned(),
        Record::Located { provider, .. } => format!("located({provider})"),
        Record::Outputs { .. } => "outputs".to_owned(),
        Record::RunClosed { outcome } => format!("closed({outcome})"),
    };
    records.iter().map(word).collect::<Vec<_>>().join(" ")
}
