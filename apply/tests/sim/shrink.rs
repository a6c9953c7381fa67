//! Shrinking of a failing schedule: first the simpler harness and store, then fewer runs, then fewer faults
//! and smaller specs.

use crate::api_variant::Harness;
use crate::bugs::Bug;
use crate::schedule::{Schedule, StoreKind};
use crate::simulation::simulate;

/// The largest number of schedules that shrinking tries.
const TRIES: usize = 400;

/// Returns the smallest schedule found that still fails.
pub(crate) fn shrink(schedule: &Schedule, bug: Option<Bug>) -> Schedule {
    let mut best = schedule.clone();
    let mut tries = 0;
    loop {
        let smaller = candidates(&best).into_iter().find(|candidate| {
            tries += 1;
            tries <= TRIES && fails(candidate, bug)
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

fn fails(schedule: &Schedule, bug: Option<Bug>) -> bool {
    let run = std::panic::AssertUnwindSafe(|| simulate(schedule, bug, false));
    std::panic::catch_unwind(run).map_or(true, |outcome| !outcome.violations.is_empty())
}

#[expect(clippy::too_many_lines, reason = "a list of the ways to make a schedule smaller")]
fn candidates(schedule: &Schedule) -> Vec<Schedule> {
    let mut all = Vec::new();
    let mut push = |edit: &dyn Fn(&mut Schedule)| {
        let mut candidate = schedule.clone();
        edit(&mut candidate);
        all.push(candidate);
    };
    push(&|schedule| schedule.harness = Harness::Port);
    push(&|schedule| schedule.store = StoreKind::Memory);
    all.retain(|candidate| {
        candidate.harness != schedule.harness || candidate.store != schedule.store
    });
    let mut push = |edit: &dyn Fn(&mut Schedule)| {
        let mut candidate = schedule.clone();
        edit(&mut candidate);
        all.push(candidate);
    };
    for number in 0..schedule.runs.len() {
        push(&|schedule| drop(schedule.runs.remove(number)));
    }
    for (number, run) in schedule.runs.iter().enumerate() {
        if run.other.is_some() {
            push(&|schedule| schedule.runs[number].other = None);
        }
        if run.other_crash_at.is_some() {
            push(&|schedule| schedule.runs[number].other_crash_at = None);
        }
        if run.narrow.is_some() {
            push(&|schedule| schedule.runs[number].narrow = None);
        }
        if run.meddling.is_some() {
            push(&|schedule| schedule.runs[number].meddling = None);
        }
        if !run.offers.is_empty() {
            push(&|schedule| drop(schedule.runs[number].offers.pop()));
        }
        if run.grows_every.is_some() {
            push(&|schedule| schedule.runs[number].grows_every = None);
        }
        if run.deletes > 1 {
            push(&|schedule| schedule.runs[number].deletes = 1);
        }
        if run.meddles_after.is_some() {
            push(&|schedule| schedule.runs[number].meddles_after = None);
        }
        if run.withdraws.is_some() {
            push(&|schedule| schedule.runs[number].withdraws = None);
        }
        if run.by_command {
            push(&|schedule| schedule.runs[number].by_command = false);
        }
        if run.crash_at.is_some() {
            push(&|schedule| schedule.runs[number].crash_at = None);
        }
        if run.stop_after_ms.is_some() {
            push(&|schedule| schedule.runs[number].stop_after_ms = None);
        }
        if run.saved_for_ms.is_some() {
            push(&|schedule| schedule.runs[number].saved_for_ms = None);
        }
        if run.parallelism > 1 {
            push(&|schedule| schedule.runs[number].parallelism = 1);
        }
        for (class, (_, rate)) in run.rates.clone().classes().iter().enumerate() {
            if **rate > 0 {
                push(&|schedule| *schedule.runs[number].rates.classes()[class].1 = 0);
            }
        }
        for spec in run.spec.smaller() {
            push(&|schedule| schedule.runs[number].spec = spec.clone());
        }
    }
    all
}
