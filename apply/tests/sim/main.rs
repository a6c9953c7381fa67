//! The deterministic simulator: the real planner, executor, journal and recovery against a cloud in memory,
//! in virtual time. One seed decides every fault.
//!
//! `PLUMB_SIM_SCHEDULES` sets the number of schedules, `PLUMB_SIM_FIRST` the first seed, and
//! `PLUMB_SIM_THREADS` the number of threads. `PLUMB_SIM_SEED` runs one seed, and shows its trace if it
//! fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api_variant;
mod audit;
mod bad_wire;
mod bugs;
mod cloud;
mod convergence;
mod exhaustive;
mod faults;
mod faulty_disk;
mod graphql;
mod imports;
mod invariants;
mod keys;
mod one_run;
mod operator;
mod place;
mod port;
mod rare_faults;
mod report;
mod request_body;
mod rng;
mod runner;
mod schedule;
mod secrets;
mod service;
#[path = "../support/shapes.rs"]
mod shapes;
mod shrink;
mod simulation;
mod store_spy;
mod tickets;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bugs::Bug;
use schedule::Schedule;
use simulation::{Outcome, simulate};

/// The allocator of the real binary. The system's allocator would take a fifth of the time of a schedule.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of schedules that an ordinary test run plays.
const ORDINARY: u64 = 500;

/// The number of schedules within which a planted bug must be seen.
const CAUGHT_WITHIN: u64 = 3_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs one schedule. A panic is a violation like any other.
fn play(schedule: &Schedule, bug: Option<Bug>, verbose: bool) -> Outcome {
    let run = std::panic::AssertUnwindSafe(|| simulate(schedule, bug, verbose));
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.unwrap_or_else(|| "without a text".to_owned());
        let violations = vec![format!("panic: {text}")];
        Outcome { violations, hash: 0, counts: BTreeMap::new(), lines: Vec::new() }
    })
}

/// Returns all that a person needs to reproduce a failure: the seed, the shrunk schedule, its specs, its
/// trace and its violations.
fn report(seed: u64, bug: Option<Bug>) -> String {
    let whole = Schedule::draw(seed);
    let small = shrink::shrink(&whole, bug);
    let outcome = play(&small, bug, true);
    let mut text = format!(
        "seed {seed} fails; again: PLUMB_SIM_SEED={seed} cargo test -p apply --test sim schedules\n"
    );
    writeln!(text, "shrunk to {small:#?}").unwrap();
    for run in &small.runs {
        writeln!(text, "--\n{}", run.spec.text(small.harness)).unwrap();
    }
    for line in &outcome.lines {
        writeln!(text, "{line}").unwrap();
    }
    for violation in &outcome.violations {
        writeln!(text, "- {violation}").unwrap();
    }
    text
}

/// The results of many schedules: the seeds that failed, and how often each event occurred.
#[derive(Default)]
struct Total {
    failed: Vec<(u64, String)>,
    counts: BTreeMap<&'static str, u64>,
}

/// Runs a range of seeds on several threads. One seed in a hundred runs twice, and must leave the same trace.
fn play_all(first: u64, schedules: u64, bug: Option<Bug>, stop_at_first: bool) -> Total {
    let next = AtomicU64::new(first);
    let over = AtomicBool::new(false);
    let total = Mutex::new(Total::default());
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + schedules {
                return;
            }
            let schedule = Schedule::draw(seed);
            if bug.is_some_and(|bug| !bug.is_in(&schedule)) {
                continue;
            }
            let mut outcome = play(&schedule, bug, false);
            if seed.is_multiple_of(100) && play(&schedule, bug, false).hash != outcome.hash {
                outcome.violations.push("the same seed left another trace".to_owned());
            }
            let mut total = total.lock().unwrap();
            for (what, count) in outcome.counts {
                *total.counts.entry(what).or_default() += count;
            }
            if let Some(violation) = outcome.violations.first() {
                total.failed.push((seed, violation.clone()));
                over.store(stop_at_first || total.failed.len() >= 20, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..number("PLUMB_SIM_THREADS").unwrap_or(2) {
            scope.spawn(work);
        }
    });
    let mut total = total.into_inner().unwrap();
    total.failed.sort();
    total
}

#[test]
fn schedules_hold() {
    if let Some(seed) = number("PLUMB_SIM_SEED") {
        let outcome = play(&Schedule::draw(seed), None, true);
        assert!(outcome.violations.is_empty(), "{}", report(seed, None));
        return;
    }
    let schedules = number("PLUMB_SIM_SCHEDULES").unwrap_or(ORDINARY);
    let total = play_all(number("PLUMB_SIM_FIRST").unwrap_or(0), schedules, None, false);
    let first = total.failed.first().map(|(seed, _)| report(*seed, None)).unwrap_or_default();
    assert!(total.failed.is_empty(), "{:#?}\n{first}", total.failed);
    // A test proves nothing about an event that no schedule brings about.
    let events = [
        "crashes",
        "takeovers",
        "power cuts",
        "late effects",
        "meddling",
        "failed writes",
        "narrowed runs",
        "saved plans",
        "stale plans",
        "saves in between",
        "plans after a success",
    ];
    let faults = faults::Rates::default().classes().map(|(class, _)| class);
    for what in events.into_iter().chain(faults) {
        let count = total.counts.get(what).copied().unwrap_or(0);
        assert!(count >= schedules / 200, "{what}: {count} in {schedules} schedules");
    }
    // Only one schedule in fourteen has a disk, and a disk seldom fails. A stranger seldom deletes so many
    // objects that Plumb asks. In harsh schedules runs die more often, so they write less.
    let seldom = if rare_faults::is_asked() { 2_000 } else { 1_000 };
    for what in ["disk before", "disk within", "disk after", "vanished"] {
        let count = total.counts.get(what).copied().unwrap_or(0);
        assert!(count >= schedules / seldom, "{what}: {count} in {schedules} schedules");
    }
    let counts = &total.counts;
    assert!(number("PLUMB_SIM_COUNTS").is_none(), "counts, as asked for: {counts:#?}");
}

#[test]
fn planted_bugs_are_caught() {
    let mut missed = Vec::new();
    let mut caught = String::new();
    for &(bug, seen_at) in bugs::ALL {
        // The seed that showed the bug last is only a short cut.
        let mut total = play_all(seen_at, 1, Some(bug), true);
        if total.failed.is_empty() || number("PLUMB_SIM_SCHEDULES").is_some() {
            total = play_all(0, CAUGHT_WITHIN, Some(bug), true);
        }
        match total.failed.first() {
            Some((seed, violation)) => writeln!(caught, "{bug:?} at {seed}: {violation}").unwrap(),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}\n{caught}");
    assert!(number("PLUMB_SIM_COUNTS").is_none(), "counts, as asked for:\n{caught}");
}
