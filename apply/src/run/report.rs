//! The end of a run: counts, outputs and the closing records.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::event::{Event, Summary};
use engine::journal::{Outcome, Record};
use engine::plan::{Action, Plan, StepId};
use engine::schema::Operation;
use engine::state::OutputValue;
use engine::stored::{KnownSecrets, SecretScanner, Stored, seal};
use engine::value::{Paths, Value};

use super::scheduler::{Scheduler, Status};
use super::{Emit, Report, Run, StepContext};
use crate::ApplyError;
use crate::fill::{FillScope, known};

/// The events and the report of a run.
pub(super) struct Reporter {
    emit: Emit,
    /// The events that are emitted once the records that they report are durable.
    pub(super) events: Vec<Event>,
    pub(super) report: Report,
}

impl Reporter {
    pub(super) fn new(emit: Emit) -> Self {
        Self { emit, events: Vec::new(), report: Report::default() }
    }

    /// Emits an event at once.
    pub(super) fn emit(&self, event: Event) {
        (self.emit)(event);
    }

    /// Emits the events whose records are durable by now.
    pub(super) fn tell(&mut self) {
        for event in self.events.drain(..) {
            (self.emit)(event);
        }
    }

    /// Counts the changes whose steps are all done.
    fn count(&mut self, plan: &Plan, scheduler: &Scheduler<'_>) {
        let mut undone: BTreeSet<usize> = BTreeSet::new();
        // A failed `verify` does not count: the object was made or changed all the same.
        for step in plan.steps.iter().filter(|step| step.operation != Operation::Verify) {
            if scheduler.status(step.id) != Status::Done {
                undone.insert(step.change);
            }
        }
        let summary = &mut self.report.summary;
        summary.moved = plan.changes.iter().filter(|change| change.moved_from.is_some()).count();
        for (index, change) in plan.changes.iter().enumerate() {
            if undone.contains(&index) {
                continue;
            }
            match change.action {
                Action::Create => summary.created += 1,
                Action::Import => summary.imported += 1,
                Action::Update => summary.updated += 1,
                Action::Replace => summary.replaced += 1,
                Action::Delete => summary.deleted += 1,
                Action::Forget => summary.forgotten += 1,
                _ => {}
            }
        }
        summary.failed = self.report.failures.len();
        summary.in_doubt = self.report.in_doubt.len();
    }
}

impl Run<'_> {
    pub(super) async fn close(&mut self) -> Result<(), ApplyError> {
        self.reporter.report.remaining = self.scheduler.not_begun().cloned().collect();
        // A call whose task ended without an answer is in doubt, as after a crash.
        for flight in std::mem::take(&mut self.calls.in_flight).into_values() {
            self.reporter.report.in_doubt.push(flight.started.address);
        }
        // After a stop no API is read any more.
        let mut refused = Vec::new();
        if !self.reporter.report.summary.cancelled {
            self.reveal_outputs().await;
            refused = self.judge_outputs().await;
        }
        self.reporter.count(self.input.plan, &self.scheduler);
        let (outputs, shown) = self.context().outputs(&self.secrets.known, &refused);
        self.reporter.report.outputs = shown;
        self.session.record(Record::Outputs { outputs })?;
        let outcome = if self.reporter.report.summary.cancelled {
            "cancelled"
        } else if self.reporter.report.failures.is_empty()
            && self.reporter.report.in_doubt.is_empty()
        {
            "done"
        } else {
            "failed"
        };
        self.session.record(Record::RunClosed { outcome: outcome.to_owned() })?;
        self.session.flush().await?;
        self.reporter.tell();
        self.reporter.emit(Event::RunFinished(self.reporter.report.summary.clone()));
        Ok(())
    }

    /// Gives back the steps whose intents could not be written. Nothing was called, so the steps remain.
    pub(super) fn not_sent(&mut self, steps: Vec<StepId>) {
        for step in steps {
            self.calls.in_flight.remove(&step);
            self.scheduler.give_back(step);
        }
    }

    /// Records for intents that were written too late for their calls that nothing was called. If that record
    /// cannot be written, the next run looks the calls up.
    pub(super) async fn undo_intents(&mut self, steps: &[StepId]) {
        let calls = steps.iter().filter_map(|step| self.calls.in_flight.get(step));
        let calls: Vec<_> = calls.map(|flight| flight.started.call).collect();
        for call in calls {
            let reason = "it was not sent: the state store is too slow".to_owned();
            self.session
                .record(Record::Finished { call, outcome: Outcome::NoEffect { reason } })
                .ok();
        }
        self.session.flush().await.ok();
    }

    /// Ends a run whose store failed. The calls whose results could not be written are in doubt, as are the
    /// calls whose answers the run did not wait for.
    pub(super) fn cut_short(&mut self) {
        let mut open = std::mem::take(&mut self.calls.unwritten);
        open.extend(std::mem::take(&mut self.calls.in_flight).into_keys());
        for event in std::mem::take(&mut self.reporter.events) {
            self.tell_unwritten(event, &open);
        }
        for id in open {
            let step = self.scheduler.step(id);
            self.scheduler.doubt(id);
            let address = step.address.clone();
            self.reporter.report.failures.retain(|failure| {
                failure.address != address || failure.operation != step.operation
            });
            if !self.reporter.report.in_doubt.contains(&address) {
                self.reporter.report.in_doubt.push(address.clone());
            }
            self.reporter.emit(Event::StepDoubted {
                step: id.to_string(),
                address,
                operation: step.operation,
                reason: "how it ended could not be recorded".to_owned(),
            });
        }
        self.reporter.report.remaining = self.scheduler.not_begun().cloned().collect();
        let Summary { skipped, cancelled, .. } = self.reporter.report.summary;
        self.reporter.report.summary = Summary { skipped, cancelled, ..Summary::default() };
        self.reporter.count(self.input.plan, &self.scheduler);
        self.reporter.emit(Event::RunFinished(self.reporter.report.summary.clone()));
    }

    /// Emits the events of the last turn that are true even though their records are not durable: ends of
    /// steps that were written down, or that failed before any call. A skipped step now waits for a step in
    /// doubt, and remains.
    fn tell_unwritten(&mut self, event: Event, open: &BTreeSet<StepId>) {
        let plan = self.input.plan;
        let id = |name: &str| {
            let step = plan.steps.iter().find(|step| step.id.to_string() == name);
            step.map(|step| step.id)
        };
        match &event {
            Event::StepSkipped { step, .. } => {
                if let Some(id) = id(step) {
                    self.scheduler.give_back(id);
                    self.reporter.report.summary.skipped -= 1;
                }
            }
            Event::StepFinished { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepDoubted { step, .. }
                if id(step).is_some_and(|id| !open.contains(&id)) =>
            {
                self.reporter.emit(event);
            }
            _ => {}
        }
    }
}

impl StepContext<'_> {
    /// Returns the outputs as the state keeps them, and as the report shows them. An output that cannot be
    /// computed keeps its last value. If this run has only the fingerprint of a secret, the output keeps the
    /// value of the plan, or the one that the next plan will compute.
    fn outputs(
        &self,
        secrets: &KnownSecrets,
        refused: &[Name],
    ) -> (BTreeMap<Name, OutputValue>, BTreeMap<Name, (Value, bool)>) {
        let mut kept = self.snapshot.outputs.clone();
        let mut known_now = BTreeMap::new();
        for (name, change) in &self.input.plan.outputs {
            if change.action == Action::Delete {
                kept.remove(name);
                continue;
            }
            if refused.contains(name) {
                continue;
            }
            let scope = FillScope { takes_unshown_for_null: true, ..self.scope() };
            let value = match (&change.secret, &change.after) {
                (Some(expr), after) => known(expr, &scope).map_or_else(
                    |_| {
                        after
                            .clone()
                            .filter(Value::is_known)
                            .or_else(|| crate::fill::kept(expr, &scope))
                    },
                    |it| Some(it.value),
                ),
                // An output that does not change keeps the value that the state has by now, if it has one.
                (None, _) if change.action.is_idle() => {
                    kept.get(name).and_then(|last| last.value.value().ok())
                }
                (None, Some(after)) => crate::fill::fill(after, &scope).ok(),
                (None, None) => continue,
            };
            let Some(value) = value else { continue };
            let paths = if change.sensitive { Paths::whole() } else { Paths::none() };
            let key = &self.snapshot.seal_key;
            let sealed = seal(&value, &paths, key);
            // An API may have put a secret into an attribute that the output is computed from. The plan could
            // not see that.
            let is_new = change.after.as_ref().is_some_and(|after| !after.is_known());
            let sealer = SecretScanner::new(key, secrets);
            let sealed = if is_new { sealer.seal_value(&sealed) } else { sealed };
            let shown = if change.sensitive { value } else { sealed.clone() };
            let stored = Stored::of_sealed(&sealed);
            kept.insert(name.clone(), OutputValue { value: stored, sensitive: change.sensitive });
            known_now.insert(name.clone(), (shown, change.sensitive));
        }
        (kept, known_now)
    }
}
