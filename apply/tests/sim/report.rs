//! The checks of a run's report against what the run did: the end of each step is told once, whatever is
//! reported as done is done, and a reported doubt is open in the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use apply::run::Report;
use engine::address::Address;
use engine::event::Event;
use engine::journal::{PhaseRef, ProgramKind};
use engine::plan::{Action, Change, Plan, Step};
use engine::state::{ObjectId, Progress, Snapshot};

use crate::cloud::{Cloud, Live, lock};
use crate::request_body::fits;
use crate::runner::Runner;

/// The end of a step, as the events of the run tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Finished,
    Failed,
    Doubted,
    Skipped,
}

/// The end of each step that a run told, and the steps whose end it told twice.
#[derive(Debug, Default)]
pub(crate) struct Tale {
    steps: BTreeMap<String, Told>,
    twice: Vec<String>,
}

impl Tale {
    pub(crate) fn hear(&mut self, event: &Event) {
        let (step, told) = match event {
            Event::StepFinished { step, .. } => (step, Told::Finished),
            Event::StepFailed { step, .. } => (step, Told::Failed),
            Event::StepDoubted { step, .. } => (step, Told::Doubted),
            Event::StepSkipped { step, .. } => (step, Told::Skipped),
            _ => return,
        };
        if self.steps.insert(step.clone(), told).is_some() {
            self.twice.push(step.clone());
        }
    }

    fn count(&self, told: Told) -> usize {
        self.steps.values().filter(|own| **own == told).count()
    }

    fn of(&self, step: &Step) -> Option<Told> {
        self.steps.get(&step.id.to_string()).copied()
    }
}

/// A run that ended, with its plan, its report and its last state.
pub(crate) struct Ended<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) plan: &'a Plan,
    pub(crate) report: &'a Report,
    /// True if the run came to its end, and no error (of the store, for example) ended it before.
    pub(crate) is_whole: bool,
    pub(crate) state: &'a Snapshot,
}

/// Returns true if a report says that everything was done.
pub(crate) fn is_success(report: &Report) -> bool {
    report.failures.is_empty() && report.in_doubt.is_empty() && !report.summary.cancelled
}

impl Ended<'_> {
    /// Checks the report, the events, the state and the cloud against each other.
    pub(crate) fn audit(&self) {
        let tale = std::mem::take(&mut *self.runner.tale.lock().unwrap());
        let mut cloud = lock(&self.runner.cloud);
        let mut found = self.each_step_is_told(&tale);
        found.extend(self.counts_fit(&tale));
        found.extend(self.doubts_are_open(&cloud));
        // If another run drove this one out, the other run may have changed objects since.
        if self.is_whole && !self.runner.fenced.load(Ordering::Relaxed) {
            for change in self.done(&tale) {
                found.extend(self.is_carried_out(&cloud, change));
            }
        }
        for found in found {
            cloud.violation(format!("r{}: {found}", self.runner.number));
        }
    }

    /// Checks that every step has one end, or did not begin.
    fn each_step_is_told(&self, tale: &Tale) -> Vec<String> {
        let twice = tale.twice.iter().map(|step| format!("the end of {step} is told twice"));
        let remaining: BTreeSet<_> = self.report.remaining.iter().map(|step| step.id).collect();
        let untold = self.plan.steps.iter().filter_map(|step| {
            match (tale.of(step), remaining.contains(&step.id)) {
                (None, false) => Some(format!("nobody is told how {} ended", step.id)),
                (Some(told), true) => Some(format!("{} remains, and is {told:?}", step.id)),
                _ => None,
            }
        });
        let mut found: Vec<String> = twice.chain(untold).collect();
        if is_success(self.report) && self.is_whole && !remaining.is_empty() {
            found.push("all is said to be done, and steps remain".to_owned());
        }
        found
    }

    /// Returns the changes whose steps are all finished: no step failed, is in doubt, was skipped or did not
    /// begin.
    fn done<'a>(&'a self, tale: &'a Tale) -> impl Iterator<Item = &'a Change> {
        let undone = self.plan.steps.iter().filter(|step| tale.of(step) != Some(Told::Finished));
        let undone: BTreeSet<usize> = undone.map(|step| step.change).collect();
        let changes = self.plan.changes.iter().enumerate();
        changes.filter(move |(index, _)| !undone.contains(index)).map(|(_, change)| change)
    }

    /// Checks that the counts of the report fit the ends of steps that were told.
    fn counts_fit(&self, tale: &Tale) -> Option<String> {
        let summary = &self.report.summary;
        let done = |action| self.done(tale).filter(|change| change.action == action).count();
        let changed = [
            (summary.created, done(Action::Create)),
            (summary.imported, done(Action::Import)),
            (summary.updated, done(Action::Update)),
            (summary.replaced, done(Action::Replace)),
            (summary.deleted, done(Action::Delete)),
            (summary.failed, tale.count(Told::Failed)),
            (summary.failed, self.report.failures.len()),
            (summary.skipped, tale.count(Told::Skipped)),
        ];
        let wrong = self.is_whole && changed.iter().any(|(said, was)| said != was);
        wrong.then(|| format!("{summary:?} does not fit what was told: {changed:?}"))
    }

    /// Checks that the addresses that are reported to be in doubt are those that the journal holds open. If
    /// the store ended the run, the journal may also hold calls open that were never sent. If the run was
    /// driven out, another run may have resolved its calls by now.
    fn doubts_are_open(&self, cloud: &Cloud) -> Option<String> {
        let own = cloud.open.iter().filter(|intent| {
            intent.run == self.runner.number && !intent.ended && (self.is_whole || intent.was_sent)
        });
        let open: BTreeSet<&Address> = own.map(|intent| &intent.started.address).collect();
        let said: BTreeSet<&Address> = self.report.in_doubt.iter().collect();
        let is_alone = self.is_whole && !self.runner.fenced.load(Ordering::Relaxed);
        let fits = if is_alone { open == said } else { open.is_subset(&said) };
        (!fits)
            .then(|| format!("{open:?} is open in the journal, and {said:?} said to be in doubt"))
    }

    /// Checks that the state and the cloud are as a change shows, if nobody else touched the object.
    fn is_carried_out(&self, cloud: &Cloud, change: &Change) -> Option<String> {
        let address = &change.address;
        match change.action {
            Action::Delete => {
                let id = change.object.as_ref()?;
                // An id that a client chose may be another object's by now.
                let is_own = |live: &Live| {
                    let owner = live.owner.as_ref();
                    owner.is_some_and(|(own, _)| *own == address.to_string())
                };
                let is_there = cloud.objects.get(id).is_some_and(|live| is_own(live))
                    && !cloud.is_disordered(id);
                is_there.then(|| format!("{id} is said to be deleted, and is there"))
            }
            Action::Create | Action::Replace | Action::Update | Action::Import => {
                let entry = self.state.entries.get(address);
                let Some(own) = entry.and_then(|entry| entry.current.as_ref()) else {
                    return Some(format!("{address} is said to be there, and the state has none"));
                };
                if self.is_left_unfinished(change) {
                    return None;
                }
                if own.progress != Progress::Ready {
                    return Some(format!(
                        "{address} is said to be done, and is {:?}",
                        own.progress
                    ));
                }
                self.differs(cloud, change, &own.id)
            }
            _ => None,
        }
    }

    /// Returns true if the plan itself leaves a new object unfinished for a later plan: the object waits for
    /// its unique name while something outside the run uses the old object.
    fn is_left_unfinished(&self, change: &Change) -> bool {
        let steps = self.plan.steps.iter();
        let own =
            steps.filter(|step| std::ptr::eq(&raw const self.plan.changes[step.change], change));
        let phases = own.filter_map(|step| step.phase);
        let mut made = phases.filter(|phase| phase.kind != ProgramKind::Delete).peekable();
        made.peek().is_some() && !made.any(PhaseRef::is_last)
    }

    /// Returns true if only a look shows that an imported object exists. Looks may lag, so the object may
    /// have been deleted right before.
    fn is_only_seen(&self, change: &Change) -> bool {
        let mut steps = self.plan.steps.iter();
        self.runner.rates.stale > 0
            && change.action == Action::Import
            && !steps.any(|step| std::ptr::eq(&raw const self.plan.changes[step.change], change))
    }

    fn differs(&self, cloud: &Cloud, change: &Change, id: &ObjectId) -> Option<String> {
        let address = &change.address;
        if cloud.is_disordered(id) {
            return None;
        }
        let Some(live) = cloud.objects.get(id) else {
            return (!self.is_only_seen(change))
                .then(|| format!("{address} is said to be {id}, which is not there"));
        };
        let after = change.after.as_deref()?;
        let wrong = live.attributes.iter().find(|(name, value)| {
            let said = self.runner.harness.say(name);
            let planned = after.get(said).filter(|_| change.managed.contains(said));
            planned.is_some_and(|planned| match &***name {
                "secret" => !self.runner.is_secret(value),
                _ => !fits(cloud, planned, value),
            })
        });
        let (name, value) = wrong?;
        Some(format!("{address} is said to be as planned, and its {name} is {value:?}"))
    }
}
