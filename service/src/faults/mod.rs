//! Faults on request: mishaps of a network and of a service, for tests of clients.
//!
//! A fault chooses calls and defines what happens to them. Permanent differences in behaviour are
//! quirks, not faults.
//!
//! # Text form
//!
//! `KEY=VALUE` separated by commas, for example `op=POST /networkvolumes,nth=3,kind=lost`:
//!
//! | key | value |
//! |---|---|
//! | `op` | the calls, several separated by <code>&#124;</code>, as listed below; default `*` |
//! | `nth` | only the n-th chosen call, counted from 1 |
//! | `every` | each n-th chosen call |
//! | `p`, `seed` | each chosen call with this probability; the same calls for the same seed (default 0) |
//! | `times` | at most this many times |
//! | `kind` | the effect, as listed below; required |
//!
//! | op | chosen calls |
//! |---|---|
//! | `*` | every call of a client |
//! | `mutating`, `list` | mutating calls; lists |
//! | `POST /networkvolumes`, `GET /networkvolumes/{id}`, … | a REST operation, also with a real id |
//! | `saveEndpoint`, `myself`, … | a GraphQL field |
//! | `POST /run`, `GET /status`, … | an operation of the job API |
//! | `GET /job-take`, … | a call of a worker to its channel |
//!
//! | kind | effect |
//! |---|---|
//! | `latency:MS` (or the key `latency=MS`) | the call takes MS milliseconds longer |
//! | `status429[:SECONDS]` | 429 with `Retry-After` (default 1), no effect |
//! | `error500-before` | 500, no effect |
//! | `error500-after` | 500 after the effect |
//! | `lost` | the connection is cut after the effect, without an answer |
//! | `cut` | the connection is cut, no effect |
//! | `stale-list:MS` | the list omits writes of the last MS milliseconds |
//! | `hang` | no answer and no effect until the client gives up |
//!
//! Several faults may be given. All latencies that apply add up, and the largest staleness counts.
//! Of the other kinds the first one wins.

mod parse;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use parse::FaultError;

/// One fault: its calls, its condition, and its effect. Read from text, see [`Fault::HELP`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    operations: Vec<String>,
    when: When,
    times: Option<u64>,
    kind: FaultKind,
}

/// The condition by which a fault strikes some of its chosen calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Always,
    Nth(u64),
    Every(u64),
    Probability { p: f64, seed: u64 },
}

/// The effect of a fault on a call.
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

/// The properties of a call that faults and the access log need.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The names of the call: `POST /networkvolumes`, or the names of GraphQL fields.
    pub(crate) operations: Vec<String>,
    /// The method and the real path without the version, for patterns with a real id.
    pub(crate) literal: String,
    pub(crate) mutating: bool,
    pub(crate) list: bool,
    /// True for calls of workers. Faults choose them by name only, never with `*`.
    pub(crate) internal: bool,
}

/// The effects of all faults on one call, combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mishap {
    pub(crate) latency: Duration,
    pub(crate) stale_ms: i64,
    pub(crate) kind: Option<FaultKind>,
}

impl Fault {
    /// The description of the text form, for help texts.
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

/// Returns true if a pattern names an operation. An operation on one object also has the name of
/// its collection, unless the collection has an operation of that name (`PATCH /templates`,
/// `POST /cancel`).
fn named(operation: &str, pattern: &str) -> bool {
    let short = operation
        .strip_suffix("/{id}")
        .filter(|_| !operation.starts_with("GET ") || crate::gate::is_job_operation(operation));
    operation == pattern || short == Some(pattern)
}

/// The faults of a running service, with the number of calls that each has chosen and struck.
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

    /// Returns the effects of the faults on this call. Every fault that chooses the call counts it.
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

/// Returns a number from 0 to 1, without 1, that depends only on the arguments (splitmix64).
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
