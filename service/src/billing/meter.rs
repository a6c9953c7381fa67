//! The meter: it counts the time of workers, pods and volumes, and writes it into the ledger.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bucket::HOUR_MS;
use super::ledger::{self, Entry};
use super::{Price, pod_disk_price, volume_price};
use crate::app::App;
use crate::clock::now_ms;
use crate::pods::model::Pod;
use crate::pods::run::Run;
use crate::problem::Problem;
use crate::resources::volume::Volume;
use crate::store::objects;
use crate::workers::worker::Worker;

/// The time between two writes of the ledger.
const PAUSE: Duration = Duration::from_mins(1);

/// The use that was counted, of which the ledger may not have the newest part yet.
pub(crate) struct Meter {
    counted: Mutex<Vec<Entry>>,
    /// The time up to which volumes and the disks of pods have been counted, in milliseconds since
    /// 1970.
    disks_until: AtomicI64,
    /// Locked while the ledger is written: a reader that calls `settle` first finds everything.
    writing: tokio::sync::Mutex<()>,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter {
            counted: Mutex::default(),
            disks_until: AtomicI64::new(now_ms()),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Counts the time of a worker since it was counted last.
    pub(crate) fn count_worker(&self, worker: &Worker) {
        let now = now_ms();
        let since = worker.counted_until.swap(now, SeqCst);
        self.count(worker.price, &worker.endpoint, since, now);
    }

    /// Counts the time of a pod since it was counted last.
    pub(crate) fn count_pod(&self, run: &Run) {
        let now = now_ms();
        let since = run.counted_until.swap(now, SeqCst);
        if run.is_billed() {
            self.count(run.price, run.id(), since, now);
        }
    }

    fn count(&self, price: Price, object: &str, since: i64, until: i64) {
        let entry = |(hour, ms)| Entry {
            what: price.what,
            object: object.to_owned(),
            hour,
            ms,
            nanos: cost(price.nanos_per_hour, ms),
        };
        self.counted().extend(hours(since, until).into_iter().map(entry));
    }

    fn counted(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts all use up to now, and writes it into the ledger.
    pub(crate) async fn settle(&self, app: &App) -> Result<(), Problem> {
        let _only = self.writing.lock().await;
        app.fleet.all().iter().for_each(|worker| self.count_worker(worker));
        app.pod_runner.all().iter().for_each(|run| self.count_pod(run));
        let read = |conn: &rusqlite::Connection| {
            Ok((objects::list::<Volume>(conn, 0)?, objects::list::<Pod>(conn, 0)?))
        };
        let (volumes, pods) = app.store.read(read).await?;
        let now = now_ms();
        let last = self.disks_until.swap(now, SeqCst);
        for volume in volumes {
            let price = volume_price(&volume.tier, volume.size);
            self.count(price, &volume.id, last.max(volume.created_at), now);
        }
        for pod in pods {
            self.count(pod_disk_price(&pod), &pod.id, last.max(pod.created_at), now);
        }
        let entries = std::mem::take(&mut *self.counted());
        if entries.is_empty() {
            return Ok(());
        }
        let written = entries.clone();
        let done = app.store.write(move |tx| ledger::add(tx, &written)).await;
        if done.is_err() {
            // These entries are written together with the next ones.
            self.counted().extend(entries);
        }
        done
    }
}

/// Writes the ledger every [`PAUSE`] until the service drains. The server calls `settle` once more
/// at its end.
pub(crate) async fn run(app: Arc<App>) {
    loop {
        tokio::select! {
            () = app.draining.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
        // The store logs its failure; the counted use is kept for the next write.
        let _later = app.meter.settle(&app).await;
    }
}

/// Returns the cost of an amount of time.
fn cost(nanos_per_hour: i64, ms: i64) -> i64 {
    let exact = i128::from(nanos_per_hour) * i128::from(ms) / i128::from(HOUR_MS);
    i64::try_from(exact).unwrap_or(i64::MAX)
}

/// Splits a span into the hours that it touches: the beginning of each hour, and the milliseconds
/// in it.
fn hours(since: i64, until: i64) -> Vec<(i64, i64)> {
    let (mut parts, mut at) = (Vec::new(), since);
    while at < until {
        let hour = at.div_euclid(HOUR_MS) * HOUR_MS;
        let end = until.min(hour + HOUR_MS);
        parts.push((hour, end - at));
        at = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn time_costs_what_the_price_says() {
        assert_eq!(cost(1_100_000_000, HOUR_MS), 1_100_000_000);
        assert_eq!(cost(1_100_000_000, HOUR_MS / 2), 550_000_000);
        assert_eq!(hours(HOUR_MS - 10, HOUR_MS + 20), [(0, 10), (HOUR_MS, 20)]);
        assert_eq!(hours(20, 10), []);
    }

    proptest! {
        /// The parts of a span add up to the span, for spans that begin and end at any time.
        #[test]
        fn parts_add_up(since in 0..100 * HOUR_MS, length in 0..50 * HOUR_MS) {
            let parts = hours(since, since + length);
            prop_assert_eq!(parts.iter().map(|(_, ms)| ms).sum::<i64>(), length);
            prop_assert!(parts.iter().all(|(hour, ms)| hour % HOUR_MS == 0 && *ms <= HOUR_MS));
        }
    }
}
