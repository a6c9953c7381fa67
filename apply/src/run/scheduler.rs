//! The schedule of steps: it counts how many other steps each one still waits for.
//!
//! The scheduler knows nothing of calls. It hands steps out in the order of the program, so a run is as
//! deterministic as its answers.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::plan::{Plan, Step, StepId};

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The step waits for others.
    Waiting,
    /// The step may run.
    Ready,
    /// The step runs.
    Running,
    /// The step is done.
    Done,
    /// The step failed: its call had no effect, or what it waited for did not come true.
    Failed,
    /// The outcome of the step is unknown.
    Doubted,
    /// The step does not run, because a step that it needs failed.
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

    /// Returns the provider instances that have ready steps.
    pub(crate) fn ready_providers(&self) -> Vec<Name> {
        self.ready.iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// Takes the next ready step of a provider instance. The step runs from now on.
    pub(crate) fn take(&mut self, provider: &Name) -> Option<StepId> {
        let id = self.ready.get_mut(provider)?.pop_first()?;
        self.status[id.0 as usize] = Status::Running;
        Some(id)
    }

    /// Marks a taken step as not begun. It does not begin again in this run, and remains to be done.
    pub(crate) fn give_back(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Ready;
    }

    /// Marks a step that was given back as running again.
    pub(crate) fn take_back(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Running;
    }

    /// Marks a step as in doubt. The steps that need it go on waiting.
    pub(crate) fn doubt(&mut self, id: StepId) {
        self.status[id.0 as usize] = Status::Doubted;
    }

    /// Marks a step as done. Steps that waited only for it become ready.
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

    /// Marks a step as failed or in doubt. Returns all steps that now cannot run, each with the step that it
    /// needs.
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

    /// Returns the steps that did not begin and that were not skipped because of a failure.
    pub(crate) fn not_begun(&self) -> impl Iterator<Item = &'p Step> + '_ {
        self.plan
            .steps
            .iter()
            .filter(|step| matches!(self.status(step.id), Status::Waiting | Status::Ready))
    }
}
