//! The part of the jobs' state that is kept in memory: counts, and subscriptions to jobs.
//!
//! The projection follows the store and is never ahead of it: it changes only after a write is
//! committed, and is counted anew from the store at every start.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Notify, watch};

use super::record::{Job, State};
use crate::histogram::{Bounds, Histogram};
use crate::problem::Problem;

/// The counts of one endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) in_queue: i64,
    /// The jobs of `in_queue` that may scale workers up.
    pub(crate) pressing: i64,
    pub(crate) in_progress: i64,
    pub(crate) completed: i64,
    pub(crate) failed: i64,
    pub(crate) retried: i64,
}

/// A change of the state of one job.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) endpoint: String,
    pub(crate) job: String,
    pub(crate) low_priority: bool,
    pub(crate) from: Option<State>,
    pub(crate) to: Option<State>,
    /// True if the job was put back into the queue.
    pub(crate) retried: bool,
    /// The milliseconds that the job has waited, if its run begins; else `None`.
    pub(crate) delay_ms: Option<i64>,
    /// The milliseconds of all its runs, if the job ends; else `None`.
    pub(crate) execution_ms: Option<i64>,
    /// The ended job, if somebody waits for its end; else `None`.
    pub(crate) ended: Option<Arc<Job>>,
}

/// The counts and subscriptions of all endpoints.
#[derive(Default)]
pub(crate) struct Projection {
    endpoints: Mutex<HashMap<String, Arc<EndpointQueue>>>,
    waiters: Mutex<HashMap<String, Weak<Waiter>>>,
    /// The jobs whose results are being sent, each with the number of such answers.
    held: Mutex<HashMap<String, usize>>,
    /// The position of the job that entered a queue last.
    last_position: AtomicI64,
    /// Woken when the number of workers may have to change.
    pub(crate) scale: Notify,
    /// Woken when a webhook may be due.
    pub(crate) webhook: Notify,
}

/// The channel that all subscriptions to one job share.
#[derive(Default)]
struct Waiter {
    /// Notified at all news of the job.
    news: Notify,
    /// Changes when the job has ended or is removed; holds the ended job.
    end: watch::Sender<Ended>,
}

/// An ended job; `None` if the job is removed, or has not ended.
type Ended = Option<Arc<Job>>;

/// The queue of one endpoint.
pub(crate) struct EndpointQueue {
    tally: Mutex<Tally>,
    /// The times that jobs waited for their runs.
    pub(crate) delays: Histogram,
    /// The times of the runs of jobs.
    pub(crate) executions: Histogram,
    /// Woken once for each job that enters the queue.
    pub(crate) queued: Notify,
}

/// The bounds of the histograms of waiting and running times, in seconds.
const TIME_BOUNDS: Bounds =
    &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0];

impl Default for EndpointQueue {
    fn default() -> EndpointQueue {
        EndpointQueue {
            tally: Mutex::default(),
            delays: Histogram::new(TIME_BOUNDS),
            executions: Histogram::new(TIME_BOUNDS),
            queued: Notify::new(),
        }
    }
}

impl EndpointQueue {
    fn count(&self, change: &Move) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).count(change);
        let time = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        if let Some(ms) = change.delay_ms {
            self.delays.observe(time(ms));
        }
        if let Some(ms) = change.execution_ms {
            self.executions.observe(time(ms));
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Projection {
    /// Counts all jobs of the store.
    pub(crate) fn load(conn: &Connection) -> Result<Projection, Problem> {
        let projection = Projection::default();
        projection.last_position.store(last_position(conn)?, SeqCst);
        for Count { sql, add } in COUNTS {
            let mut statement = conn.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let queue = projection.endpoint(&row.get::<_, String>(0)?);
                add(&mut queue.tally.lock().unwrap_or_else(PoisonError::into_inner), row.get(1)?);
            }
        }
        let mut statement =
            conn.prepare("select endpoint, completed, failed, retried from tallies")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let queue = projection.endpoint(&row.get::<_, String>(0)?);
            let mut tally = queue.tally.lock().unwrap_or_else(PoisonError::into_inner);
            (tally.completed, tally.failed, tally.retried) =
                (row.get(1)?, row.get(2)?, row.get(3)?);
        }
        Ok(projection)
    }

    /// Returns the highest position that a job has had.
    pub(crate) fn last_position(&self) -> i64 {
        self.last_position.load(SeqCst)
    }

    /// Returns a position behind all jobs of all queues.
    pub(crate) fn next_position(&self) -> i64 {
        self.last_position.fetch_add(1, SeqCst) + 1
    }

    /// Returns the queue of an endpoint, and makes it if there is none.
    pub(crate) fn endpoint(&self, endpoint: &str) -> Arc<EndpointQueue> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = endpoints.get(endpoint) {
            return Arc::clone(queue);
        }
        Arc::clone(endpoints.entry(endpoint.to_owned()).or_default())
    }

    /// Returns the counts of an endpoint, without making a queue for it.
    pub(crate) fn tally(&self, endpoint: &str) -> Tally {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.get(endpoint).map(|queue| queue.tally()).unwrap_or_default()
    }

    /// Returns the queues of all endpoints that have or had jobs.
    pub(crate) fn all(&self) -> Vec<(String, Arc<EndpointQueue>)> {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().map(|(id, queue)| (id.clone(), Arc::clone(queue))).collect()
    }

    /// Returns the endpoints with queued jobs.
    pub(crate) fn pressed(&self) -> Vec<String> {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = endpoints.iter().filter(|(_, queue)| queue.tally().in_queue > 0);
        queued.map(|(endpoint, _)| endpoint.clone()).collect()
    }

    /// Returns the number of jobs in progress.
    pub(crate) fn running(&self) -> i64 {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.values().map(|queue| queue.tally().in_progress).sum()
    }

    /// Forgets a deleted endpoint, and wakes the subscriptions to its jobs.
    pub(crate) fn forget(&self, endpoint: &str, jobs: &[String]) {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).remove(endpoint);
        for waiter in jobs.iter().filter_map(|job| self.waiter(job)) {
            waiter.end.send_replace(None);
            waiter.news.notify_waiters();
        }
    }

    /// Applies committed changes of jobs to counts and subscriptions.
    pub(crate) fn moved(&self, moves: &[Move]) {
        for change in moves {
            let queue = self.endpoint(&change.endpoint);
            queue.count(change);
            if change.to == Some(State::InQueue) {
                queue.queued.notify_one();
            }
            let Some(waiter) = self.waiter(&change.job) else { continue };
            let has_ended = change.to.is_none_or(State::is_final);
            waiter.end.send_if_modified(|ended| {
                ended.clone_from(&change.ended);
                has_ended
            });
            waiter.news.notify_waiters();
        }
        self.scale.notify_one();
    }

    /// Wakes the subscriptions to a job that has news but has not ended.
    pub(crate) fn wake(&self, job: &str) {
        if let Some(waiter) = self.waiter(job) {
            waiter.news.notify_waiters();
        }
    }

    /// Returns true if there is a subscription to this job.
    pub(crate) fn is_awaited(&self, job: &str) -> bool {
        self.waiter(job).is_some()
    }

    fn waiter(&self, job: &str) -> Option<Arc<Waiter>> {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.get(job).and_then(Weak::upgrade)
    }

    /// Keeps a job in the store while its result is sent, even beyond its retention.
    pub(crate) fn hold(self: &Arc<Self>, job: &str) -> Held {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held.entry(job.to_owned()).or_default() += 1;
        Held { job: job.to_owned(), projection: Arc::clone(self) }
    }

    /// Returns true if the result of a job is being sent.
    pub(crate) fn is_held(&self, job: &str) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(job)
    }

    /// Subscribes to a job. A caller that subscribes before it reads the job misses no news.
    pub(crate) fn subscribe(self: &Arc<Self>, job: &str) -> Subscription {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let known = waiters.get(job).and_then(Weak::upgrade);
        let waiter = known.unwrap_or_else(|| {
            let waiter = Arc::<Waiter>::default();
            waiters.insert(job.to_owned(), Arc::downgrade(&waiter));
            waiter
        });
        let end = waiter.end.subscribe();
        let (job, projection) = (job.to_owned(), Arc::clone(self));
        Subscription { waiter: Some(waiter), end, job, projection }
    }
}

/// A count of jobs that is taken at a start. Its query uses an index that
/// contains only jobs of one state.
struct Count {
    /// Selects endpoints, and the number of jobs of each.
    sql: &'static str,
    add: fn(&mut Tally, i64),
}

const COUNTS: &[Count] = &[
    Count {
        sql: "select endpoint, count(*) from jobs where state = 'IN_QUEUE' group by 1",
        add: |tally, count| {
            tally.in_queue += count;
            tally.pressing += count;
        },
    },
    Count {
        sql: "select endpoint, count(*) from jobs where state = 'IN_QUEUE' and low_priority \
              group by 1",
        add: |tally, count| tally.pressing -= count,
    },
    Count {
        sql: "select endpoint, count(*) from jobs where state = 'IN_PROGRESS' group by 1",
        add: |tally, count| tally.in_progress += count,
    },
];

/// Returns the highest position of the jobs that are in a queue, or may come back into one.
fn last_position(conn: &Connection) -> Result<i64, Problem> {
    let sql = "select max(\
               coalesce((select max(position) from jobs where state = 'IN_QUEUE'), 0), \
               coalesce((select max(position) from jobs where state = 'IN_PROGRESS'), 0))";
    Ok(conn.query_row(sql, [], |row| row.get(0))?)
}

impl Tally {
    fn count(&mut self, change: &Move) {
        let pressing = i64::from(!change.low_priority);
        match change.from {
            Some(State::InQueue) => {
                self.in_queue -= 1;
                self.pressing -= pressing;
            }
            Some(State::InProgress) => self.in_progress -= 1,
            _ => {}
        }
        match change.to {
            Some(State::InQueue) => {
                self.in_queue += 1;
                self.pressing += pressing;
            }
            Some(State::InProgress) => self.in_progress += 1,
            Some(State::Completed) => self.completed += 1,
            Some(State::Failed | State::TimedOut) => self.failed += 1,
            Some(State::Cancelled) | None => {}
        }
        self.retried += i64::from(change.retried);
    }
}

/// Keeps a job in the store until this is dropped.
pub(crate) struct Held {
    job: String,
    projection: Arc<Projection>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.projection.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.job) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.job);
            }
        }
    }
}

/// A subscription to one job. The projection forgets it when this is dropped.
pub(crate) struct Subscription {
    waiter: Option<Arc<Waiter>>,
    end: watch::Receiver<Ended>,
    job: String,
    projection: Arc<Projection>,
}

impl Subscription {
    /// Returns the notification of news of the job.
    pub(crate) fn news(&self) -> &Notify {
        &self.waiter.as_deref().expect("it is taken when dropped only").news
    }

    /// Waits until the job has ended or is removed, counted from the beginning of the subscription
    /// or from the last call of this. Returns the ended job; `None` if it is not known.
    pub(crate) async fn end(&mut self) -> Option<Arc<Job>> {
        // The sender lives as long as this subscription.
        drop(self.end.changed().await);
        self.end.borrow_and_update().clone()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut waiters = self.projection.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.waiter.take());
        if waiters.get(&self.job).is_some_and(|waiter| waiter.strong_count() == 0) {
            waiters.remove(&self.job);
        }
    }
}
