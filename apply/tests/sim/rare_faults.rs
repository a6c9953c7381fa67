//! Harsh schedules (`PLUMB_SIM_HARSH=1`): many rare things at once, such as saved plans, runs about a part of
//! the spec, deaths, second runners, idle days and lost calls.
//!
//! Their rates replace those of ordinary schedules. A failure that needs four rare things at once shows
//! sooner here.

use std::sync::LazyLock;

use crate::faults::Rates;
use crate::rng::Rng;
use crate::schedule::{HOUR_MS, Narrow, Other, RunPlan};

static IS_ASKED: LazyLock<bool> = LazyLock::new(|| crate::number("PLUMB_SIM_HARSH").is_some());

/// Returns true if schedules are harsh.
pub(crate) fn is_asked() -> bool {
    *IS_ASKED
}

/// Makes the runs of a schedule harsher if that is asked for. Runs without faults stay as they are.
pub(crate) fn draw(seed: u64, runs: &mut [RunPlan]) {
    if !*IS_ASKED {
        return;
    }
    let mut rng = Rng::new(Rng::new(seed ^ 0x4a5).next());
    for run in runs.iter_mut().filter(|run| run.rates != Rates::default()) {
        harshen(run, &mut rng);
    }
}

fn harshen(run: &mut RunPlan, rng: &mut Rng) {
    let rates = &mut run.rates;
    let common = [
        &mut rates.lost_before,
        &mut rates.lost_after,
        &mut rates.doubled,
        &mut rates.late,
        &mut rates.looks_fail,
        &mut rates.stale,
        &mut rates.incomplete,
    ];
    for rate in common {
        if rng.per_mille(600) {
            *rate = rng.between(30, 250);
        }
    }
    if rng.per_mille(400) {
        let which = if rng.per_mille(500) { Narrow::Target } else { Narrow::Exclude };
        run.narrow = Some((which, rng.index(64)));
    }
    if rng.per_mille(400) {
        run.saved_for_ms = Some(*rng.pick(&[0, 5_000, 60_000]));
    }
    if rng.per_mille(500) {
        run.crash_at = Some(rng.between(1, 60));
    }
    if rng.per_mille(300) {
        let for_ms = *rng.pick(&[100, 3_000, 20_000, 200_000]);
        run.other = Some(Other::TakesOver { at: rng.between(1, 60), for_ms });
        run.other_crash_at = rng.per_mille(500).then(|| rng.between(1, 60));
    }
    if rng.per_mille(300) {
        run.idle_ms = rng.between(1, 30) * HOUR_MS;
    }
}
