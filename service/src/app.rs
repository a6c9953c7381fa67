//! What every request handler sees of the running service.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::auth::Keys;
use crate::balancer::Balancer;
use crate::billing::meter::Meter;
use crate::faults::Faults;
use crate::ids;
use crate::jobs::queue::Queue;
use crate::jobs::rates::Rates;
use crate::jobs::record::{Job, State};
use crate::lease::Leases;
use crate::log::{self, Log, LogLevel};
use crate::metrics::RequestCounts;
use crate::options::Options;
use crate::pods::change::{self, Action};
use crate::pods::model::Pod;
use crate::pods::run::Phase;
use crate::pods::runner::PodRunner;
use crate::problem::Problem;
use crate::quirks::{Quirk, Quirks};
use crate::rate::{Quotas, Rate};
use crate::readiness::Readiness;
use crate::resources::endpoint::{self, Api, Endpoint, FlashBoot};
use crate::resources::volume;
use crate::store::{Store, Tx, objects};
use crate::workers::container::Engine;
use crate::workers::fleet::Fleet;
use crate::workers::logs;
use crate::workers::usage::Usage;

/// The running service.
pub(crate) struct App {
    pub(crate) store: Store,
    /// The keys that clients may show.
    pub(crate) keys: Keys,
    pub(crate) quirks: Quirks,
    pub(crate) faults: Faults,
    pub(crate) rate: Rate,
    pub(crate) access: Arc<AccessLog>,
    pub(crate) leases: Arc<Leases>,
    /// Fires when the service is told to stop: no job is begun any more.
    pub(crate) closing: CancellationToken,
    /// Fires when the service begins to drain: long polls answer early.
    pub(crate) draining: CancellationToken,
    pub(crate) log: Log,
    pub(crate) options: Options,
    /// The jobs.
    pub(crate) queue: Queue,
    /// The workers.
    pub(crate) fleet: Fleet,
    /// The engine of their containers, where they run in some.
    pub(crate) engine: Option<Engine>,
    /// The pods that run.
    pub(crate) pod_runner: PodRunner,
    /// The requests that wait for workers.
    pub(crate) balancer: Balancer,
    /// The meter of what workers and volumes cost.
    pub(crate) meter: Meter,
    /// The sizes of what the network volumes hold.
    pub(crate) usage: Usage,
    /// The numbers and times of requests.
    pub(crate) requests: RequestCounts,
    /// The last known state of the store: does it take writes?
    pub(crate) readiness: Readiness,
    /// How many requests the job API takes.
    pub(crate) rates: Rates,
    /// The address of the job API, as clients call it.
    pub(crate) queue_url: String,
    /// The address of the job API, as workers call it: without TLS, for they are on this machine.
    pub(crate) worker_url: String,
    /// Counts lists, for the quirk that leaves one object out of every other list.
    pub(crate) lists: AtomicU64,
}

impl App {
    /// The address of the service.
    pub(crate) fn base_url(&self) -> &str {
        self.queue_url.strip_suffix("/v2").unwrap_or(&self.queue_url)
    }

    /// Counts a request of the management APIs, and refuses it above their rate.
    pub(crate) fn take_rate(&self) -> (Result<(), Problem>, Quotas) {
        let quotas = self.rate.take();
        (quotas.check().inspect_err(|_| self.requests.refused("management")), quotas)
    }

    /// Logs an event for people.
    pub(crate) fn say(&self, line: &str) {
        log::write(&self.log, LogLevel::Info, line);
    }

    /// Logs something that went wrong and that the service deals with.
    pub(crate) fn warn(&self, line: &str) {
        log::write(&self.log, LogLevel::Warn, line);
    }
}

/// A worker as the management APIs show it.
#[derive(Debug, Clone)]
pub(crate) struct WorkerPod {
    pub(crate) id: String,
    pub(crate) desired_status: &'static str,
}

impl App {
    /// The workers of an endpoint that live.
    pub(crate) fn pods(&self, endpoint: &str) -> Vec<WorkerPod> {
        self.fleet.pods(endpoint)
    }

    /// Runs a write that changes endpoints or what their workers run. The autoscaler hears of it.
    pub(crate) async fn change<T, W>(self: &Arc<Self>, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.write_and_tell(work, Self::endpoints_changed).await
    }

    /// Runs a write that changes pods. The runner hears of it.
    pub(crate) async fn change_pods<T, W>(self: &Arc<Self>, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.write_and_tell(work, |app| app.pod_runner.pods_changed()).await
    }

    /// Runs a write, and `tell` with it: a client that has left takes the rest of its request along.
    async fn write_and_tell<T, W>(self: &Arc<Self>, work: W, tell: fn(&Self)) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        let app = Arc::clone(self);
        let write = move |tx: &Tx<'_>| {
            let done = work(tx)?;
            tx.after(move || tell(&app));
            Ok(done)
        };
        self.store.write(write).await
    }

    /// Changes the condition of a pod.
    pub(crate) async fn act_on_pod(
        self: &Arc<Self>,
        id: &str,
        action: Action,
    ) -> Result<Pod, Problem> {
        let run = self.pod_runner.run_of(id);
        let has_failed = run.is_some_and(|run| run.phase() == Phase::Failed);
        let id = id.to_owned();
        let pod = self.change_pods(move |tx| change::act(tx, &id, action, has_failed)).await?;
        self.say(&format!("pod {}: {}", pod.id, pod.last_status_change));
        Ok(pod)
    }

    /// Removes a pod with its volume, and waits a while until its process has ended.
    pub(crate) async fn delete_pod(self: &Arc<Self>, id: &str) -> Result<(), Problem> {
        let removed = id.to_owned();
        self.change_pods(move |tx| objects::delete::<Pod>(tx, &removed)).await?;
        self.pod_runner.wait_until_gone(self, id).await;
        Ok(())
    }

    /// Tells the autoscaler that endpoints or their templates have changed.
    pub(crate) fn endpoints_changed(&self) {
        self.fleet.endpoints_changed();
        self.queue.projection.scale.notify_one();
    }

    /// Tells a worker, if it lives, that a job of its has ended without it.
    pub(crate) fn stop_job(&self, worker: Option<&str>, job: &str) {
        if let Some(worker) = worker.and_then(|id| self.fleet.worker(id)) {
            worker.stop_job(job);
        }
    }

    /// Tells what became of a job whose run was cut off. One that failed for it is the cause of the
    /// crashes of its workers: the next worker need not wait.
    pub(crate) fn run_was_cut_off(&self, job: &Job, why: &str) {
        if job.state == State::Failed {
            self.fleet.forget_crashes(&job.endpoint);
            let error = job.error.as_deref().unwrap_or(why);
            self.warn(&format!("job {} failed: {error}", job.id));
        } else {
            self.warn(&format!("job {} goes back into the queue: {why}", job.id));
        }
    }

    /// Removes an endpoint with its jobs.
    pub(crate) fn delete_endpoint(
        self: &Arc<Self>,
        tx: &Tx<'_>,
        id: &str,
        api: Api,
    ) -> Result<(), Problem> {
        endpoint::delete(tx, id, api)?;
        let mut workers = self.queue.forget(tx, id)?;
        let (app, id) = (Arc::clone(self), id.to_owned());
        tx.after(move || {
            workers.extend(app.fleet.take_past_workers(&id));
            for worker in &workers {
                logs::remove(&app.options.data, &id, worker);
            }
        });
        Ok(())
    }

    /// Removes a volume and its folder. The folder goes with the write: a client that has left takes
    /// the rest of its request along.
    pub(crate) async fn delete_volume(self: &Arc<Self>, id: &str) -> Result<(), Problem> {
        let (app, id, runtime) = (Arc::clone(self), id.to_owned(), Handle::current());
        let (cleared, folder_is_gone) = oneshot::channel::<()>();
        let write = move |tx: &Tx<'_>| {
            volume::delete(tx, &id)?;
            tx.after(move || {
                runtime.spawn_blocking(move || {
                    app.remove_volume_folder(&id);
                    drop(cleared);
                });
            });
            Ok(())
        };
        self.store.write(write).await?;
        // Nothing is ever sent: the other end is dropped when all is done.
        drop(folder_is_gone.await);
        Ok(())
    }

    fn remove_volume_folder(&self, id: &str) {
        if !ids::is_plain(id) {
            // As the name of a folder it would lead elsewhere, and no worker has had it.
            return;
        }
        // A volume that no worker has mounted has none.
        drop(std::fs::remove_dir_all(self.options.data.join("volumes").join(id)));
        self.say(&format!("network volume {id} removed"));
    }

    /// The name of an endpoint as it reads back.
    pub(crate) fn shown_name(&self, endpoint: &Endpoint) -> String {
        let suffixed = self.quirks.has(Quirk::FbSuffix) && endpoint.flash_boot != FlashBoot::Off;
        if suffixed && !endpoint.name.ends_with("-fb") {
            return format!("{} -fb", endpoint.name);
        }
        endpoint.name.clone()
    }

    /// The id of the one account.
    #[expect(clippy::unused_self, reason = "an account belongs to a running service")]
    pub(crate) fn user_id(&self) -> &'static str {
        "user_000000000000000000000000001"
    }
}
