//! The steps that may run: a pure count of what each still waits for.
//!
//! Knows nothing of calls. Steps are handed out in the order of the program, so a run is as
//! deterministic as its answers.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::plan::{Plan, Step, StepId};

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It waits for others.
    Waiting,
    /// It may run.
    Ready,
    /// It runs.
    Running,
    /// It is done.
    Done,
    /// It failed: nothing happened, or what it waited for did not come true.
    Failed,
    /// It is not known whether it happened.
    Doubted,
    /// Something that it needs failed, so it does not run.
    Skipped,
}

/// The steps of one plan.
pub(crate) struct Scheduler<'p> {
    plan: &'p Plan,
    status: Vec<Status>,
    missing: Vec<usize>,
    waiting: Vec<Vec<StepId>>,
    ready: BTreeMap<Name, BTreeSet<StepId>>,
}

impl<'p> Scheduler<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let mut waiting = vec![Vec::new(); plan.steps.len()];
        for step in &plan.steps {
            for need in &step.needs {
                waiting[need.0 as usize].push(step.id);
            }
        }
        let missing = plan.steps.iter().map(|step| step.needs.len()).collect();
        let status = vec![Status::Waiting; plan.steps.len()];
        let mut scheduler = Self { plan, status, missing, waiting, ready: BTreeMap::new() };
        for step in plan.steps.iter().filter(|step| step.needs.is_empty()) {
            scheduler.make_ready(step.id);
        }
        scheduler
    }

    pub(crate) fn step(&self, id: StepId) -> &'p Step {
        &self.plan.steps[id.0 as usize]
    }

    fn provider(&self, id: StepId) -> &'p Name {
        &self.plan.changes[self.step(id).change].provider
    }

    fn make_ready(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Ready;
        self.ready.entry(self.provider(id).clone()).or_default().insert(id);
    }

    /// The provider instances that have ready steps.
    pub(crate) fn ready_providers(&self) -> Vec<Name> {
        self.ready.iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// Takes the next ready step of a provider instance; it runs from now on.
    pub(crate) fn take(&mut self, provider: &Name) -> Option<StepId> {
        let id = self.ready.get_mut(provider)?.pop_first()?;
        self.status[id.0 as usize] = Status::Running;
        Some(id)
    }

    /// A step that was taken did not happen, and does not begin again in this run: it remains.
    pub(crate) fn give_back(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Ready;
    }

    /// A step that was given back begins again after all.
    pub(crate) fn take_back(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Running;
    }

    /// Marks a step of which it is not known how it ended. What waited for it goes on waiting.
    pub(crate) fn doubt(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Doubted;
    }

    /// The step is done: those that only waited for it are ready.
    pub(crate) fn done(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Done;
        for next in self.waiting[id.0 as usize].clone() {
            let missing = &mut self.missing[next.0 as usize];
            *missing -= 1;
            if *missing == 0 && self.status[next.0 as usize] == Status::Waiting {
                self.make_ready(next);
            }
        }
    }

    /// The step failed or is in doubt. Returns all that now cannot run, each with the step that it
    /// needed.
    pub(crate) fn fail(&mut self, id: StepId, status: Status) -> Vec<(StepId, StepId)> {
        self.status[id.0 as usize] = status;
        let mut skipped = Vec::new();
        let mut open = vec![id];
        while let Some(cause) = open.pop() {
            for next in self.waiting[cause.0 as usize].clone() {
                if self.status[next.0 as usize] == Status::Waiting {
                    self.status[next.0 as usize] = Status::Skipped;
                    skipped.push((next, cause));
                    open.push(next);
                }
            }
        }
        skipped.sort_unstable();
        skipped
    }

    pub(crate) fn status(&self, id: StepId) -> Status {
        self.status[id.0 as usize]
    }

    /// The steps that did not begin, and were not skipped for a failure.
    pub(crate) fn not_begun(&self) -> impl Iterator<Item = &'p Step> + '_ {
        self.plan
            .steps
            .iter()
            .filter(|step| matches!(self.status(step.id), Status::Waiting | Status::Ready))
    }
}
