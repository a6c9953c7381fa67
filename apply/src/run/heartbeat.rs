//! Signs of life of a call that takes long: an event every ten seconds, for people who wait and for CI
//! systems that end a job without output.

use std::sync::Arc;
use std::time::Duration;

use engine::event::Event;
use engine::plan::Step;
use tokio::time::Instant;

use super::Emit;
use super::call::InFlight;

/// The pause between two events of a call that still runs.
const EVERY: Duration = Duration::from_secs(10);

/// Emits an event every ten seconds while a step runs.
pub(super) struct Heartbeat {
    emit: Emit,
    step: Step,
    doing: Option<String>,
    is_lookup: bool,
}

impl Heartbeat {
    /// Returns the heartbeat of a call, or of the look-up of a call.
    pub(super) fn new(emit: &Emit, step: &Step, flight: &InFlight, is_lookup: bool) -> Self {
        let doing = flight.words().doing;
        Self { emit: Arc::clone(emit), step: step.clone(), doing, is_lookup }
    }

    /// Does the work, and emits an event every ten seconds until it is done.
    pub(super) async fn during<T>(self, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(EVERY) => self.tell(began.elapsed()),
            }
        }
    }

    fn tell(&self, elapsed: Duration) {
        (self.emit)(Event::StepRunning {
            step: self.step.id.to_string(),
            address: self.step.address.clone(),
            operation: self.step.operation,
            doing: self.doing.clone(),
            is_lookup: self.is_lookup,
            ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        });
    }
}
