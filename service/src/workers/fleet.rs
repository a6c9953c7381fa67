//! All workers of the service: the live ones, the wanted number of them, and the code that starts
//! and ends them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use super::counts::Counts;
use super::guard::CAN_MOUNT;
use super::logs;
use super::process::supervise;
use super::scale::{Load, wanted};
use super::volumes::Places;
use super::worker::{Phase, Worker};
use crate::app::{App, WorkerPod};
use crate::auth::same;
use crate::billing;
use crate::jobs::queue;
use crate::jobs::upkeep::Cutoff;
use crate::problem::Problem;
use crate::resources::endpoint::{Endpoint, TIMEOUT_DEFAULT_MS};
use crate::resources::secret;
use crate::resources::template::Template;
use crate::store::{Tx, objects};

/// After the endpoints were read, they are not read again for so many times the time that it took.
const RELOAD_SHARE: u32 = 10;

/// The most workers of an endpoint whose logs are kept.
const LOGS_MAX: usize = 50;

/// The longest pause after crashes, as a multiple of the first one.
const PAUSE_MAX: u32 = 60;

/// The time for a worker to stop a job that has ended, before the worker is killed.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// An endpoint with the template of its workers, as it was last read from the store.
pub(crate) struct Wanted {
    pub(crate) endpoint: Endpoint,
    pub(crate) template: Option<Template>,
}

impl Wanted {
    /// Returns the value of a variable that the endpoint sets, else the template.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let of_template = || self.template.as_ref()?.env.get(name);
        self.endpoint.env.get(name).or_else(of_template).map(String::as_str)
    }
}

/// All workers of the service.
#[derive(Default)]
pub(crate) struct Fleet {
    state: Mutex<State>,
    /// True if endpoints or templates have changed since they were read.
    stale: AtomicBool,
    /// The time before which the endpoints are not read again: reading takes the longer the more
    /// there are.
    next_reload: Mutex<Option<Instant>>,
    /// True if workers can have mounts of their own. Determined when the first worker needs a
    /// mount.
    can_mount: OnceLock<bool>,
    /// The links that replace mounts on a machine without mount namespaces.
    links: Mutex<Vec<PathBuf>>,
    /// Notified whenever a worker is gone.
    gone: Notify,
    /// Notified whenever a worker starts or stops taking requests.
    pub(crate) rotation: Notify,
}

#[derive(Default)]
struct State {
    wanted: BTreeMap<String, Arc<Wanted>>,
    workers: BTreeMap<String, Arc<Worker>>,
    crashes: HashMap<String, Crashes>,
    /// The endpoints with a least number of workers above 0.
    always_on: Vec<String>,
    /// The latest workers of each endpoint, including ended ones, whose logs are kept.
    ever: HashMap<String, VecDeque<String>>,
}

/// The crashes of an endpoint's workers in a row, and the end of the pause after them.
#[derive(Clone, Copy)]
struct Crashes {
    count: u32,
    until: Instant,
}

impl Fleet {
    /// Makes the next tick read the endpoints from the store.
    pub(crate) fn endpoints_changed(&self) {
        self.stale.store(true, SeqCst);
    }

    /// Returns the worker of this endpoint with this id, if one of the tokens is its own.
    pub(crate) fn known(&self, endpoint: &str, id: &str, tokens: &[&str]) -> Option<Arc<Worker>> {
        let worker = self.state().workers.get(id).map(Arc::clone)?;
        let own = |token: &&str| same(token.as_bytes(), worker.token.as_bytes());
        (worker.endpoint == endpoint && tokens.iter().any(own)).then_some(worker)
    }

    /// Returns the worker with this id; `None` if it does not live.
    pub(crate) fn worker(&self, id: &str) -> Option<Arc<Worker>> {
        self.state().workers.get(id).map(Arc::clone)
    }

    /// Returns an endpoint with its template, as they were last read; `None` if it is not known.
    pub(crate) fn wanted(&self, endpoint: &str) -> Option<Arc<Wanted>> {
        self.state().wanted.get(endpoint).map(Arc::clone)
    }

    /// Returns the number of requests that the workers of an endpoint handle; of all workers for
    /// `None`.
    pub(crate) fn requests(&self, endpoint: Option<&str>) -> usize {
        let workers = endpoint.map_or_else(|| self.all(), |id| self.workers_of(id));
        workers.iter().map(|worker| worker.state().requests).sum()
    }

    /// Returns the execution timeout for the jobs of an endpoint that have none of their own, in
    /// milliseconds; `None` means no limit.
    pub(crate) fn timeout_ms(&self, endpoint: &str) -> Option<i64> {
        let state = self.state();
        let set =
            state.wanted.get(endpoint).and_then(|wanted| wanted.endpoint.execution_timeout_ms);
        Some(set.unwrap_or(TIMEOUT_DEFAULT_MS)).filter(|ms| *ms > 0)
    }

    /// Returns the workers of an endpoint as the management APIs show them.
    pub(crate) fn pods(&self, endpoint: &str) -> Vec<WorkerPod> {
        let workers = self.workers_of(endpoint);
        let shown = |worker: &Arc<Worker>| WorkerPod {
            id: worker.id.clone(),
            desired_status: if worker.is_leaving() { "EXITED" } else { "RUNNING" },
        };
        workers.iter().map(shown).collect()
    }

    /// Returns true if workers can have mounts of their own. If not, links the first volume to its
    /// path, unless something else has that path.
    pub(crate) fn can_mount(&self, app: &App, places: &Places) -> bool {
        let can = *self.can_mount.get_or_init(|| {
            let can = probe(&app.options.worker_guard);
            if !can {
                app.say(
                    "this machine allows no mount namespaces: workers find their network volume by a \
                     link at /runpod-volume where one can be made, else by RUNPOD_VOLUME",
                );
            }
            can
        });
        if !can && let Some(link) = places.link() {
            self.links.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        }
        can
    }

    /// Returns the number of an endpoint's workers in each condition.
    pub(crate) fn counts(&self, endpoint: &str) -> Counts {
        let mut counts = Counts::of(&self.workers_of(endpoint));
        let crashes = self.state().crashes.get(endpoint).copied();
        if let Some(crashes) = crashes.filter(|crashes| crashes.until > Instant::now()) {
            counts.unhealthy = counts.unhealthy.max(1);
            counts.throttled = usize::from(crashes.count > 1);
        }
        counts
    }

    /// Removes and returns the remembered workers of a deleted endpoint.
    pub(crate) fn take_past_workers(&self, endpoint: &str) -> Vec<String> {
        self.state().ever.remove(endpoint).unwrap_or_default().into()
    }

    /// Forgets the crashes of an endpoint's workers, so that the next worker starts without a
    /// pause.
    pub(crate) fn forget_crashes(&self, endpoint: &str) {
        self.state().crashes.remove(endpoint);
    }

    /// Goes through all workers once: replaces, starts, retires and kills them as needed.
    pub(crate) async fn tick(&self, app: &Arc<App>) -> Result<(), Problem> {
        let due = self.next_reload.lock().unwrap_or_else(PoisonError::into_inner).take();
        let may_reload = due.is_none_or(|due| due <= Instant::now());
        if may_reload && self.stale.swap(false, SeqCst) {
            let started = Instant::now();
            self.reload(app).await.inspect_err(|_| self.endpoints_changed())?;
            let due = Instant::now() + started.elapsed() * RELOAD_SHARE;
            *self.next_reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
        } else {
            *self.next_reload.lock().unwrap_or_else(PoisonError::into_inner) = due;
        }
        self.look_after(app).await?;
        let active: Vec<_> = {
            let mut pressed = app.queue.projection.pressed();
            pressed.extend(app.balancer.pressed());
            let state = self.state();
            let staffed = state.workers.values().map(|worker| &worker.endpoint);
            // Other endpoints have neither workers nor jobs, and need nothing. In a large account
            // they are most.
            let ids: BTreeSet<&String> = staffed.chain(&state.always_on).chain(&pressed).collect();
            ids.into_iter().filter_map(|id| state.wanted.get(id)).map(Arc::clone).collect()
        };
        for wanted in active {
            self.scale(app, wanted).await?;
        }
        Ok(())
    }

    /// Kills all workers, and waits until they are gone.
    pub(crate) async fn end(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        self.state().wanted.clear();
        while Instant::now() < deadline {
            let gone = self.gone.notified();
            let workers: Vec<_> = self.state().workers.values().map(Arc::clone).collect();
            if workers.is_empty() {
                self.remove_links();
                return;
            }
            for worker in &workers {
                worker.kill();
            }
            drop(tokio::time::timeout(Duration::from_millis(100), gone).await);
        }
    }

    fn remove_links(&self) {
        for link in self.links.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _gone = std::fs::remove_file(link);
        }
    }

    /// Removes a worker whose process has ended, and counts the end as a crash if it was one.
    pub(crate) fn gone(&self, app: &App, worker: &Worker, ended: Option<ExitStatus>) {
        app.meter.count_worker(worker);
        let (asked, was_busy, leaving) = {
            let state = worker.state();
            let leaving = matches!(state.phase, Phase::Retiring | Phase::Ending);
            (state.asked, state.is_busy(), leaving)
        };
        let failed = ended.is_none_or(|status| !status.success());
        let crashed = !leaving && (failed || was_busy || !asked);
        let mut state = self.state();
        state.workers.remove(&worker.id);
        if crashed {
            let crashes = state.crashes.entry(worker.endpoint.clone());
            let crashes = crashes.or_insert(Crashes { count: 0, until: Instant::now() });
            let pause = 2u32.saturating_pow(crashes.count).min(PAUSE_MAX);
            crashes.count += 1;
            crashes.until = Instant::now() + app.options.timing.crash_pause * pause;
        }
        drop(state);
        let how = match ended {
            Some(status) => status.to_string(),
            None => "did not start".to_owned(),
        };
        let what = if crashed { "crashed" } else { "ended" };
        app.say(&format!("worker {} {what}: {how}", worker.id));
        self.gone.notify_waiters();
        self.rotation.notify_waiters();
        app.queue.projection.scale.notify_one();
    }

    /// Reads all endpoints with their templates from the store.
    async fn reload(&self, app: &App) -> Result<(), Problem> {
        let read = |conn: &rusqlite::Connection| {
            // Endpoints are read before templates. If a template changes between the two reads, its
            // workers get the new settings under the old version, and are replaced once more. In
            // the other order they would keep the old settings under the new version.
            let endpoints = objects::list::<Endpoint>(conn, 0)?;
            let templates = objects::list::<Template>(conn, 0)?;
            let templates: HashMap<String, Template> =
                templates.into_iter().map(|template| (template.id.clone(), template)).collect();
            let secrets = secret::values(conn)?;
            let wanted = endpoints.into_iter().map(|mut endpoint| {
                let mut template = templates.get(&endpoint.template_id).cloned();
                let environments = template.iter_mut().map(|template| &mut template.env);
                for env in environments.chain([&mut endpoint.env]) {
                    secret::fill(env, &secrets);
                }
                (endpoint.id.clone(), Arc::new(Wanted { endpoint, template }))
            });
            Ok(wanted.collect::<BTreeMap<_, _>>())
        };
        let wanted = app.store.read(read).await?;
        let mut state = self.state();
        state.crashes.retain(|endpoint, _| wanted.contains_key(endpoint));
        state.always_on = wanted
            .values()
            .filter(|wanted| wanted.endpoint.workers_min > 0)
            .map(|wanted| wanted.endpoint.id.clone())
            .collect();
        state.wanted = wanted;
        Ok(())
    }

    /// Kills workers that are silent, or whose endpoint is gone, and looks after the jobs of the
    /// others.
    async fn look_after(&self, app: &Arc<App>) -> Result<(), Problem> {
        // Only endpoints with workers are looked at, because most have none.
        let workers: Vec<(Arc<Worker>, Option<Arc<Wanted>>)> = {
            let state = self.state();
            let with_wanted = |worker: &Arc<Worker>| {
                (Arc::clone(worker), state.wanted.get(&worker.endpoint).map(Arc::clone))
            };
            state.workers.values().map(with_wanted).collect()
        };
        let timing = &app.options.timing;
        for (worker, wanted) in workers {
            let patience = match worker.state().phase {
                _ if worker.server.get().is_some() => timing.unhealthy,
                Phase::Starting => timing.worker_start,
                _ => timing.silence,
            };
            let Some(wanted) = wanted else {
                worker.kill();
                continue;
            };
            if worker.silence() > patience && !worker.is_leaving() {
                if worker.lose() {
                    app.warn(&format!("worker {} is silent; it is ended", worker.id));
                }
            } else {
                let no_workers = wanted.endpoint.workers_max == 0;
                self.look_after_jobs(app, &worker, no_workers).await?;
            }
        }
        Ok(())
    }

    /// Puts the jobs back into the queue that a worker does not name any more, and kills a worker
    /// that does not stop a job. With `forced`, a worker that shall end has only a limited time to
    /// finish its jobs.
    async fn look_after_jobs(
        &self,
        app: &Arc<App>,
        worker: &Arc<Worker>,
        forced: bool,
    ) -> Result<(), Problem> {
        let silence = app.options.timing.silence;
        let (stuck, unnamed, overdue) = {
            let state = worker.state();
            let stopped = |held: &super::worker::Held| held.stopped.map(|since| since.elapsed());
            let stuck = state.jobs.values().any(|held| stopped(held) > Some(STOP_GRACE));
            let unnamed = state
                .jobs
                .iter()
                .filter(|(_, held)| held.stopped.is_none() && held.seen.elapsed() > silence);
            let unnamed: Vec<String> = unnamed.map(|(id, _)| id.clone()).collect();
            let timing = &app.options.timing;
            let retires = |limit| state.retiring_since.is_some_and(|since| since.elapsed() > limit);
            let overdue = retires(timing.worker_stop);
            // A connection that client and worker keep open would keep the worker for ever.
            let serves_too_long =
                worker.server.get().is_some() && retires(timing.request + timing.worker_stop);
            let forced = forced || state.phase == Phase::Ending;
            (stuck, unnamed, overdue && forced || serves_too_long)
        };
        if (stuck || overdue) && worker.kill() {
            app.warn(&format!("worker {} does not stop; it is ended", worker.id));
        }
        for id in unnamed {
            let (queue, lost, job) = (app.queue.clone(), worker.id.clone(), id.clone());
            // If the store fails, the next tick tries again: the job is still among the worker's
            // jobs.
            let cutoff = Cutoff::Lost("it no longer names the job".to_owned());
            let write = move |tx: &Tx<'_>| queue.requeue_one(tx, &lost, &job, &cutoff);
            if let Some(job) = app.store.write(write).await? {
                app.run_was_cut_off(&job, &format!("worker {} has lost it", worker.id));
            }
            worker.let_go(&id);
        }
        if worker.is_leaving() {
            worker.retire();
        }
        Ok(())
    }

    /// Starts or retires workers until an endpoint has the wanted number.
    async fn scale(&self, app: &Arc<App>, wanted_here: Arc<Wanted>) -> Result<(), Problem> {
        let endpoint = &wanted_here.endpoint;
        let workers = self.workers_of(&endpoint.id);
        let mut tally = app.queue.projection.tally(&endpoint.id);
        if endpoint.is_balanced() {
            // Running requests count as well as waiting ones.
            let requests = app.balancer.waiting(&endpoint.id) + self.requests(Some(&endpoint.id));
            tally.pressing = i64::try_from(requests).unwrap_or(i64::MAX);
        }
        let stays = |worker: &&Arc<Worker>| !worker.is_leaving();
        for worker in workers.iter().filter(|worker| worker.version < endpoint.version) {
            worker.retire();
        }
        let live: Vec<_> = workers.iter().filter(stays).collect();
        let busy = live.iter().filter(|worker| worker.state().is_busy()).count();
        if tally.in_queue > 0 {
            // The notification for a queued job may have gone to a worker that was lost at that
            // moment.
            app.queue.projection.endpoint(&endpoint.id).queued.notify_one();
        }
        let is_queue = !endpoint.is_balanced();
        let waits = if is_queue && tally.pressing > 0 && endpoint.scaler_type == "QUEUE_DELAY" {
            let (id, count) = (endpoint.id.clone(), endpoint.workers_max.max(1));
            app.store.read(move |conn| queue::head_waits(conn, &id, count)).await?
        } else {
            Vec::new()
        };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let load = Load { tally, waits: &waits, busy: count(busy), live: count(live.len()) };
        let wanted_count = wanted(endpoint, load);
        let lacking = wanted_count - count(live.len());
        if lacking > 0 && !self.is_paused(&endpoint.id) && !app.closing.is_cancelled() {
            (0..lacking).for_each(|_| self.start(app, &wanted_here));
        } else if lacking < 0 {
            retire_surplus(endpoint, &live, wanted_count);
        }
        Ok(())
    }

    fn start(&self, app: &Arc<App>, wanted: &Arc<Wanted>) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let worker = {
            let endpoint = &wanted.endpoint;
            let price = billing::worker_price(endpoint);
            Arc::new(Worker::new(&endpoint.id, endpoint.version, price, orders))
        };
        app.say(&format!("worker {} starts for endpoint {}", worker.id, worker.endpoint));
        let mut state = self.state();
        state.workers.insert(worker.id.clone(), Arc::clone(&worker));
        let ever = state.ever.entry(worker.endpoint.clone()).or_default();
        ever.push_back(worker.id.clone());
        let forgotten = if ever.len() > LOGS_MAX { ever.pop_front() } else { None };
        drop(state);
        if let Some(forgotten) = forgotten {
            logs::remove(&app.options.data, &worker.endpoint, &forgotten);
        }
        tokio::spawn(supervise(Arc::clone(app), Arc::clone(wanted), worker, inbox));
    }

    fn is_paused(&self, endpoint: &str) -> bool {
        let state = self.state();
        state.crashes.get(endpoint).is_some_and(|crashes| crashes.until > Instant::now())
    }

    /// Returns every worker.
    pub(crate) fn all(&self) -> Vec<Arc<Worker>> {
        self.state().workers.values().map(Arc::clone).collect()
    }

    /// Returns the workers of an endpoint, in the order of their ids.
    pub(crate) fn workers_of(&self, endpoint: &str) -> Vec<Arc<Worker>> {
        let state = self.state();
        state
            .workers
            .values()
            .filter(|worker| worker.endpoint == endpoint)
            .map(Arc::clone)
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a guard process to test whether workers can have mounts of their own.
fn probe(guard: &[OsString]) -> bool {
    let Some((program, arguments)) = guard.split_first() else { return false };
    let mut asked = std::process::Command::new(program);
    asked.args(arguments).arg(CAN_MOUNT).env_clear().stdin(Stdio::null());
    asked.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Retires surplus workers: above the maximum at once, else those that were idle for longer than
/// the endpoint allows. The worker that has been idle longest goes first.
fn retire_surplus(endpoint: &Endpoint, live: &[&Arc<Worker>], wanted: i64) {
    let idle_limit = Duration::from_secs(u64::try_from(endpoint.idle_timeout).unwrap_or(0));
    let count = |count: i64| usize::try_from(count).unwrap_or(0);
    let mut by_idleness: Vec<_> = live
        .iter()
        .map(|worker| {
            let state = worker.state();
            let idle = !state.is_busy() && state.phase == Phase::Ready;
            (idle.then(|| state.idle_since.elapsed()), *worker)
        })
        .collect();
    by_idleness.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
    let above_max = live.len().saturating_sub(count(endpoint.workers_max));
    let surplus = live.len().saturating_sub(count(wanted));
    for (number, (idle, worker)) in by_idleness.into_iter().take(surplus).enumerate() {
        if number < above_max || idle.is_some_and(|idle| idle >= idle_limit) {
            worker.retire();
        }
    }
}
