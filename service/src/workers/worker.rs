//! A worker as the service knows it: its phase, its jobs and requests, its latest call, and the
//! orders to it.

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
    /// End after the running jobs.
    Terminate,
    /// End now.
    Kill,
}

/// The phases in the life of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The worker was started, and has not called yet.
    Starting,
    /// The worker takes jobs.
    Ready,
    /// The worker takes no more jobs, and ends when it has none.
    Retiring,
    /// The worker was told to end.
    Ending,
}

/// A worker.
pub(crate) struct Worker {
    pub(crate) id: String,
    pub(crate) endpoint: String,
    /// The version of the endpoint for which the worker was started.
    pub(crate) version: i64,
    /// The time of the worker's start, in milliseconds since 1970.
    pub(crate) started_at: i64,
    /// The price of the worker's time.
    pub(crate) price: Price,
    /// The time up to which the worker's use has been counted, in milliseconds since 1970.
    pub(crate) counted_until: AtomicI64,
    /// The token that the worker sends with each call.
    pub(crate) token: String,
    /// False as soon as the worker's process is gone.
    pub(crate) alive: Arc<AtomicBool>,
    /// Notified when the long polls of the worker must check their condition again.
    pub(crate) bell: Notify,
    /// The HTTP server, if the endpoint balances load. It is set before the process starts.
    pub(crate) server: OnceLock<HttpServer>,
    orders: mpsc::UnboundedSender<Order>,
    state: Mutex<State>,
}

/// The changing part of a worker.
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) heard: Instant,
    pub(crate) idle_since: Instant,
    pub(crate) retiring_since: Option<Instant>,
    pub(crate) jobs: HashMap<String, Held>,
    /// The jobs that the worker must stop, and whose order to stop it has not fetched yet.
    pub(crate) to_stop: Vec<String>,
    /// The number of requests that the worker handles.
    pub(crate) requests: usize,
    /// True if the worker ever called, or was healthy.
    pub(crate) asked: bool,
    /// True if the process was ordered to end at once.
    killed: bool,
}

/// A job that a worker has.
pub(crate) struct Held {
    /// The time when the worker got the job, or last named it.
    pub(crate) seen: Instant,
    /// The time when the worker was told to stop the job; `None` if it was not.
    pub(crate) stopped: Option<Instant>,
}

impl State {
    /// Returns true if the worker has jobs or requests.
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

    /// Sends an order to the process.
    pub(crate) fn order(&self, order: Order) {
        // A process that is gone already does not need the order.
        let _gone = self.orders.send(order);
    }

    /// Notes a call of the worker.
    pub(crate) fn heard(&self) {
        let mut state = self.state();
        state.heard = Instant::now();
        if state.phase == Phase::Starting {
            state.phase = Phase::Ready;
            state.idle_since = Instant::now();
        }
    }

    /// Notes that the HTTP server takes requests.
    pub(super) fn is_ready(&self) {
        self.state().asked = true;
        self.heard();
    }

    /// Notes that the HTTP server answers, but takes no requests yet.
    pub(super) fn initializes(&self) {
        self.state().heard = Instant::now();
    }

    /// Returns true if requests may be passed to the HTTP server.
    pub(crate) fn is_in_rotation(&self) -> bool {
        self.may_take()
            && self.server.get().is_some_and(|server| server.health() == Health::Healthy)
    }

    /// Counts a request that the worker gets.
    pub(crate) fn begin_request(&self) {
        self.state().requests += 1;
    }

    /// Counts the end of a request.
    pub(crate) fn end_request(&self) {
        let mut state = self.state();
        state.requests = state.requests.saturating_sub(1);
        if !state.is_busy() {
            state.idle_since = Instant::now();
        }
    }

    /// Returns true if the worker may get jobs.
    pub(crate) fn may_take(&self) -> bool {
        self.alive.load(SeqCst) && matches!(self.state().phase, Phase::Starting | Phase::Ready)
    }

    /// Notes that the worker got these jobs.
    pub(crate) fn got<'a>(&self, ids: impl Iterator<Item = &'a str>) {
        let mut state = self.state();
        let seen = Instant::now();
        for id in ids {
            // An older order to stop this job was about an earlier run.
            state.to_stop.retain(|stop| stop != id);
            state.jobs.insert(id.to_owned(), Held { seen, stopped: None });
        }
    }

    /// Returns the jobs that the worker has, including ended ones that it has not stopped yet.
    pub(crate) fn held(&self) -> Vec<String> {
        self.state().jobs.keys().cloned().collect()
    }

    /// Notes that the worker does not have this job any more.
    pub(crate) fn let_go(&self, id: &str) {
        {
            let mut state = self.state();
            if state.jobs.remove(id).is_some() && state.jobs.is_empty() {
                state.idle_since = Instant::now();
            }
            state.to_stop.retain(|stop| stop != id);
        }
        // The job may be queued again, and a poll of this worker may wait for it.
        self.bell.notify_waiters();
    }

    /// Notes that the worker has named exactly these jobs. A job that it had to stop and does not
    /// name has stopped.
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
            // These jobs may be queued again, and a poll of this worker may wait for them.
            self.bell.notify_waiters();
        }
    }

    /// Tells the worker to stop this job, which has ended without it.
    pub(crate) fn stop_job(&self, id: &str) {
        {
            let mut state = self.state();
            let Some(held) = state.jobs.get_mut(id) else { return };
            held.stopped = Some(Instant::now());
            state.to_stop.push(id.to_owned());
        }
        self.bell.notify_waiters();
    }

    /// Lets the worker take no more jobs and requests, and ends it when it has none.
    pub(crate) fn retire(&self) {
        {
            let mut state = self.state();
            if matches!(state.phase, Phase::Starting | Phase::Ready) {
                state.phase = Phase::Retiring;
                state.retiring_since = Some(Instant::now());
            }
            // An ended job does not keep the worker: it does not matter whether the worker still
            // stops it.
            let is_free =
                state.requests == 0 && state.jobs.values().all(|held| held.stopped.is_some());
            if state.phase == Phase::Retiring && is_free {
                state.phase = Phase::Ending;
                self.order(Order::Terminate);
            }
        }
        self.bell.notify_waiters();
    }

    /// Kills the worker. Returns false if it was killed before.
    pub(crate) fn kill(&self) -> bool {
        self.state().phase = Phase::Ending;
        self.lose()
    }

    /// Kills the process, which counts as a crash. Returns false if it was killed before.
    pub(crate) fn lose(&self) -> bool {
        let before = std::mem::replace(&mut self.state().killed, true);
        if !before {
            self.order(Order::Kill);
            self.bell.notify_waiters();
        }
        !before
    }

    /// Returns the reason for which the worker's runs are cut off, after its process has ended
    /// under these limits.
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

    /// Returns true if the worker shall end.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.state().phase, Phase::Retiring | Phase::Ending)
    }

    /// Returns the time since the last call.
    pub(crate) fn silence(&self) -> Duration {
        self.state().heard.elapsed()
    }
}

/// Returns the end of a process as a text. For a signal, the guard's exit status is 128 plus its
/// number, as that of shells.
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

    /// The fleet kills a worker at every tick, ten times a second, until its process is gone. The
    /// process gets the order only once.
    #[test]
    fn a_worker_is_ended_once() {
        let (orders, mut inbox) = mpsc::unbounded_channel();
        let worker = Worker::new("e", 0, FREE, orders);
        assert!(worker.lose());
        assert!(!worker.lose() && !worker.kill());
        assert_eq!(inbox.try_recv(), Ok(Order::Kill));
        assert!(inbox.try_recv().is_err());
    }

    /// A worker that still runs an ended run of a job does not get the next run. An order to stop
    /// the earlier run does not apply to the next one.
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
