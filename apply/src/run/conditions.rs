//! Conditions that a run judges: in a step `require` before an object is made or changed, in a step `verify`
//! after that, and as preconditions of outputs at the end of the run.

use std::collections::BTreeMap;
use tokio::time::Instant;

use engine::address::{Address, Block, Name};
use engine::condition;
use engine::event::Event;
use engine::plan::{Action, OpenCondition, OutputChange, Step, StepId, When};
use engine::schema::Operation;
use engine::types::Type;
use engine::value::Value;

use super::{Failure, Run, StepContext};
use crate::fill::{FillScope, known};
use crate::step_error::StepError;

impl Run<'_> {
    /// Judges the conditions of a step that calls nothing.
    pub(super) async fn judge_step(&mut self, id: StepId) {
        let step = self.scheduler.step(id);
        let since = Instant::now();
        let conditions = due(step, &self.input.plan.changes[step.change].conditions);
        self.reveal_conditions(&conditions).await;
        self.calls.unwritten.insert(id);
        match self.context().first_broken(&conditions) {
            Some(trouble) => self.fail_step(id, trouble),
            None => self.finish_step(id, None, since),
        }
    }

    /// Judges the preconditions of the outputs that change. Returns the outputs that are refused; they keep
    /// their values.
    pub(super) async fn judge_outputs(&mut self) -> Vec<Name> {
        let mut refused = Vec::new();
        for (name, output) in &self.input.plan.outputs {
            let OutputChange { action, conditions, .. } = output;
            if *action == Action::Delete || conditions.is_empty() {
                continue;
            }
            let conditions: Vec<&OpenCondition> = conditions.iter().collect();
            self.reveal_conditions(&conditions).await;
            let Some(trouble) = self.context().first_broken(&conditions) else { continue };
            refused.push(name.clone());
            // After a failure, much is not known. The failure was reported already.
            if self.is_whole() {
                self.fail_output(name, trouble);
            }
        }
        refused
    }

    /// Returns true if no step failed so far. Failed preconditions of outputs do not count.
    fn is_whole(&self) -> bool {
        let report = &self.reporter.report;
        let of_output = |it: &Failure| &*it.address.block.ty == "output";
        report.in_doubt.is_empty()
            && report.remaining.is_empty()
            && report.failures.iter().all(of_output)
    }

    async fn reveal_conditions(&mut self, conditions: &[&OpenCondition]) {
        let unknown = |it: &&OpenCondition| Value::unknown(Type::Any, it.condition.clone());
        let residuals: Vec<Value> = conditions.iter().map(unknown).collect();
        self.reveal_for(&residuals, None).await;
    }

    fn fail_output(&mut self, name: &Name, trouble: StepError) {
        let address: Address = Block::new("output", name.clone()).instance(None);
        let StepError { message, help } = trouble;
        let operation = Operation::Require;
        let (step, failed) = (address.to_string(), address.clone());
        self.reporter.report.failures.push(Failure {
            address,
            operation,
            message: message.clone(),
            help: help.clone(),
        });
        let event = Event::StepFailed { step, address: failed, operation, message, help };
        self.reporter.events.push(event);
    }
}

impl StepContext<'_> {
    /// Returns the error of the first condition that does not hold or cannot be judged.
    fn first_broken(&self, conditions: &[&OpenCondition]) -> Option<StepError> {
        conditions.iter().find_map(|open| self.broken(open))
    }

    fn broken(&self, open: &OpenCondition) -> Option<StepError> {
        // A value that is not known now never will be, so an unknown part is an error.
        match known(&open.condition, &self.scope()).map(|datum| datum.value) {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Bool(false)) => Some(self.not_met(open)),
            Ok(_) => Some(unclear(open, "it is neither true nor false")),
            Err(_) if open.holds_so_far => None,
            Err(why) => Some(unclear(open, &why)),
        }
    }

    /// Returns the error of a condition that does not hold. It shows values as the state has them, with
    /// secrets hidden.
    fn not_met(&self, open: &OpenCondition) -> StepError {
        let nothing = BTreeMap::new();
        let scope = FillScope { clear: &nothing, ..self.scope() };
        let message = condition::text(&open.message, &scope);
        let (title, values) = (open.title(), condition::values(&open.condition, &scope));
        let values = if values.is_empty() { values } else { format!(": {values}") };
        StepError {
            message: message.unwrap_or_else(|| "a condition does not hold".to_owned()),
            help: Some(format!("this is the {title}{values}")),
        }
    }
}

fn unclear(open: &OpenCondition, why: &str) -> StepError {
    StepError::new(format!("the {} cannot be judged: {why}", open.title()))
}

/// Returns the conditions that a step judges.
fn due<'c>(step: &Step, conditions: &'c [OpenCondition]) -> Vec<&'c OpenCondition> {
    let when = if step.operation == Operation::Require { When::Before } else { When::After };
    conditions.iter().filter(|it| it.when == when).collect()
}
