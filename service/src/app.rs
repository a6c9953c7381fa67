//! The state of the running service, which every request handler gets.

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
    /// Fires when the service is told to stop. From then on no job is begun.
    pub(crate) closing: CancellationToken,
    /// Fires when the service begins to drain. From then on long polls answer early.
    pub(crate) draining: CancellationToken,
    pub(crate) log: Log,
    pub(crate) options: Options,
    /// The jobs.
    pub(crate) queue: Queue,
    /// The workers.
    pub(crate) fleet: Fleet,
    /// The engine of the workers' containers; `None` if workers are plain processes.
    pub(crate) engine: Option<Engine>,
    /// The pods that run.
    pub(crate) pod_runner: PodRunner,
    /// The requests that wait for workers.
    pub(crate) balancer: Balancer,
    /// The meter of the cost of workers, pods and volumes.
    pub(crate) meter: Meter,
    /// The sizes of the files in the network volumes.
    pub(crate) usage: Usage,
    /// The numbers and times of requests.
    pub(crate) requests: RequestCounts,
    /// The result of the last test write: true if the store takes writes.
    pub(crate) readiness: Readiness,
    /// The rates of the job API: its limits and the requests that count against them.
    pub(crate) rates: Rates,
    /// The address of the job API for clients.
    pub(crate) queue_url: String,
    /// The address of the job API, as workers call it. It has no TLS, because the workers are on
    /// this machine.
    pub(crate) worker_url: String,
    /// The number of lists answered so far, for the quirk that leaves one object out of every other
    /// list.
    pub(crate) lists: AtomicU64,
}

impl App {
    /// Returns the address of the service.
    pub(crate) fn base_url(&self) -> &str {
        self.queue_url.strip_suffix("/v2").unwrap_or(&self.queue_url)
    }

    /// Counts a request of the management APIs, and refuses a request above their rate.
    pub(crate) fn take_rate(&self) -> (Result<(), Problem>, Quotas) {
        let quotas = self.rate.take();
        (quotas.check().inspect_err(|_| self.requests.refused("management")), quotas)
    }

    /// Logs an event for people.
    pub(crate) fn say(&self, line: &str) {
        log::write(&self.log, LogLevel::Info, line);
    }

    /// Logs a failure that the service deals with by itself.
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
    /// Returns the live workers of an endpoint.
    pub(crate) fn pods(&self, endpoint: &str) -> Vec<WorkerPod> {
        self.fleet.pods(endpoint)
    }

    /// Runs a write that changes endpoints or the settings of their workers, and tells the
    /// autoscaler.
    pub(crate) async fn change<T, W>(self: &Arc<Self>, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.write_and_tell(work, Self::endpoints_changed).await
    }

    /// Runs a write that changes pods, and tells the pod runner.
    pub(crate) async fn change_pods<T, W>(self: &Arc<Self>, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(&Tx<'_>) -> Result<T, Problem> + Send + 'static,
    {
        self.write_and_tell(work, |app| app.pod_runner.pods_changed()).await
    }

    /// Runs a write, and calls `tell` right after its commit. A request is dropped when its client
    /// leaves, so a call of `tell` from the handler could be lost.
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

    /// Tells a worker, if it lives, that one of its jobs has ended, for example because it was
    /// cancelled.
    pub(crate) fn stop_job(&self, worker: Option<&str>, job: &str) {
        if let Some(worker) = worker.and_then(|id| self.fleet.worker(id)) {
            worker.stop_job(job);
        }
    }

    /// Logs the new state of a job whose run was cut off. A job that has failed was the cause of
    /// the crashes of its workers, so the next worker starts without a pause.
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

    /// Removes a volume and its folder, and waits until the folder is gone. The folder is removed
    /// right after the commit of the write: a request is dropped when its client leaves, so a
    /// handler might never come to it.
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
        // Nothing is ever sent: the sender is dropped when the folder is gone.
        drop(folder_is_gone.await);
        Ok(())
    }

    fn remove_volume_folder(&self, id: &str) {
        if !ids::is_plain(id) {
            // Such an id would lead outside of the folder of the volumes, and no worker has mounted
            // it.
            return;
        }
        // A volume that no worker has mounted has no folder.
        drop(std::fs::remove_dir_all(self.options.data.join("volumes").join(id)));
        self.say(&format!("network volume {id} removed"));
    }

    /// Returns the name of an endpoint as the APIs show it.
    pub(crate) fn shown_name(&self, endpoint: &Endpoint) -> String {
        let suffixed = self.quirks.has(Quirk::FbSuffix) && endpoint.flash_boot != FlashBoot::Off;
        if suffixed && !endpoint.name.ends_with("-fb") {
            return format!("{} -fb", endpoint.name);
        }
        endpoint.name.clone()
    }

    /// Returns the id of the account, of which there is only one.
    #[expect(clippy::unused_self, reason = "an account belongs to a running service")]
    pub(crate) fn user_id(&self) -> &'static str {
        "user_000000000000000000000000001"
    }
}
