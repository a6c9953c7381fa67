//! The process of a worker, from its start until everything of it is removed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::container::Container;
use super::environment::{Environment, command, environment};
use super::fleet::Wanted;
use super::guard::TERMINATE;
use super::http_server::HttpServer;
use super::volumes::Places;
use super::worker::{Order, Worker};
use super::{health, logs};
use crate::app::App;
use crate::ids;
use crate::options::Options;
use crate::own_files::make_folder;
use crate::store::Tx;

/// The time for a worker's process to end after it was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a worker, waits until it is gone, and puts its jobs back into the queue. That is tried
/// until the store accepts it: no other code knows that these jobs do not run any more.
pub(crate) async fn supervise(
    app: Arc<App>,
    wanted: Arc<Wanted>,
    worker: Arc<Worker>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let ended = match start(&app, &wanted, &worker) {
        Ok(child) => {
            tokio::spawn(health::watch(Arc::clone(&app), Arc::clone(&worker)));
            let log = logs::path(&app.options.data, &worker.endpoint, &worker.id);
            accompany(&app.options, log, child, &mut orders).await
        }
        Err(error) => {
            app.warn(&format!("worker {} cannot start: {error}", worker.id));
            None
        }
    };
    worker.alive.store(false, SeqCst);
    worker.bell.notify_waiters();
    let (queue, id, cutoff) =
        (app.queue.clone(), worker.id.clone(), worker.cutoff(ended, app.options.worker_limits));
    let put_back = move |tx: &Tx<'_>| queue.requeue(tx, &id, &cutoff);
    let first = app.store.write(put_back.clone()).await;
    // The endpoint needs another worker, even if that write has failed.
    app.fleet.gone(&app, &worker, ended);
    // The tries end when the service drains: the next start puts all jobs in progress back anyway.
    let jobs = match first {
        Ok(jobs) => Some(jobs),
        Err(_) => app.store.write_at_last(&app.draining, put_back).await,
    };
    for job in jobs.iter().flatten() {
        app.run_was_cut_off(job, &format!("worker {} is gone", worker.id));
    }
    if let Some(engine) = &app.engine
        && let Err(answer) = engine.remove_left(&worker.id, ended).await
    {
        app.warn(&format!("the container of worker {} is not removed: {answer}", worker.id));
    }
}

fn start(app: &App, wanted: &Wanted, worker: &Worker) -> std::io::Result<Child> {
    let (options, data) = (&app.options, &app.options.data);
    let volumes = wanted.endpoint.volumes();
    refuse_paths(&[&[worker.endpoint.as_str()], &volumes[..]].concat())?;
    make_folder(&data.join("logs"))?;
    if wanted.endpoint.is_balanced() {
        // It is set only here, and only once.
        let _unset = worker.server.set(HttpServer::new(wanted)?);
    }
    let places = Places::make(wanted, data)?;
    let are_mounted =
        app.engine.is_none() && !places.mounts.is_empty() && app.fleet.can_mount(app, &places);
    let mut environment = environment(wanted, worker, app, &places, are_mounted)?;
    let command = match &app.engine {
        Some(engine) => {
            let container = container(options, wanted, worker, &places)?;
            engine.run(&container, &mut environment)?
        }
        None => command(wanted.template.as_ref(), options),
    };
    spawn(options, &command, environment)
}

/// Starts a command through the guard, with an environment and a process group of its own.
pub(crate) fn spawn(
    options: &Options,
    command: &[OsString],
    environment: Environment,
) -> std::io::Result<Child> {
    let mut line = options.worker_guard.iter().chain(command);
    let Some(program) = line.next() else {
        return Err(std::io::Error::other("there is no command, and no echo worker"));
    };
    Command::new(program)
        .args(line)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Returns the container of a worker.
fn container<'a>(
    options: &Options,
    wanted: &'a Wanted,
    worker: &'a Worker,
    places: &Places,
) -> std::io::Result<Container<'a>> {
    let template = wanted.template.as_ref();
    let template = template.ok_or_else(|| std::io::Error::other("the endpoint has no template"))?;
    let has_processors = wanted.endpoint.compute_type == "CPU";
    Ok(Container {
        id: &worker.id,
        template,
        mounts: places.container_mounts(),
        processors: has_processors.then_some(wanted.endpoint.vcpu_count),
        limits: options.worker_limits,
    })
}

/// Refuses ids that as file names would lead to other folders: the store may have come with a
/// repository.
pub(crate) fn refuse_paths(ids: &[&str]) -> std::io::Result<()> {
    match ids.iter().find(|id| !ids::is_plain(id)) {
        Some(id) => Err(std::io::Error::other(format!("{id:?} is no id of this service"))),
        None => Ok(()),
    }
}

/// Writes the output of a process into its log, and carries out orders until the process has ended.
pub(crate) async fn accompany(
    options: &Options,
    log: PathBuf,
    mut child: Child,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<ExitStatus> {
    if let Some(output) = child.stdout.take() {
        tokio::spawn(logs::keep(output, log.clone()));
    }
    if let Some(output) = child.stderr.take() {
        tokio::spawn(logs::keep(output, log));
    }
    let mut pipe = child.stdin.take();
    let mut killed = false;
    loop {
        let limit = if killed { KILL_TIMEOUT } else { Duration::MAX };
        let order = tokio::select! {
            ended = child.wait() => return ended.ok(),
            order = orders.recv() => order.unwrap_or(Order::Kill),
            () = tokio::time::sleep(limit.min(Duration::from_hours(24 * 365))) => Order::Kill,
        };
        match order {
            Order::Terminate if options.worker_guard.is_empty() => signal(&child),
            Order::Terminate => ask(pipe.as_mut()).await,
            Order::Kill if killed || options.worker_guard.is_empty() => {
                drop(child.start_kill());
                killed = true;
            }
            // The guard notices the end of the pipe, and kills everything.
            Order::Kill => {
                drop(pipe.take());
                killed = true;
            }
        }
    }
}

async fn ask(pipe: Option<&mut ChildStdin>) {
    if let Some(pipe) = pipe {
        // A guard that is gone does not need the order.
        drop(pipe.write_all(TERMINATE).await);
        drop(pipe.flush().await);
    }
}

fn signal(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _gone = kill_process_group(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_would_lead_elsewhere_start_no_worker() {
        assert!(refuse_paths(&["p4k2m9x1c7v3b8", "vol1234567"]).is_ok());
        for id in ["..", "../../other", "/tmp", ""] {
            assert!(refuse_paths(&["p4k2m9x1c7v3b8", id]).is_err(), "{id}");
        }
    }
}
