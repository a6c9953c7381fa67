//! A test of the life of jobs against a small model, with random sequences of calls, lost workers
//! and restarts.
//!
//! After every step each job is in the state of the model, the queue has the model's order, and the
//! counts are right. So no job is lost, no job is completed twice, and no state follows a state
//! that the documents do not allow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use serde_json::json;

use super::projection::{Projection, Tally};
use super::queue::{self, Drained, NewJob, Outcome, Queue, Taker};
use super::record::State;
use super::submission::Submission;
use super::upkeep::Cutoff;
use crate::log::Log;
use crate::problem::{Kind, Problem};
use crate::resources::endpoint::{self, Endpoint};
use crate::store::{Store, Tx, objects};

fn silent() -> Log {
    Arc::new(|_| {})
}

/// The steps of the test. A number selects one of the existing jobs or workers.
#[derive(Debug, Clone)]
enum Step {
    Submit { low: bool },
    Take { worker: u8, count: u8 },
    Finish { worker: u8, job: usize, well: bool },
    Progress { worker: u8, job: usize },
    Stream { worker: u8, job: usize },
    Drain { job: usize },
    Cancel { job: usize },
    Retry { job: usize },
    Purge,
    LoseWorker { worker: u8 },
    EndWorker { worker: u8 },
    LoseJob { worker: u8, job: usize },
    TimeOut { job: usize },
    Expire { job: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let worker = || 0u8..3;
    let job = || 0usize..24;
    prop_oneof![
        8 => any::<bool>().prop_map(|low| Step::Submit { low }),
        6 => (worker(), 1u8..4).prop_map(|(worker, count)| Step::Take { worker, count }),
        8 => (worker(), job(), any::<bool>())
            .prop_map(|(worker, job, well)| Step::Finish { worker, job, well }),
        2 => (worker(), job()).prop_map(|(worker, job)| Step::Progress { worker, job }),
        3 => (worker(), job()).prop_map(|(worker, job)| Step::Stream { worker, job }),
        2 => job().prop_map(|job| Step::Drain { job }),
        3 => job().prop_map(|job| Step::Cancel { job }),
        4 => job().prop_map(|job| Step::Retry { job }),
        1 => Just(Step::Purge),
        3 => worker().prop_map(|worker| Step::LoseWorker { worker }),
        1 => worker().prop_map(|worker| Step::EndWorker { worker }),
        1 => (worker(), job()).prop_map(|(worker, job)| Step::LoseJob { worker, job }),
        2 => job().prop_map(|job| Step::TimeOut { job }),
        1 => job().prop_map(|job| Step::Expire { job }),
        1 => Just(Step::Restart),
    ]
}

/// The model's knowledge of a job.
#[derive(Debug, Clone)]
struct Known {
    id: String,
    state: State,
    low: bool,
    position: usize,
    worker: Option<u8>,
    retries: i64,
    losses: i64,
    chunks: usize,
    webhooks: usize,
}

/// The service, and the model of its jobs.
struct World {
    folder: tempfile::TempDir,
    store: Store,
    queue: Queue,
    endpoint: String,
    jobs: Vec<Option<Known>>,
    positions: usize,
    tally: Tally,
}

impl World {
    async fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &silent()).unwrap();
        let endpoint = endpoint::blank();
        let id = endpoint.id.clone();
        store.write(move |tx| objects::insert::<Endpoint>(tx, &endpoint)).await.unwrap();
        let queue = Queue { projection: Arc::new(Projection::default()) };
        let tally = Tally::default();
        World { folder, store, queue, endpoint: id, jobs: Vec::new(), positions: 0, tally }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Queue, &Tx<'_>, &str) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (queue, endpoint) = (self.queue.clone(), self.endpoint.clone());
        self.store.write(move |tx| work(&queue, tx, &endpoint)).await
    }

    fn job(&mut self, number: usize) -> Option<&mut Known> {
        let count = self.jobs.len();
        self.jobs.get_mut(number % count.max(1))?.as_mut()
    }

    /// Returns the id of an existing job, or an id that never existed.
    fn id(&mut self, number: usize) -> String {
        self.job(number).map_or("nothing".to_owned(), |job| job.id.clone())
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Submit { low } => self.submit(low).await,
            Step::Take { worker, count } => self.take(worker, usize::from(count)).await,
            Step::Finish { worker, job, well } => self.finish(worker, job, well).await,
            Step::Progress { worker, job } => self.progress(worker, job).await,
            Step::Stream { worker, job } => self.stream(worker, job).await,
            Step::Drain { job } => self.drain(job).await,
            Step::Cancel { job } => self.cancel(job).await,
            Step::Retry { job } => self.retry(job).await,
            Step::Purge => self.purge().await,
            Step::LoseWorker { worker } => self.lose(worker, None, &lost()).await,
            Step::EndWorker { worker } => self.lose(worker, None, &Cutoff::Ordered).await,
            Step::LoseJob { worker, job } => self.lose(worker, Some(job), &lost()).await,
            Step::TimeOut { job } => self.time_out(job).await,
            Step::Expire { job } => self.expire(job).await,
            Step::Restart => self.restart().await,
        }
    }

    async fn submit(&mut self, low: bool) {
        let body = json!({ "input": { "n": self.jobs.len() }, "policy": { "lowPriority": low },
            "webhook": "http://localhost:1/" });
        let submission = Submission::parse(body.to_string().as_bytes()).unwrap();
        let submit = move |queue: &Queue, tx: &Tx<'_>, endpoint: &str| {
            queue.submit(tx, endpoint, &NewJob::new(submission, false, 1_000_000))
        };
        let job = self.write(submit).await.unwrap();
        self.positions += 1;
        self.jobs.push(Some(Known {
            id: job.id,
            state: State::InQueue,
            low,
            position: self.positions,
            worker: None,
            retries: 0,
            losses: 0,
            chunks: 0,
            webhooks: 0,
        }));
    }

    async fn take(&mut self, worker: u8, count: usize) {
        let taker = Taker {
            endpoint: self.endpoint.clone(),
            worker: worker.to_string(),
            alive: Arc::new(AtomicBool::new(true)),
            timeout_ms: None,
            held: Vec::new(),
        };
        let limit = i64::try_from(count).unwrap();
        let taken = self.write(move |queue, tx, _| queue.take(tx, &taker, limit)).await.unwrap();
        let taken: Vec<String> = taken.into_iter().map(|(id, _)| id).collect();
        let expected: Vec<String> = self.queued().into_iter().take(count).collect();
        assert_eq!(taken, expected, "the oldest first");
        for job in self.jobs.iter_mut().flatten().filter(|job| taken.contains(&job.id)) {
            (job.state, job.worker) = (State::InProgress, Some(worker));
        }
    }

    async fn finish(&mut self, worker: u8, number: usize, well: bool) {
        let id = self.id(number);
        let outcome =
            Outcome { output: Some("1".to_owned()), error: (!well).then(|| "no".to_owned()) };
        let by = worker.to_string();
        let done =
            self.write(move |queue, tx, _| queue.finish(tx, &by, &id, &outcome)).await.unwrap();
        let has = self.has(worker, number);
        assert_eq!(done.is_some(), has, "a job ends once, and by its own worker");
        if has {
            if well {
                self.tally.completed += 1;
            } else {
                self.tally.failed += 1;
            }
            let job = self.job(number).unwrap();
            job.state = if well { State::Completed } else { State::Failed };
            job.webhooks += 1;
        }
    }

    async fn progress(&mut self, worker: u8, number: usize) {
        let (id, by, has) = (self.id(number), worker.to_string(), self.has(worker, number));
        let noted = self.write(move |queue, tx, _| queue.progress(tx, &by, &id, Some("2"))).await;
        assert_eq!(noted, Ok(has));
    }

    async fn stream(&mut self, worker: u8, number: usize) {
        let (id, by, has) = (self.id(number), worker.to_string(), self.has(worker, number));
        let chunks = vec!["{}".to_owned(); 2];
        let noted = self.write(move |queue, tx, _| queue.stream(tx, &by, &id, &chunks)).await;
        assert_eq!(noted, Ok(has));
        if has {
            self.job(number).unwrap().chunks += 2;
        }
    }

    async fn drain(&mut self, number: usize) {
        let id = self.id(number);
        let drained =
            self.write(move |_, tx, endpoint| Queue::drain(tx, endpoint, &id, 1000)).await;
        match self.job(number) {
            Some(job) => {
                let Drained { state, run, chunks } = drained.unwrap();
                assert_eq!((state, chunks.len()), (job.state, std::mem::take(&mut job.chunks)));
                assert_eq!(run.retries, job.retries);
            }
            None => assert_eq!(drained.unwrap_err().kind, Kind::NotFound),
        }
    }

    async fn cancel(&mut self, number: usize) {
        let id = self.id(number);
        let done = self.write(move |queue, tx, endpoint| queue.cancel(tx, endpoint, &id)).await;
        match self.job(number) {
            None => assert_eq!(done.unwrap_err().kind, Kind::NotFound),
            Some(job) if job.state.is_final() && job.state != State::Cancelled => {
                assert_eq!(done.unwrap_err().kind, Kind::Invalid);
            }
            Some(job) => {
                assert_eq!(done.unwrap().state, State::Cancelled);
                job.state = State::Cancelled;
            }
        }
    }

    async fn retry(&mut self, number: usize) {
        let id = self.id(number);
        let done = self.write(move |queue, tx, endpoint| queue.retry(tx, endpoint, &id)).await;
        let highest = self.jobs.iter().flatten().map(|job| job.position).max().unwrap_or(0);
        match self.job(number) {
            None => assert_eq!(done.unwrap_err().kind, Kind::NotFound),
            Some(job) if !job.state.can_retry() => {
                assert_eq!(done.unwrap_err().kind, Kind::Invalid);
            }
            Some(job) => {
                let again = done.unwrap();
                assert_eq!((again.state, again.output, &again.id), (State::InQueue, None, &job.id));
                (job.state, job.position, job.chunks) = (State::InQueue, highest + 1, 0);
                (job.worker, job.losses) = (None, 0);
                self.tally.retried += 1;
                self.positions = self.positions.max(highest + 1);
            }
        }
    }

    async fn purge(&mut self) {
        let removed =
            self.write(|queue, tx, endpoint| queue.purge(tx, endpoint, i64::MAX)).await.unwrap();
        assert_eq!(removed, self.queued().len());
        self.forget(|job| job.state == State::InQueue);
    }

    /// Loses a worker with all of its jobs, or with the one job that the worker does not know of.
    async fn lose(&mut self, worker: u8, number: Option<usize>, cutoff: &Cutoff) {
        let by = worker.to_string();
        let only = number.map(|number| self.id(number));
        let (lost, why) = (only.clone(), cutoff.clone());
        let put_back = self
            .write(move |queue, tx, _| match &lost {
                None => queue.requeue(tx, &by, &why).map(|jobs| jobs.len()),
                Some(id) => {
                    queue.requeue_one(tx, &by, id, &why).map(|job| usize::from(job.is_some()))
                }
            })
            .await;
        let mut highest = self.jobs.iter().flatten().map(|job| job.position).max().unwrap_or(0);
        let mut chosen: Vec<&mut Known> = self.jobs.iter_mut().flatten().collect();
        chosen.retain(|job| {
            let is_meant = only.as_ref().is_none_or(|id| *id == job.id);
            is_meant && job.state == State::InProgress && job.worker == Some(worker)
        });
        chosen.sort_by_key(|job| job.position);
        assert_eq!(put_back, Ok(chosen.len()));
        for job in chosen {
            if matches!(cutoff, Cutoff::Ordered) {
                put_back_known(job, &mut self.tally);
                continue;
            }
            job.losses += 1;
            if job.losses == 3 {
                job.state = State::Failed;
                job.webhooks += 1;
                self.tally.failed += 1;
            } else {
                highest += 1;
                job.position = highest;
                put_back_known(job, &mut self.tally);
            }
        }
        self.positions = self.positions.max(highest);
    }

    async fn time_out(&mut self, number: usize) {
        let id = self.id(number);
        self.sweep_with(
            "update jobs set deadline_at = 1 where id = ?1 and state = 'IN_PROGRESS'",
            id,
        )
        .await;
        let running = self.job(number).filter(|job| job.state == State::InProgress);
        if let Some(job) = running {
            job.state = State::TimedOut;
            job.webhooks += 1;
            self.tally.failed += 1;
        }
    }

    async fn expire(&mut self, number: usize) {
        let id = self.id(number);
        self.sweep_with("update jobs set expires_at = 1 where id = ?1", id.clone()).await;
        self.forget(|job| job.id == id);
    }

    async fn sweep_with(&self, sql: &'static str, id: String) {
        let sweep = move |queue: &Queue, tx: &Tx<'_>, _: &str| {
            tx.conn.execute(sql, [id])?;
            queue.sweep(tx)
        };
        self.write(sweep).await.unwrap();
    }

    /// Ends the service and starts it again with the same folder.
    async fn restart(&mut self) {
        self.store.close();
        self.store = Store::open(self.folder.path(), &silent()).unwrap();
        let projection = self.store.read(Projection::load).await.unwrap();
        self.queue = Queue { projection: Arc::new(projection) };
        self.write(|queue, tx, _| queue.recover(tx)).await.unwrap();
        for job in self.jobs.iter_mut().flatten() {
            if job.state == State::InProgress {
                put_back_known(job, &mut self.tally);
            }
        }
    }

    fn has(&mut self, worker: u8, number: usize) -> bool {
        let has = |job: &mut Known| job.state == State::InProgress && job.worker == Some(worker);
        self.job(number).is_some_and(has)
    }

    fn forget(&mut self, gone: impl Fn(&Known) -> bool) {
        for job in &mut self.jobs {
            job.take_if(|job| gone(job));
        }
    }

    /// Returns the ids of the queued jobs in their order.
    fn queued(&self) -> Vec<String> {
        let queued = self.jobs.iter().flatten().filter(|job| job.state == State::InQueue);
        let ordered: BTreeMap<usize, String> =
            queued.map(|job| (job.position, job.id.clone())).collect();
        ordered.into_values().collect()
    }

    /// Asserts that the service agrees with the model.
    async fn check(&mut self) {
        let count = |state: State, low: bool| {
            let jobs = self.jobs.iter().flatten();
            jobs.filter(|job| job.state == state && (low || !job.low)).count()
        };
        let number = |count: usize| i64::try_from(count).unwrap();
        self.tally.in_queue = number(count(State::InQueue, true));
        self.tally.pressing = number(count(State::InQueue, false));
        self.tally.in_progress = number(count(State::InProgress, true));
        assert_eq!(self.queue.projection.tally(&self.endpoint), self.tally);
        let (endpoint, known) = (self.endpoint.clone(), self.jobs.clone());
        let compare = move |conn: &rusqlite::Connection| {
            let total: i64 = conn.query_row("select count(*) from jobs", [], |row| row.get(0))?;
            assert_eq!(usize::try_from(total), Ok(known.iter().flatten().count()));
            for job in known.iter().flatten() {
                let stored = queue::get(conn, &endpoint, &job.id)?;
                assert_eq!((stored.state, stored.retries), (job.state, job.retries), "{job:?}");
                let sql = "select count(*) from webhooks where job = ?1";
                let told: i64 = conn.query_row(sql, [&job.id], |row| row.get(0))?;
                assert_eq!(usize::try_from(told), Ok(job.webhooks), "one notice for each end");
            }
            Ok(())
        };
        self.store.read(compare).await.unwrap();
    }
}

fn lost() -> Cutoff {
    Cutoff::Lost("it ended".to_owned())
}

fn put_back_known(job: &mut Known, tally: &mut Tally) {
    (job.state, job.worker, job.chunks) = (State::InQueue, None, 0);
    job.retries += 1;
    tally.retried += 1;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn jobs_live_as_the_model_says(steps in prop::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.apply(step).await;
                world.check().await;
            }
        });
    }
}
