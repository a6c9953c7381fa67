//! The number of an endpoint's workers in each condition.

use std::sync::Arc;

use super::worker::{Phase, Worker};

/// The number of workers in each condition.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) idle: usize,
    pub(crate) running: usize,
    pub(crate) initializing: usize,
    pub(crate) throttled: usize,
    pub(crate) unhealthy: usize,
}

impl Counts {
    /// Counts live workers.
    pub(super) fn of(workers: &[Arc<Worker>]) -> Counts {
        let mut counts = Counts::default();
        for worker in workers {
            let is_out = worker.server.get().is_some() && !worker.is_in_rotation();
            let state = worker.state();
            match state.phase {
                _ if state.is_busy() => counts.running += 1,
                Phase::Starting => counts.initializing += 1,
                Phase::Ready if is_out => counts.unhealthy += 1,
                Phase::Ready => counts.idle += 1,
                Phase::Retiring | Phase::Ending => {}
            }
        }
        counts
    }
}
