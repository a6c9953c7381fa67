//! The plan linter: one function for each invariant of a plan.
//!
//! A plan that passes can be run, whatever code made it. A note means a mistake in Plumb, not in the spec.
//! Every plan goes through the linter, in tests and in production.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::address::{Block, Name};
use crate::journal::{PhaseRef, ProgramKind};
use crate::plan::referred::{Reference, each};
use crate::plan::{Action, Plan, Step, StepId};
use crate::schema::Operation;
use crate::work::{self, InTurn, Workers};

/// Returns a note for each broken invariant of a plan; an empty list if the plan can be run.
pub fn lint(plan: &Plan) -> Vec<String> {
    lint_with(plan, &InTurn)
}

/// Lints a plan and spreads the checks over the workers.
pub(super) fn lint_with(plan: &Plan, workers: &dyn Workers) -> Vec<String> {
    let checks: [fn(&Plan, &mut Vec<String>); 7] = [
        steps_are_numbered,
        needs_come_first,
        changes_have_steps,
        no_phase_twice,
        phases_in_order,
        slots_have_producers,
        replaces_go_both_ways,
    ];
    let notes = work::map(workers, checks.len(), |number| {
        let mut notes = Vec::new();
        checks[number](plan, &mut notes);
        notes
    });
    notes.concat()
}

fn steps_are_numbered(plan: &Plan, notes: &mut Vec<String>) {
    for (index, step) in plan.steps.iter().enumerate() {
        if step.id.0 as usize != index {
            notes.push(format!("step {} stands at place {index}", step.id));
        }
        let change = plan.changes.get(step.change);
        if change.is_none_or(|change| change.address != step.address) {
            notes.push(format!("step {} belongs to no change of {}", step.id, step.address));
        }
    }
}

fn needs_come_first(plan: &Plan, notes: &mut Vec<String>) {
    for step in &plan.steps {
        for need in step.needs.iter().filter(|need| **need >= step.id) {
            notes.push(format!("step {} needs {need}, which is not before it", step.id));
        }
    }
}

fn changes_have_steps(plan: &Plan, notes: &mut Vec<String>) {
    let mut counts = vec![0_usize; plan.changes.len()];
    for step in plan.steps.iter().filter(|step| !step.operation.only_judges()) {
        if let Some(count) = counts.get_mut(step.change) {
            *count += 1;
        }
    }
    for (change, count) in plan.changes.iter().zip(counts) {
        // An import has a step for each of its differences, and no step without differences.
        let stateful = match change.action {
            Action::Import => change.causes.is_empty(),
            action => matches!(action, Action::NoOp | Action::Move | Action::Read),
        };
        if stateful != (count == 0) {
            let action = change.action.word();
            notes.push(format!("the {action} of {} has {count} steps", change.address));
        }
    }
}

fn no_phase_twice(plan: &Plan, notes: &mut Vec<String>) {
    let phase = |step: &Step| Some((step.change, step.phase?, step.id));
    let mut phases: Vec<_> = plan.steps.iter().filter_map(phase).collect();
    phases.sort_unstable();
    for pair in phases.windows(2) {
        let (change, phase, id) = pair[1];
        if (change, phase) == (pair[0].0, pair[0].1) {
            let address = &plan.steps[id.0 as usize].address;
            notes.push(format!("step {id} repeats a phase of {address}"));
        }
    }
}

fn phases_in_order(plan: &Plan, notes: &mut Vec<String>) {
    let mut last: FxHashMap<(usize, ProgramKind), (PhaseRef, StepId)> = FxHashMap::default();
    for step in &plan.steps {
        let Some(phase) = step.phase else { continue };
        let Some((before, id)) = last.insert((step.change, phase.kind), (phase, step.id)) else {
            continue;
        };
        // An unfinished update that another update follows may leave phases out.
        let follows = phase.program != before.program
            || phase.phase == before.phase + 1
            || phase.kind == ProgramKind::Update && phase.phase > before.phase;
        if !follows || !step.needs.contains(&id) {
            let before = before.phase;
            notes.push(format!("step {} does not follow phase {before} of its change", step.id));
        }
    }
}

/// The steps that make objects, by block and key.
#[derive(Default)]
struct Producers<'p> {
    by_key: FxHashMap<(&'p Block, Option<&'p Name>), StepId>,
    by_block: FxHashMap<&'p Block, Vec<Option<&'p Name>>>,
}

impl<'p> Producers<'p> {
    fn of(plan: &'p Plan) -> Self {
        let mut found = Self::default();
        found.by_key.reserve(plan.steps.len());
        for step in plan.steps.iter().filter(|step| step.phase.is_some_and(PhaseRef::makes)) {
            let (block, key) = (&step.address.block, step.address.key.as_ref());
            found.by_key.insert((block, key), step.id);
            found.by_block.entry(block).or_default().push(key);
        }
        found
    }

    /// Calls `visit` for each object that a reference names and that the plan makes, with the key of the
    /// object and the step that makes it.
    fn each<'v>(
        &'v self,
        reference: Reference<'v>,
        visit: &mut dyn FnMut(Option<&'v Name>, StepId),
    ) {
        let Reference { block, names: [first, _] } = reference;
        let written = [None, first];
        let keys: &[Option<&Name>] = match first {
            Some(_) => &written,
            None => self.by_block.get(block).map_or(&[], Vec::as_slice),
        };
        for key in keys {
            if let Some(&step) = self.by_key.get(&(block, *key)) {
                visit(*key, step);
            }
        }
    }
}

/// Notes each residual that refers to an object whose producing step may come later. An object that no step
/// makes exists already.
fn slots_have_producers(plan: &Plan, notes: &mut Vec<String>) {
    let producers = Producers::of(plan);
    let mut firsts: Vec<Option<&Step>> = vec![None; plan.changes.len()];
    for step in &plan.steps {
        let ups = step.phase.is_some_and(|phase| phase.kind != ProgramKind::Delete);
        if let (true, Some(first)) = (ups, firsts.get_mut(step.change)) {
            first.get_or_insert(step);
        }
    }
    let mut budget = LOOKS_MAX;
    for (change, first) in plan.changes.iter().zip(firsts) {
        let Some(step) = first else { continue };
        for value in change.after.iter().flat_map(|after| after.values()) {
            each(value, &mut |reference| {
                let block = reference.block;
                producers.each(reference, &mut |key, producer| {
                    let is_own =
                        *block == change.address.block && key == change.address.key.as_ref();
                    if !is_own && !reaches(plan, step.id, producer, &mut budget) {
                        let address = block.instance(key.cloned());
                        let uses = format!("step {} uses {address}", step.id);
                        notes.push(format!("{uses} and does not wait for it"));
                    }
                });
            });
        }
    }
}

/// The number of steps that the check of slots looks at in one plan. In a chain in which each step uses what
/// the first one makes, looking at all of them would cost the square of its length. Beyond the bound the
/// check notes nothing; the executor still refuses a slot without a value.
const LOOKS_MAX: usize = 1_000_000;

/// Returns true if a step waits for another, directly or through others; true where the budget is used up.
fn reaches(plan: &Plan, from: StepId, to: StepId, budget: &mut usize) -> bool {
    // Nearly always the step itself has the need.
    let direct = plan.steps.get(from.0 as usize).is_some_and(|step| step.needs.contains(&to));
    if direct {
        *budget = budget.saturating_sub(1);
        return true;
    }
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if *budget == 0 {
            return true;
        }
        *budget -= 1;
        if id == to {
            return true;
        }
        if let Some(step) = plan.steps.get(id.0 as usize) {
            open.extend(step.needs.iter().filter(|need| **need >= to && seen.insert(**need)));
        }
    }
    false
}

fn replaces_go_both_ways(plan: &Plan, notes: &mut Vec<String>) {
    let replaces = |index: usize| {
        plan.changes.get(index).is_some_and(|change| change.action == Action::Replace)
    };
    let mut kinds: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
    for step in plan.steps.iter().filter(|step| replaces(step.change)) {
        let kind = step.phase.map(|phase| phase.kind);
        let (creates, ends) = kinds.entry(step.change).or_default();
        *creates |= kind == Some(ProgramKind::Create);
        // This plan or a later one deletes an object that is put aside; an object that is let go is out of
        // the way, too.
        *ends |= kind == Some(ProgramKind::Delete)
            || step.deposes
            || step.operation == Operation::Forget;
    }
    for (index, change) in plan.changes.iter().enumerate() {
        let both = kinds.get(&index).is_some_and(|&(creates, ends)| creates && ends);
        if change.action == Action::Replace && !both {
            notes.push(format!("the replace of {} does not create and delete", change.address));
        }
    }
}
