//! The process of a pod: it is started, started again when it ends, and ended when the pod shall
//! stop.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use tokio::process::Child;
use tokio::sync::mpsc;

use super::folders::{self, PodFolders};
use super::model::Pod;
use super::run::{Phase, Run};
use crate::app::App;
use crate::workers::container::Container;
use crate::workers::environment::{assemble, command};
use crate::workers::limits::WorkerLimits;
use crate::workers::logs;
use crate::workers::process::{accompany, refuse_paths, spawn};
use crate::workers::worker::Order;

/// The time after its start within which the end of a process counts as a failure.
const SHORT: Duration = Duration::from_secs(10);

/// The failures in a row after which the process is not started again.
const FAILURES_MAX: u32 = 5;

/// The time for a process to end after it was asked to.
const STOP: Duration = Duration::from_secs(10);

/// The same time when the service ends.
const STOP_AT_END: Duration = Duration::from_secs(1);

/// Keeps the process of a pod running until the pod shall stop, or has failed too often.
pub(super) async fn supervise(app: Arc<App>, run: Arc<Run>) {
    let mut failures = 0;
    while !run.stopping.is_cancelled() {
        let began = Instant::now();
        let ended = run_once(&app, &run).await;
        remove_container(&app, run.id(), &ended).await;
        if run.stopping.is_cancelled() {
            break;
        }
        let how = match ended {
            Ok(status) => format!("ended with {status}"),
            Err(error) => format!("cannot start: {error}"),
        };
        failures = if began.elapsed() < SHORT { failures + 1 } else { 1 };
        if failures >= FAILURES_MAX {
            app.say(&format!("pod {} {how}, {failures} times in a row; it has failed", run.id()));
            app.meter.count_pod(&run);
            run.set_phase(Phase::Failed);
            run.stopping.cancelled().await;
            break;
        }
        app.say(&format!("pod {} {how}; it is started again", run.id()));
        run.set_phase(Phase::Starting);
        let pause = app.options.timing.crash_pause * 2u32.saturating_pow(failures - 1);
        tokio::select! {
            () = run.stopping.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    app.meter.count_pod(&run);
    let (data, id) = (app.options.data.clone(), run.id().to_owned());
    let removing = tokio::task::spawn_blocking(move || folders::remove_disk(&data, &id));
    if let Ok(Err(error)) = removing.await {
        app.say(&format!("the disk of pod {} cannot be removed: {error}", run.id()));
    }
    run.alive.store(false, SeqCst);
    app.pod_runner.ended(&run);
}

/// Starts the process and waits until it has ended.
async fn run_once(app: &Arc<App>, run: &Arc<Run>) -> io::Result<ExitStatus> {
    let (starter, starting) = (Arc::clone(app), Arc::clone(run));
    let prepared = tokio::task::spawn_blocking(move || prepare(&starter, &starting));
    let folders = prepared.await.map_err(io::Error::other)??;
    let child = start(app, run, &folders)?;
    run.set_phase(Phase::Running);
    let (orders, mut inbox) = mpsc::unbounded_channel();
    let log = logs::path(&app.options.data, logs::POD, run.id());
    let ending = accompany(&app.options, log, child, &mut inbox);
    tokio::pin!(ending);
    let gone = || io::Error::other("it is gone");
    tokio::select! {
        ended = &mut ending => return ended.ok_or_else(gone),
        () = run.stopping.cancelled() => {}
    }
    let limit = if app.draining.is_cancelled() { STOP_AT_END } else { STOP };
    // A process that has ended meanwhile does not need the order.
    let _gone = orders.send(Order::Terminate);
    if let Ok(ended) = tokio::time::timeout(limit, &mut ending).await {
        return ended.ok_or_else(gone);
    }
    let _gone = orders.send(Order::Kill);
    ending.await.ok_or_else(gone)
}

/// Removes the container of a pod whose guard was killed.
async fn remove_container(app: &App, id: &str, ended: &io::Result<ExitStatus>) {
    let Some(engine) = &app.engine else { return };
    if let Err(answer) = engine.remove_left(id, ended.as_ref().ok().copied()).await {
        app.warn(&format!("the container of pod {id} is not removed: {answer}"));
    }
}

/// Makes the folders of a pod and takes its ports.
fn prepare(app: &App, run: &Run) -> io::Result<PodFolders> {
    let pod = &run.pod;
    let volume = pod.network_volume_id.as_deref();
    refuse_paths(&[pod.id.as_str(), volume.unwrap_or(&pod.id)])?;
    run.take_ports()?;
    let folders = folders::make(&app.options.data, pod)?;
    logs::begin(&logs::path(&app.options.data, logs::POD, &pod.id));
    Ok(folders)
}

fn start(app: &App, run: &Run, folders: &PodFolders) -> io::Result<Child> {
    let places = &folders.places;
    let are_mounted =
        app.engine.is_none() && places.has_mounts() && app.fleet.can_mount(app, places);
    let mut fixed = identity(&run.pod);
    fixed.extend(run.port_variables());
    // A container has its own disk.
    if app.engine.is_none() {
        fixed.push(("TMPDIR".to_owned(), folders.disk.to_string_lossy().into_owned()));
    }
    let own = &run.pod.container.env;
    if let Some(keys) = run.public_keys.as_ref().filter(|_| !own.contains_key("PUBLIC_KEY")) {
        fixed.push(("PUBLIC_KEY".to_owned(), keys.clone()));
    }
    let mut environment = assemble(own.iter(), fixed, places, are_mounted)?;
    let Some(engine) = &app.engine else {
        let command = command(Some(&run.pod.container), &app.options);
        return spawn(&app.options, &command, environment);
    };
    let has_processors = run.pod.is_cpu();
    let container = Container {
        id: run.id(),
        template: &run.pod.container,
        mounts: places.container_mounts(),
        processors: has_processors.then_some(run.pod.vcpu_count),
        limits: WorkerLimits::default(),
    };
    let command = engine.run(&container, &mut environment)?;
    spawn(&app.options, &command, environment)
}

/// Returns the variables that describe the pod to its program.
fn identity(pod: &Pod) -> Vec<(String, String)> {
    let texts = [
        ("RUNPOD_POD_ID", pod.id.clone()),
        ("RUNPOD_POD_HOSTNAME", format!("{}-plumb", pod.id)),
        ("RUNPOD_DC_ID", pod.data_center_id.clone()),
        ("RUNPOD_PUBLIC_IP", super::status::ADDRESS.to_owned()),
        ("RUNPOD_GPU_COUNT", pod.gpu_count.to_string()),
        ("RUNPOD_CPU_COUNT", pod.vcpu_count.to_string()),
        ("RUNPOD_MEM_GB", pod.memory.to_string()),
    ];
    let mut variables: Vec<_> =
        texts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(gpu) = &pod.gpu_type_id {
        variables.push(("RUNPOD_GPU_NAME".to_owned(), gpu.clone()));
    }
    variables
}
