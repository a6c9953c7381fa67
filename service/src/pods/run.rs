//! The run of a pod: its ports, its phase, the order to stop.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::model::Pod;
use super::ports::{PodPorts, PortMapping};
use crate::billing::{Price, pod_price};
use crate::clock::now_ms;

/// The stage of a pod that shall run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The pod has no process at the moment.
    Starting,
    /// The process of the pod runs.
    Running,
    /// The process ended so often that it is not started again.
    Failed,
}

/// The run of a pod, from its start until it is stopped, changed or deleted.
pub(crate) struct Run {
    /// The pod as it was when it was started, with the values of secrets in its environment.
    pub(super) pod: Pod,
    /// The public keys for SSH, one on each line; `None` if the pod does not want them, or if there
    /// are none.
    pub(super) public_keys: Option<String>,
    pub(crate) price: Price,
    /// The time up to which the run has been counted, in milliseconds since 1970.
    pub(crate) counted_until: AtomicI64,
    /// False as soon as the run is over.
    pub(crate) alive: Arc<AtomicBool>,
    /// Fires when the process shall end.
    pub(super) stopping: CancellationToken,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    ports: PodPorts,
    /// The time when the process was started, in milliseconds since 1970.
    process_since: i64,
}

impl Run {
    pub(super) fn new(pod: Pod, public_keys: Option<String>) -> Run {
        let now = now_ms();
        Run {
            price: pod_price(&pod),
            pod,
            public_keys,
            counted_until: AtomicI64::new(now),
            alive: Arc::new(AtomicBool::new(true)),
            stopping: CancellationToken::new(),
            state: Mutex::new(State {
                phase: Phase::Starting,
                ports: PodPorts::default(),
                process_since: now,
            }),
        }
    }

    /// Returns the id of the pod.
    pub(crate) fn id(&self) -> &str {
        &self.pod.id
    }

    /// Returns true if the time of the run has a cost. A failed pod has none, because it has no
    /// machine any more.
    pub(crate) fn is_billed(&self) -> bool {
        self.alive.load(SeqCst) && self.phase() != Phase::Failed
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        state.process_since = now_ms();
    }

    /// Takes the ports for the next process, if the run has none yet.
    pub(super) fn take_ports(&self) -> std::io::Result<()> {
        let mut state = self.state();
        if state.ports.mappings().is_empty() {
            state.ports = PodPorts::take(&self.pod.container.ports)?;
        }
        Ok(())
    }

    pub(crate) fn ports(&self) -> Vec<PortMapping> {
        self.state().ports.mappings().to_vec()
    }

    /// Returns the variables that tell the program at which ports to listen.
    pub(super) fn port_variables(&self) -> Vec<(String, String)> {
        self.state().ports.variables()
    }

    /// Returns the milliseconds for which the process has been running; 0 if there is none.
    pub(crate) fn uptime_ms(&self) -> i64 {
        let state = self.state();
        let is_running = state.phase == Phase::Running;
        if is_running { (now_ms() - state.process_since).max(0) } else { 0 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
