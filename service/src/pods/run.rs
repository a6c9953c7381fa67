//! A pod that runs, as the service knows it: its ports, its phase, the order to stop.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::model::Pod;
use super::ports::{PodPorts, PortMapping};
use crate::billing::{Price, pod_price};
use crate::clock::now_ms;

/// The stage of a pod that is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has no process at the moment.
    Starting,
    /// Its process runs.
    Running,
    /// Its process ended so often that it is not started again.
    Failed,
}

/// A pod that runs.
pub(crate) struct Run {
    /// The pod as it was when it was started, with the values of secrets in its environment.
    pub(super) pod: Pod,
    /// The public keys for SSH, as one text; none if it does not want them.
    pub(super) public_keys: Option<String>,
    pub(crate) price: Price,
    /// Up to when its time has been counted.
    pub(crate) counted_until: AtomicI64,
    /// False as soon as it is over.
    pub(crate) alive: Arc<AtomicBool>,
    /// Fires when its process shall end.
    pub(super) stopping: CancellationToken,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    ports: PodPorts,
    /// When its process was started.
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

    /// The id of the pod.
    pub(crate) fn id(&self) -> &str {
        &self.pod.id
    }

    /// Returns true if its time costs something: a pod that has failed has no machine any more.
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

    /// Takes the ports for its next process, if it has none yet.
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

    /// The variables that tell its program where to listen.
    pub(super) fn port_variables(&self) -> Vec<(String, String)> {
        self.state().ports.variables()
    }

    /// The milliseconds for which its process has been running.
    pub(crate) fn uptime_ms(&self) -> i64 {
        let state = self.state();
        let is_running = state.phase == Phase::Running;
        if is_running { (now_ms() - state.process_since).max(0) } else { 0 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
