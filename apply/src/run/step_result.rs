//! The end of a step: done, failed, and what cannot run because of it.

use tokio::time::Instant;

use engine::address::Name;
use engine::event::Event;
use engine::plan::StepId;

use super::call::InFlight;
use super::{Failure, Run};
use crate::run::scheduler::Status;
use crate::step_error::StepError;

impl Run<'_> {
    pub(super) fn finish_step(&mut self, id: StepId, made: Option<String>, since: Instant) {
        self.finish(id, (made, since), (None, Vec::new()));
    }

    /// Ends the step of a call. `differing` are the attributes that the object has otherwise than they were
    /// sent.
    pub(super) fn finish_call(
        &mut self,
        id: StepId,
        made: Option<String>,
        differing: Vec<Name>,
        flight: &InFlight,
    ) {
        self.finish(id, (made, flight.since), (flight.words().done, differing));
    }

    fn finish(
        &mut self,
        id: StepId,
        (made, since): (Option<String>, Instant),
        (done, differing): (Option<String>, Vec<Name>),
    ) {
        let step = self.scheduler.step(id);
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.reporter.events.push(Event::StepFinished {
            step: id.to_string(),
            address: step.address.clone(),
            operation: step.operation,
            done,
            id: made,
            ms,
            differing: differing.iter().map(ToString::to_string).collect(),
        });
        self.scheduler.done(id);
    }

    pub(super) fn fail_step(&mut self, id: StepId, trouble: StepError) {
        let step = self.scheduler.step(id);
        let (address, operation) = (step.address.clone(), step.operation);
        let StepError { message, help } = trouble;
        self.reporter.report.failures.push(Failure {
            address: address.clone(),
            operation,
            message: message.clone(),
            help: help.clone(),
        });
        let name = id.to_string();
        self.reporter.events.push(Event::StepFailed {
            step: name,
            address,
            operation,
            message,
            help,
        });
        self.skip_rest(id, Status::Failed, "it failed");
    }

    pub(super) fn skip_rest(&mut self, id: StepId, status: Status, why: &str) {
        for (skipped, cause) in self.scheduler.fail(id, status) {
            let needed = self.scheduler.step(cause);
            let reason = if cause == id {
                format!("it needs {} {}, and {why}", needed.operation.word(), needed.address)
            } else {
                format!("it needs {} {}, which is skipped", needed.operation.word(), needed.address)
            };
            let address = self.scheduler.step(skipped).address.clone();
            self.reporter.report.summary.skipped += 1;
            self.reporter.events.push(Event::StepSkipped {
                step: skipped.to_string(),
                address,
                reason,
            });
        }
    }
}
