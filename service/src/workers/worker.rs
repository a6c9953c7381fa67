//! One worker as the service knows it: what it was told, what it has, when it was last heard.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use super::http_server::{Health, HttpServer};
use super::limits::WorkerLimits;
use crate::billing::Price;
use crate::jobs::upkeep::Cutoff;

/// An order to the process of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// End when you have finished.
    Terminate,
    /// End now.
    Kill,
}

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Started, not heard of yet.
    Starting,
    /// Takes jobs.
    Ready,
    /// Takes no more jobs; ends when it has none.
    Retiring,
    /// Was told to end.
    Ending,
}

/// A worker.
pub(crate) struct Worker {
    pub(crate) id: String,
    pub(crate) endpoint: String,
    /// The version of the endpoint that it was started for.
    pub(crate) version: i64,
    /// When it was started, in milliseconds since 1970.
    pub(crate) started_at: i64,
    /// Its price.
    pub(crate) price: Price,
    /// Up to when its time has been counted.
    pub(crate) counted_until: AtomicI64,
    /// What it shows when it calls.
    pub(crate) token: String,
    /// False as soon as its process is gone.
    pub(crate) alive: Arc<AtomicBool>,
    /// Rung when its long polls must look again.
    pub(crate) bell: Notify,
    /// Its HTTP server, if its endpoint balances load; set before its process starts.
    pub(crate) server: OnceLock<HttpServer>,
    orders: mpsc::UnboundedSender<Order>,
    state: Mutex<State>,
}

/// What changes in the life of a worker.
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) heard: Instant,
    pub(crate) idle_since: Instant,
    pub(crate) retiring_since: Option<Instant>,
    pub(crate) jobs: HashMap<String, Held>,
    /// Jobs that it must stop and has not been told of yet.
    pub(crate) to_stop: Vec<String>,
    /// Requests that it works at.
    pub(crate) requests: usize,
    /// True if it ever asked for a job, or was healthy.
    pub(crate) asked: bool,
    /// True if its process was ordered to end at once.
    killed: bool,
}

/// A job that a worker has.
pub(crate) struct Held {
    /// When the worker last said that it has it.
    pub(crate) seen: Instant,
    /// When it should have stopped it.
    pub(crate) stopped: Option<Instant>,
}

impl State {
    /// Returns true if it has jobs or requests.
    pub(crate) fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || self.requests > 0
    }
}

impl Worker {
    pub(crate) fn new(
        endpoint: &str,
        version: i64,
        price: Price,
        orders: mpsc::UnboundedSender<Order>,
    ) -> Worker {
        let (now, started_at) = (Instant::now(), crate::clock::now_ms());
        Worker {
            id: crate::ids::worker(),
            endpoint: endpoint.to_owned(),
            version,
            started_at,
            price,
            counted_until: AtomicI64::new(started_at),
            token: crate::ids::secret(),
            alive: Arc::new(AtomicBool::new(true)),
            bell: Notify::new(),
            server: OnceLock::new(),
            orders,
            state: Mutex::new(State {
                phase: Phase::Starting,
                heard: now,
                idle_since: now,
                retiring_since: None,
                jobs: HashMap::new(),
                to_stop: Vec::new(),
                requests: 0,
                asked: false,
                killed: false,
            }),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an order to its process.
    pub(crate) fn order(&self, order: Order) {
        // The process may be gone already: then the order is carried out.
        let _gone = self.orders.send(order);
    }

    /// The worker has called.
    pub(crate) fn heard(&self) {
        let mut state = self.state();
        state.heard = Instant::now();
        if state.phase == Phase::Starting {
            state.phase = Phase::Ready;
            state.idle_since = Instant::now();
        }
    }

    /// Its HTTP server takes requests.
    pub(super) fn is_ready(&self) {
        self.state().asked = true;
        self.heard();
    }

    /// Its HTTP server answers, and takes no requests yet.
    pub(super) fn initializes(&self) {
        self.state().heard = Instant::now();
    }

    /// Returns true if requests may go to its HTTP server.
    pub(crate) fn is_in_rotation(&self) -> bool {
        self.may_take()
            && self.server.get().is_some_and(|server| server.health() == Health::Healthy)
    }

    /// It gets a request.
    pub(crate) fn begin_request(&self) {
        self.state().requests += 1;
    }

    /// It has a request no more.
    pub(crate) fn end_request(&self) {
        let mut state = self.state();
        state.requests = state.requests.saturating_sub(1);
        if !state.is_busy() {
            state.idle_since = Instant::now();
        }
    }

    /// Returns true if it may be given jobs.
    pub(crate) fn may_take(&self) -> bool {
        self.alive.load(SeqCst) && matches!(self.state().phase, Phase::Starting | Phase::Ready)
    }

    /// It got these jobs.
    pub(crate) fn got<'a>(&self, ids: impl Iterator<Item = &'a str>) {
        let mut state = self.state();
        let seen = Instant::now();
        for id in ids {
            // An order to stop that was not fetched is about an earlier run.
            state.to_stop.retain(|stop| stop != id);
            state.jobs.insert(id.to_owned(), Held { seen, stopped: None });
        }
    }

    /// The jobs that it has, or has not stopped yet.
    pub(crate) fn held(&self) -> Vec<String> {
        self.state().jobs.keys().cloned().collect()
    }

    /// It has this job no more.
    pub(crate) fn let_go(&self, id: &str) {
        {
            let mut state = self.state();
            if state.jobs.remove(id).is_some() && state.jobs.is_empty() {
                state.idle_since = Instant::now();
            }
            state.to_stop.retain(|stop| stop != id);
        }
        // The job may be queued again, and wait for this.
        self.bell.notify_waiters();
    }

    /// It has exactly these jobs, it says. Jobs that it was to stop and does not name are stopped.
    pub(crate) fn names(&self, ids: &[&str]) {
        let mut state = self.state();
        let now = Instant::now();
        for id in ids {
            if let Some(held) = state.jobs.get_mut(*id) {
                held.seen = now;
            }
        }
        let before = state.jobs.len();
        state.jobs.retain(|id, held| held.stopped.is_none() || ids.contains(&id.as_str()));
        let has_stopped_some = state.jobs.len() < before;
        if has_stopped_some && state.jobs.is_empty() {
            state.idle_since = now;
        }
        drop(state);
        if has_stopped_some {
            // They may be queued again, and wait for this.
            self.bell.notify_waiters();
        }
    }

    /// It must stop this job, which has ended without it.
    pub(crate) fn stop_job(&self, id: &str) {
        {
            let mut state = self.state();
            let Some(held) = state.jobs.get_mut(id) else { return };
            held.stopped = Some(Instant::now());
            state.to_stop.push(id.to_owned());
        }
        self.bell.notify_waiters();
    }

    /// It shall take no more jobs and requests, and end when it has none.
    pub(crate) fn retire(&self) {
        {
            let mut state = self.state();
            if matches!(state.phase, Phase::Starting | Phase::Ready) {
                state.phase = Phase::Retiring;
                state.retiring_since = Some(Instant::now());
            }
            // A job that is over keeps no worker: whether it stops in time does not matter any
            // more.
            let is_free =
                state.requests == 0 && state.jobs.values().all(|held| held.stopped.is_some());
            if state.phase == Phase::Retiring && is_free {
                state.phase = Phase::Ending;
                self.order(Order::Terminate);
            }
        }
        self.bell.notify_waiters();
    }

    /// It shall end now. False when it was told so before.
    pub(crate) fn kill(&self) -> bool {
        self.state().phase = Phase::Ending;
        self.lose()
    }

    /// Its process shall end now, and that counts as a crash. False when it was told so before.
    pub(crate) fn lose(&self) -> bool {
        let before = std::mem::replace(&mut self.state().killed, true);
        if !before {
            self.order(Order::Kill);
            self.bell.notify_waiters();
        }
        !before
    }

    /// Why its runs are cut off, now that its process has ended under these limits.
    pub(crate) fn cutoff(&self, ended: Option<ExitStatus>, limits: WorkerLimits) -> Cutoff {
        let state = self.state();
        match (state.phase, state.killed, ended) {
            (Phase::Ending, _, _) => Cutoff::Ordered,
            (_, true, _) => Cutoff::Lost("it fell silent and was ended".to_owned()),
            (_, _, Some(status)) => {
                let likely =
                    limits.likely_cause(status).map_or_else(String::new, |why| format!("; {why}"));
                Cutoff::Lost(format!("it ended with {}{likely}", described(status)))
            }
            (_, _, None) => Cutoff::Lost("it is gone".to_owned()),
        }
    }

    /// Returns true if it was told to end.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.state().phase, Phase::Retiring | Phase::Ending)
    }

    /// How long it has been silent.
    pub(crate) fn silence(&self) -> Duration {
        self.state().heard.elapsed()
    }
}

/// The end of a process. The guard says of a signal what shells say: 128 and its number.
fn described(status: ExitStatus) -> String {
    match status.code() {
        Some(code @ 129..=192) => format!("exit status {code} (signal {})", code - 128),
        Some(code) => format!("exit status {code}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::BilledKind;

    const FREE: Price = Price { what: BilledKind::WorkerCpu, nanos_per_hour: 0 };

    /// It is looked at ten times a second until its process is gone, and told of once.
    #[test]
    fn a_worker_is_ended_once() {
        let (orders, mut inbox) = mpsc::unbounded_channel();
        let worker = Worker::new("e", 0, FREE, orders);
        assert!(worker.lose());
        assert!(!worker.lose() && !worker.kill());
        assert_eq!(inbox.try_recv(), Ok(Order::Kill));
        assert!(inbox.try_recv().is_err());
    }

    /// What it holds of an ended run keeps the next one away, and the order to stop goes with it.
    #[test]
    fn an_order_to_stop_is_about_one_run() {
        let worker = Worker::new("e", 0, FREE, mpsc::unbounded_channel().0);
        worker.got(["a", "b"].into_iter());
        worker.stop_job("a");
        worker.names(&["a", "b"]);
        assert_eq!(worker.held().len(), 2);
        worker.names(&["b"]);
        assert_eq!(worker.held(), ["b"]);
        worker.got(["a"].into_iter());
        assert!(worker.state().to_stop.is_empty());
    }
}
