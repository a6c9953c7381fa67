//! The changes of pods in the store: create, update, start, stop, restart, reset.

use super::model::{DesiredStatus, Pod, PodInput};
use super::rules::{check, data_center};
use crate::catalog;
use crate::clock::{iso, now_ms};
use crate::field_name::{IMAGE, VOLUME_SIZE};
use crate::ids;
use crate::problem::{Kind, Problem};
use crate::resources::template::{self, Template};
use crate::resources::{non_empty, required};
use crate::store::Tx;
use crate::store::objects;

/// The name of a pod that is made without one.
const NAME: &str = "my pod";

/// The gigabytes of memory for each GPU of a pod that is made without this setting.
const MEMORY_PER_GPU: i64 = 8;

/// An action that changes the condition of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Start,
    Stop,
    /// Replaces the running process by a new one.
    Restart,
    /// Does the same as a restart for a running pod. A stopped pod stays stopped.
    Reset,
}

/// Makes a pod, which shall run.
pub(crate) fn create(tx: &Tx<'_>, mut input: PodInput) -> Result<Pod, Problem> {
    let template_id = input.template_id.take().and_then(non_empty);
    let base = template_id.as_deref().map(|id| template_to_copy(tx, id)).transpose()?;
    let mut container = template::settings(base, std::mem::take(&mut input.container));
    if container.image_name.trim().is_empty() {
        return Err(required(IMAGE));
    }
    if container.start_jupyter {
        container.env.entry("JUPYTER_PASSWORD".to_owned()).or_insert_with(ids::secret);
    }
    let network_volume_id = input.network_volume_id.take().and_then(non_empty);
    let is_cpu = input.compute_type.as_deref() == Some("CPU");
    if is_cpu || network_volume_id.is_some() {
        // A pod has a volume of its own only with GPUs and without a network volume.
        container.volume_in_gb = 0;
    }
    let now = now_ms();
    let mut pod = Pod {
        id: ids::worker(),
        name: input.name.take().unwrap_or_else(|| NAME.to_owned()),
        desired_status: DesiredStatus::Running,
        compute_type: input.compute_type.take().unwrap_or_else(|| "GPU".to_owned()),
        cloud: input.cloud.take().unwrap_or_else(|| "SECURE".to_owned()),
        gpu_type_id: None,
        gpu_count: 0,
        cpu_flavor_id: None,
        vcpu_count: 0,
        memory: 0,
        data_center_id: String::new(),
        template_id,
        network_volume_id,
        interruptible: input.interruptible.unwrap_or(false),
        bid_per_gpu: input.bid_per_gpu,
        locked: input.locked.unwrap_or(false),
        global_networking: input.global_networking.unwrap_or(false),
        container,
        version: 0,
        created_at: now,
        started_at: now,
        last_status_change: format!("Rented by User: {}", iso(now)),
    };
    if is_cpu {
        choose_cpu(&mut pod, &input);
    } else {
        choose_gpu(&mut pod, &input);
    }
    pod.data_center_id = data_center(tx, &pod, input.data_center_ids.unwrap_or_default())?;
    check(tx, &pod)?;
    objects::insert(tx, &pod)?;
    Ok(pod)
}

fn template_to_copy(tx: &Tx<'_>, id: &str) -> Result<Template, Problem> {
    let template = objects::find::<Template>(tx.conn, id)?;
    template.ok_or_else(|| Problem::invalid(format!("template \"{id}\" not found")))
}

fn choose_cpu(pod: &mut Pod, input: &PodInput) {
    let flavor = input.cpu_flavor_ids.iter().flatten().next().cloned();
    let flavor = flavor.unwrap_or_else(|| catalog::POD_CPU_FLAVORS[0].to_owned());
    pod.vcpu_count = input.vcpu_count.unwrap_or(2);
    pod.memory = pod.vcpu_count.saturating_mul(catalog::memory_per_vcpu(&flavor));
    pod.cpu_flavor_id = Some(flavor);
}

fn choose_gpu(pod: &mut Pod, input: &PodInput) {
    let first = catalog::known_gpu_types().next().map(str::to_owned);
    pod.gpu_type_id = input.gpu_type_ids.iter().flatten().next().cloned().or(first);
    pod.gpu_count = input.gpu_count.unwrap_or(1);
    pod.vcpu_count = pod.gpu_count.saturating_mul(input.min_vcpu_per_gpu.unwrap_or(2));
    pod.memory = pod.gpu_count.saturating_mul(input.min_ram_per_gpu.unwrap_or(MEMORY_PER_GPU));
}

/// Changes a pod. A change of its container gives a running pod a new process.
pub(crate) fn update(tx: &Tx<'_>, id: &str, input: PodInput) -> Result<Pod, Problem> {
    let old: Pod = objects::get(tx.conn, id)?;
    let container = template::settings(Some(old.container.clone()), input.container);
    let mut new = Pod {
        name: input.name.unwrap_or_else(|| old.name.clone()),
        locked: input.locked.unwrap_or(old.locked),
        global_networking: input.global_networking.unwrap_or(old.global_networking),
        container,
        ..old.clone()
    };
    check(tx, &new)?;
    check_volume(&old, &new)?;
    if new.is_wanted() && needs_another_process(&old, &new) {
        refuse_locked(&old, new.locked, "reset")?;
        new.version += 1;
        new.started_at = now_ms();
    }
    objects::update(tx, &new)?;
    Ok(new)
}

/// Checks the size of a pod's volume: it can only grow, and it exists only for a pod with GPUs and
/// without a network volume.
fn check_volume(old: &Pod, new: &Pod) -> Result<(), Problem> {
    let (before, after) = (old.container.volume_in_gb, new.container.volume_in_gb);
    let broken = |rule: String| {
        Problem::broken_rule(|version| format!("{} {rule}", VOLUME_SIZE.of(version)))
    };
    if after < before {
        return Err(broken(format!("cannot become less: it is {before} GB, not {after} GB")));
    }
    if after > 0 && old.network_volume_id.is_some() {
        return Err(broken("means nothing for a pod with a network volume".to_owned()));
    }
    if after > 0 && old.is_cpu() {
        return Err(broken("means nothing for a pod without GPUs".to_owned()));
    }
    Ok(())
}

fn needs_another_process(old: &Pod, new: &Pod) -> bool {
    let (was, is) = (&old.container, &new.container);
    !is.runs_like(was)
        || was.volume_in_gb != is.volume_in_gb
        || was.volume_mount_path != is.volume_mount_path
}

/// Changes the condition of a pod. `has_failed` is true for a pod that shall run but whose process
/// has failed; starting such a pod tries again.
pub(crate) fn act(tx: &Tx<'_>, id: &str, action: Action, has_failed: bool) -> Result<Pod, Problem> {
    let mut pod: Pod = objects::get(tx.conn, id)?;
    let now = now_ms();
    let word = match (action, pod.desired_status) {
        (Action::Start, DesiredStatus::Exited) => "Resumed",
        (Action::Start, DesiredStatus::Running) if has_failed => "Resumed",
        (Action::Stop, DesiredStatus::Running) => {
            refuse_locked(&pod, pod.locked, "stopped")?;
            "Exited"
        }
        (Action::Restart, DesiredStatus::Running) => "Restarted",
        (Action::Reset, DesiredStatus::Running) => {
            refuse_locked(&pod, pod.locked, "reset")?;
            "Reset"
        }
        (Action::Restart, DesiredStatus::Exited) => {
            return Err(Problem::new(Kind::Conflict, "pod is not running; start it"));
        }
        (Action::Reset, DesiredStatus::Exited) => {
            refuse_locked(&pod, pod.locked, "reset")?;
            return Ok(pod);
        }
        (Action::Start, DesiredStatus::Running) | (Action::Stop, DesiredStatus::Exited) => {
            return Ok(pod);
        }
    };
    pod.desired_status =
        if action == Action::Stop { DesiredStatus::Exited } else { DesiredStatus::Running };
    if action != Action::Stop {
        pod.version += 1;
        pod.started_at = now;
    }
    pod.last_status_change = format!("{word} by User: {}", iso(now));
    objects::update(tx, &pod)?;
    Ok(pod)
}

/// The terms for the start of a stopped pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) gpu_count: Option<i64>,
    /// The bid in dollars an hour for each GPU; `None` for a pod that cannot be interrupted.
    pub(crate) bid_per_gpu: Option<f64>,
}

/// Sets the terms of a pod that is about to be started.
pub(crate) fn set_terms(tx: &Tx<'_>, id: &str, terms: Terms) -> Result<(), Problem> {
    let mut pod: Pod = objects::get(tx.conn, id)?;
    match (pod.interruptible, terms.bid_per_gpu) {
        (true, None) => return Err(required("bidPerGpu")),
        (false, Some(_)) => {
            return Err(Problem::invalid("a pod that cannot be interrupted takes no bidPerGpu"));
        }
        _ => {}
    }
    if pod.is_wanted() || pod.is_cpu() {
        return Ok(());
    }
    pod.bid_per_gpu = terms.bid_per_gpu;
    if let Some(count) = terms.gpu_count {
        let before = pod.gpu_count.max(1);
        pod.vcpu_count = (pod.vcpu_count / before).max(1).saturating_mul(count);
        pod.memory = (pod.memory / before).saturating_mul(count);
        pod.gpu_count = count;
    }
    check(tx, &pod)?;
    objects::update(tx, &pod)
}

fn refuse_locked(pod: &Pod, is_locked: bool, what: &str) -> Result<(), Problem> {
    if !is_locked {
        return Ok(());
    }
    let message = format!("pod \"{}\" is locked and cannot be {what}; unlock it first", pod.name);
    Err(Problem::new(Kind::Conflict, message))
}
