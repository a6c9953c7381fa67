//! The runs of all pods, which follow the records in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::folders;
use super::model::Pod;
use super::process::supervise;
use super::run::Run;
use crate::app::App;
use crate::problem::Problem;
use crate::resources::{account, secret};
use crate::store::objects;

/// The time that the answer to a delete waits for the end of the process.
const DELETE_WAIT: Duration = Duration::from_secs(20);

/// The pause before a store that could not be read is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The running pods.
#[derive(Default)]
pub(crate) struct PodRunner {
    runs: Mutex<BTreeMap<String, Arc<Run>>>,
    /// Notified when records have changed, or when a run is over.
    changed: Notify,
    /// Notified when the runs have been brought in line with the records.
    settled: Notify,
}

impl PodRunner {
    /// Notes that records of pods have changed.
    pub(crate) fn pods_changed(&self) {
        self.changed.notify_one();
    }

    /// Returns the run of a pod; `None` if it does not run.
    pub(crate) fn run_of(&self, id: &str) -> Option<Arc<Run>> {
        self.runs().get(id).map(Arc::clone)
    }

    /// Returns every run.
    pub(crate) fn all(&self) -> Vec<Arc<Run>> {
        self.runs().values().map(Arc::clone).collect()
    }

    /// Forgets a run that is over.
    pub(super) fn ended(&self, run: &Run) {
        self.runs().remove(run.id());
        self.changed.notify_one();
    }

    /// Waits until the process and the folder of a deleted pod are gone, at most for
    /// [`DELETE_WAIT`].
    pub(crate) async fn wait_until_gone(&self, app: &App, id: &str) {
        let folder = folders::of(&app.options.data, id);
        let gone = async {
            loop {
                let settled = self.settled.notified();
                if self.run_of(id).is_none() && !folder.exists() {
                    return;
                }
                settled.await;
            }
        };
        // If the time is over, they are removed later.
        drop(tokio::time::timeout(DELETE_WAIT, gone).await);
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the runs that differ from their records, and begins those that are missing.
    async fn settle(&self, app: &Arc<App>) -> Result<(), Problem> {
        let read = |conn: &rusqlite::Connection| {
            let pods = objects::list::<Pod>(conn, 0)?;
            Ok((pods, secret::values(conn)?, account::ssh_keys(conn)?))
        };
        let (pods, secrets, keys) = app.store.read(read).await?;
        let mut known: BTreeSet<String> = pods.iter().map(|pod| pod.id.clone()).collect();
        let wanted: BTreeMap<String, Pod> =
            pods.into_iter().filter(Pod::is_wanted).map(|pod| (pod.id.clone(), pod)).collect();
        for run in self.all() {
            if wanted.get(run.id()).is_none_or(|pod| pod.version != run.pod.version) {
                run.stopping.cancel();
            }
            known.insert(run.id().to_owned());
        }
        for (id, mut pod) in wanted {
            let mut runs = self.runs();
            if runs.contains_key(&id) || app.closing.is_cancelled() {
                continue;
            }
            secret::fill(&mut pod.container.env, &secrets);
            let public_keys = pod.container.start_ssh && !keys.is_empty();
            let run = Arc::new(Run::new(pod, public_keys.then(|| keys.join("\n"))));
            runs.insert(id.clone(), Arc::clone(&run));
            drop(runs);
            app.say(&format!("pod {id} starts"));
            tokio::spawn(supervise(Arc::clone(app), run));
        }
        let data = app.options.data.clone();
        let removing = tokio::task::spawn_blocking(move || folders::remove_others(&data, &known));
        for id in removing.await.unwrap_or_default() {
            app.say(&format!("pod {id} removed"));
        }
        self.settled.notify_waiters();
        Ok(())
    }
}

/// Keeps the runs in line with the records until the service drains, and ends them then.
pub(crate) async fn run(app: Arc<App>) {
    let runner = &app.pod_runner;
    runner.pods_changed();
    loop {
        tokio::select! {
            () = app.draining.cancelled() => break,
            () = runner.changed.notified() => {}
        }
        // The store logs the failure.
        if runner.settle(&app).await.is_err() {
            tokio::time::sleep(PAUSE).await;
            runner.pods_changed();
        }
    }
    loop {
        let runs = runner.all();
        if runs.is_empty() {
            return;
        }
        for run in &runs {
            run.stopping.cancel();
        }
        runner.changed.notified().await;
    }
}
