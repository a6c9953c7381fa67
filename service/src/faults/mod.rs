//! Faults on request: mishaps of a network and of a service, for tests of clients.
//!
//! A fault chooses calls and says what happens to them. It says nothing about how the service
//! behaves in general: that is a quirk.
//!
//! # Text form
//!
//! `KEY=VALUE` separated by commas, for example `op=POST /networkvolumes,nth=3,kind=lost`:
//!
//! | key | value |
//! |---|---|
//! | `op` | which calls, several separated by <code>&#124;</code>: `*` (every call of a client), `mutating`, `list`, a REST operation (`POST /networkvolumes`, `GET /networkvolumes/{id}`, `PATCH /networkvolumes`, also with a real id), a GraphQL field (`saveEndpoint`, `myself`), an operation of the job API (`POST /run`, `GET /status`) or of the worker channel (`GET /job-take`). Default `*` |
//! | `nth` | only the n-th chosen call, counted from 1 |
//! | `every` | each n-th chosen call |
//! | `p`, `seed` | each chosen call with this probability, the same ones for the same seed (default seed 0) |
//! | `times` | at most so often |
//! | `kind` | what happens, see below. Required |
//!
//! | kind | what happens |
//! |---|---|
//! | `latency:MS` (or the key `latency=MS`) | the call takes so much longer |
//! | `status429[:SECONDS]` | 429 with `Retry-After` (default 1), no effect |
//! | `error500-before` | 500, no effect |
//! | `error500-after` | 500, and the effect has happened |
//! | `lost` | the effect has happened, the connection is cut without an answer |
//! | `cut` | the connection is cut, no effect |
//! | `stale-list:MS` | this list does not show what was written in the last so many milliseconds |
//! | `hang` | no answer at all, no effect, until the client gives up |
//!
//! Several faults may be given. All latencies that apply add up; of the others the first wins.

mod parse;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use parse::FaultError;

/// One fault: which calls, when, and what happens to them. Read from text, see [`Fault::HELP`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    operations: Vec<String>,
    when: When,
    times: Option<u64>,
    kind: FaultKind,
}

/// Which of the chosen calls a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Always,
    Nth(u64),
    Every(u64),
    Probability { p: f64, seed: u64 },
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Latency(Duration),
    Status429(u64),
    Error500Before,
    Error500After,
    Lost,
    Cut,
    StaleList(i64),
    Hang,
}

/// A call as faults and the access log see it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// `POST /networkvolumes`, or the names of GraphQL fields.
    pub(crate) operations: Vec<String>,
    /// Method and real path after the version, for patterns with a real id.
    pub(crate) literal: String,
    pub(crate) mutating: bool,
    pub(crate) list: bool,
    /// Calls of workers are chosen by name only.
    pub(crate) internal: bool,
}

/// What happens to one call, all faults taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mishap {
    pub(crate) latency: Duration,
    pub(crate) stale_ms: i64,
    pub(crate) kind: Option<FaultKind>,
}

impl Fault {
    /// The text form, for people who ask for help.
    pub const HELP: &'static str = "\
KEY=VALUE,… such as `op=POST /networkvolumes,nth=3,kind=lost`. Keys: op (*, mutating, list, \
`POST /networkvolumes`, `saveEndpoint`, `POST /run`, several with |), nth, every, p and seed, \
times, kind. Kinds: latency:MS, status429[:SECONDS], error500-before, error500-after, lost, cut, \
stale-list:MS, hang.";

    fn chooses(&self, call: &Call) -> bool {
        self.operations.iter().any(|pattern| match pattern.as_str() {
            "*" => !call.internal,
            "mutating" => call.mutating,
            "list" => call.list,
            pattern => {
                pattern == call.literal
                    || call.operations.iter().any(|operation| named(operation, pattern))
            }
        })
    }
}

/// Returns true if a pattern names an operation; an operation on one object also goes by its collection
/// where no operation on the collection has that name (`PATCH /templates`, `POST /cancel`).
fn named(operation: &str, pattern: &str) -> bool {
    let short = operation
        .strip_suffix("/{id}")
        .filter(|_| !operation.starts_with("GET ") || crate::gate::is_job_operation(operation));
    operation == pattern || short == Some(pattern)
}

/// The faults of a running service, with their counts.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Armed>);

#[derive(Debug)]
struct Armed {
    fault: Fault,
    chosen: AtomicU64,
    struck: AtomicU64,
}

impl Faults {
    pub(crate) fn new(faults: Vec<Fault>) -> Faults {
        let arm = |fault| Armed { fault, chosen: AtomicU64::new(0), struck: AtomicU64::new(0) };
        Faults(faults.into_iter().map(arm).collect())
    }

    /// Decides what happens to this call. Every fault that chooses the call counts it.
    pub(crate) fn strike(&self, call: &Call) -> Mishap {
        let mut mishap = Mishap::default();
        for armed in self.0.iter().filter(|armed| armed.fault.chooses(call)) {
            if !armed.strikes() {
                continue;
            }
            match armed.fault.kind {
                FaultKind::Latency(more) => mishap.latency += more,
                FaultKind::StaleList(ms) => mishap.stale_ms = mishap.stale_ms.max(ms),
                kind => mishap.kind = mishap.kind.or(Some(kind)),
            }
        }
        mishap
    }
}

impl Armed {
    fn strikes(&self) -> bool {
        let number = self.chosen.fetch_add(1, Relaxed) + 1;
        let due = match self.fault.when {
            When::Always => true,
            When::Nth(nth) => number == nth,
            When::Every(every) => number.is_multiple_of(every),
            When::Probability { p, seed } => unit(seed, number) < p,
        };
        due && self.fault.times.is_none_or(|times| self.struck.fetch_add(1, Relaxed) < times)
    }
}

/// A number in 0..1 that depends on nothing but its arguments (splitmix64).
#[expect(clippy::cast_precision_loss, reason = "53 bits fit a float exactly")]
fn unit(seed: u64, number: u64) -> f64 {
    let mut mixed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(operation: &str, literal: &str) -> Call {
        Call {
            operations: vec![operation.to_owned()],
            literal: literal.to_owned(),
            mutating: !operation.starts_with("GET"),
            list: operation == "GET /networkvolumes",
            internal: false,
        }
    }

    fn strikes(text: &str, calls: &[&Call]) -> Vec<bool> {
        let faults = Faults::new(vec![text.parse().unwrap()]);
        calls.iter().map(|call| faults.strike(call) != Mishap::default()).collect()
    }

    #[test]
    fn patterns_choose_calls() {
        let create = call("POST /networkvolumes", "POST /networkvolumes");
        let list = call("GET /networkvolumes", "GET /networkvolumes");
        let read = call("GET /networkvolumes/{id}", "GET /networkvolumes/abc");
        let patch = call("PATCH /networkvolumes/{id}", "PATCH /networkvolumes/abc");
        let all = [&create, &list, &read, &patch];
        let check = |pattern: &str, expected: [bool; 4]| {
            assert_eq!(strikes(&format!("op={pattern},kind=cut"), &all), expected, "{pattern}");
        };
        check("*", [true; 4]);
        check("mutating", [true, false, false, true]);
        check("list", [false, true, false, false]);
        check("POST /networkvolumes", [true, false, false, false]);
        check("GET /networkvolumes", [false, true, false, false]);
        check("GET /networkvolumes/{id}", [false, false, true, false]);
        check("PATCH /networkvolumes", [false, false, false, true]);
        check("PATCH /networkvolumes/abc|POST /networkvolumes", [true, false, false, true]);
        check("PATCH /networkvolumes/xyz", [false; 4]);
    }

    #[test]
    fn counts_choose_among_the_chosen() {
        let one = call("POST /networkvolumes", "POST /networkvolumes");
        let five = [&one; 5];
        assert_eq!(strikes("nth=3,kind=lost", &five), [false, false, true, false, false]);
        assert_eq!(strikes("every=2,kind=lost", &five), [false, true, false, true, false]);
        assert_eq!(strikes("times=2,kind=lost", &five), [true, true, false, false, false]);
    }

    #[test]
    fn probability_is_reproducible_and_about_right() {
        let one = call("POST /networkvolumes", "POST /networkvolumes");
        let many = vec![&one; 10_000];
        let first = strikes("p=0.1,seed=7,kind=lost", &many);
        assert_eq!(first, strikes("p=0.1,seed=7,kind=lost", &many));
        assert_ne!(first, strikes("p=0.1,seed=8,kind=lost", &many));
        let count = first.iter().filter(|struck| **struck).count();
        assert!((800..1200).contains(&count), "{count}");
    }
}
