//! The process of a worker, from its start to its last trace.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::environment::{command, environment, volume_folder};
use super::fleet::Wanted;
use super::guard::TERMINATE;
use super::logs;
use super::worker::{Order, Worker};
use crate::app::App;

/// How long the process of a worker may take to go after it was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a worker and stays with it until it is gone; puts back what it had.
pub(crate) async fn supervise(
    app: Arc<App>,
    wanted: Arc<Wanted>,
    worker: Arc<Worker>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let ended = match start(&app, &wanted, &worker) {
        Ok(child) => accompany(&app, &worker, child, &mut orders).await,
        Err(error) => {
            app.say(&format!("worker {} cannot start: {error}", worker.id));
            None
        }
    };
    worker.alive.store(false, SeqCst);
    worker.bell.notify_waiters();
    let (queue, id) = (app.queue.clone(), worker.id.clone());
    let put_back = app.store.write(move |tx| queue.requeue(tx, &id)).await.unwrap_or_default();
    for job in &put_back {
        app.say(&format!("job {} goes back into the queue: worker {} is gone", job.id, worker.id));
    }
    app.fleet.gone(&app, &worker, ended);
}

fn start(app: &App, wanted: &Wanted, worker: &Worker) -> std::io::Result<Child> {
    let (options, data) = (&app.options, &app.options.data);
    std::fs::create_dir_all(data.join("logs"))?;
    for volume in wanted.endpoint.volumes() {
        std::fs::create_dir_all(volume_folder(data, volume))?;
    }
    let mut line = options.worker_guard.clone();
    line.extend(command(wanted, options));
    let Some((program, arguments)) = line.split_first() else {
        return Err(std::io::Error::other(
            "the template has no command, and there is no echo worker",
        ));
    };
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment(wanted, worker, options, &app.queue_url))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Carries out orders until the process has ended.
async fn accompany(
    app: &App,
    worker: &Worker,
    mut child: Child,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<ExitStatus> {
    let log = logs::path(&app.options.data, &worker.endpoint, &worker.id);
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
            Order::Terminate if app.options.worker_guard.is_empty() => signal(&child),
            Order::Terminate => ask(pipe.as_mut()).await,
            Order::Kill if killed || app.options.worker_guard.is_empty() => {
                drop(child.start_kill());
                killed = true;
            }
            // The guard sees the end of the pipe and kills everything.
            Order::Kill => {
                drop(pipe.take());
                killed = true;
            }
        }
    }
}

async fn ask(pipe: Option<&mut ChildStdin>) {
    if let Some(pipe) = pipe {
        // A guard that is gone needs no order.
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
