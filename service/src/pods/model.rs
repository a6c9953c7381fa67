//! The record of a pod, and the settings that a client can give.

use serde::{Deserialize, Serialize};

use crate::resources::template::{Template, TemplateInput};
use crate::store::objects::Record;

/// The tiers of machines.
pub(crate) const CLOUDS: &[&str] = &["SECURE", "COMMUNITY"];

/// The condition that the user wants for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum DesiredStatus {
    /// The pod has a running process.
    Running,
    /// The pod is stopped: it has no process, but its volume is kept.
    Exited,
}

impl DesiredStatus {
    /// Returns the name in the APIs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DesiredStatus::Running => "RUNNING",
            DesiredStatus::Exited => "EXITED",
        }
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pod {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) desired_status: DesiredStatus,
    /// `GPU` or `CPU`.
    pub(crate) compute_type: String,
    pub(crate) cloud: String,
    pub(crate) gpu_type_id: Option<String>,
    pub(crate) gpu_count: i64,
    pub(crate) cpu_flavor_id: Option<String>,
    pub(crate) vcpu_count: i64,
    /// Gigabytes of memory.
    pub(crate) memory: i64,
    pub(crate) data_center_id: String,
    /// The template from which the settings were copied when the pod was made.
    pub(crate) template_id: Option<String>,
    pub(crate) network_volume_id: Option<String>,
    pub(crate) interruptible: bool,
    /// The user's bid for a pod that can be interrupted, in dollars an hour for each GPU.
    pub(crate) bid_per_gpu: Option<f64>,
    pub(crate) locked: bool,
    pub(crate) global_networking: bool,
    /// The pod's own settings: image, command, environment, ports, disks.
    pub(crate) container: Template,
    /// The number of changes that need a new process.
    pub(crate) version: i64,
    pub(crate) created_at: i64,
    /// The time of the last start, in milliseconds since 1970.
    pub(crate) started_at: i64,
    /// The last event of the pod, as a text for people.
    pub(crate) last_status_change: String,
}

impl Pod {
    /// Returns true if the user wants the pod to run.
    pub(crate) fn is_wanted(&self) -> bool {
        self.desired_status == DesiredStatus::Running
    }

    /// Returns true if the pod has no GPU.
    pub(crate) fn is_cpu(&self) -> bool {
        self.compute_type == "CPU"
    }

    /// Returns true if the pod has a volume of its own, which is deleted with it.
    pub(crate) fn has_own_volume(&self) -> bool {
        self.network_volume_id.is_none() && self.container.volume_in_gb > 0
    }
}

impl Record for Pod {
    const KIND: &'static str = "pod";
    const NOUN: &'static str = "pod";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uses(&self) -> Vec<&str> {
        let registry = self.container.container_registry_auth_id.as_deref();
        self.network_volume_id.as_deref().into_iter().chain(registry).collect()
    }
}

/// Returns the settings of a pod without a template: ports and volumes that are left out are none,
/// not the defaults.
pub(crate) fn with_nothing_more(given: TemplateInput) -> TemplateInput {
    TemplateInput {
        ports: given.ports.or_else(|| Some(Vec::new())),
        volume_in_gb: given.volume_in_gb.or(Some(0)),
        ..given
    }
}

/// The settings of a pod that a client can give. `""` for an id means none.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodInput {
    pub(crate) name: Option<String>,
    pub(crate) compute_type: Option<String>,
    pub(crate) cloud: Option<String>,
    /// The GPU types in order of preference; the first one is taken.
    pub(crate) gpu_type_ids: Option<Vec<String>>,
    pub(crate) gpu_count: Option<i64>,
    /// The CPU flavours in order of preference; the first one is taken.
    pub(crate) cpu_flavor_ids: Option<Vec<String>>,
    pub(crate) vcpu_count: Option<i64>,
    pub(crate) min_ram_per_gpu: Option<i64>,
    pub(crate) min_vcpu_per_gpu: Option<i64>,
    /// The data centers in order of preference; the first one is taken, or the one of the network
    /// volume.
    pub(crate) data_center_ids: Option<Vec<String>>,
    pub(crate) template_id: Option<String>,
    pub(crate) network_volume_id: Option<String>,
    pub(crate) interruptible: Option<bool>,
    pub(crate) bid_per_gpu: Option<f64>,
    pub(crate) locked: Option<bool>,
    pub(crate) global_networking: Option<bool>,
    pub(crate) container: TemplateInput,
}
