//! The condition of a pod as clients see it. It depends on the record, and on the process if there
//! is one.

use super::model::Pod;
use super::ports::PortMapping;
use super::run::Phase;
use super::runner::PodRunner;

/// The address of this machine for clients of pods.
pub(crate) const ADDRESS: &str = "127.0.0.1";

/// The status of a pod, with the names of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// No process has been started yet.
    Provisioning,
    /// The process is about to be started.
    Starting,
    /// The process runs.
    Running,
    /// The pod is stopped.
    Exited,
    /// The process ended again and again, and is not started any more.
    Error,
}

impl Status {
    /// All statuses, in the order of a pod's life.
    pub(crate) const ALL: [Status; 5] =
        [Status::Provisioning, Status::Starting, Status::Running, Status::Exited, Status::Error];

    /// Returns the name in version 2.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Provisioning => "PROVISIONING",
            Status::Starting => "STARTING",
            Status::Running => "RUNNING",
            Status::Exited => "EXITED",
            Status::Error => "ERROR",
        }
    }

    /// Returns the actions that are possible in this status.
    pub(crate) fn actions(self) -> &'static [&'static str] {
        match self {
            Status::Running => &["stop", "restart", "terminate"],
            Status::Exited | Status::Error => &["start", "terminate"],
            Status::Provisioning | Status::Starting => &["stop", "terminate"],
        }
    }
}

/// The condition of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(crate) status: Status,
    /// The seconds for which the process has been running.
    pub(crate) uptime: i64,
    /// The ports of the pod; empty unless it runs.
    pub(crate) ports: Vec<PortMapping>,
}

impl PodRunner {
    /// Returns the condition of a pod.
    pub(crate) fn condition(&self, pod: &Pod) -> Condition {
        let run = self.run_of(&pod.id);
        let current = run.as_ref().filter(|run| run.pod.version == pod.version);
        let status = match (pod.is_wanted(), current.map(|run| run.phase())) {
            (false, _) => Status::Exited,
            (true, Some(Phase::Running)) => Status::Running,
            (true, Some(Phase::Failed)) => Status::Error,
            (true, Some(Phase::Starting)) => Status::Starting,
            // The process from before a change is still ending.
            (true, None) if run.is_some() => Status::Starting,
            (true, None) => Status::Provisioning,
        };
        let shown = current.filter(|_| status == Status::Running);
        Condition {
            status,
            uptime: shown.map_or(0, |run| run.uptime_ms() / 1000),
            ports: shown.map(|run| run.ports()).unwrap_or_default(),
        }
    }
}
