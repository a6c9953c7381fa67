//! The text form of a fault.

use std::str::FromStr;
use std::time::Duration;

use super::{Fault, FaultKind, When};

/// The reason for which a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a fault: {reason}")]
pub struct FaultError {
    text: String,
    reason: String,
}

const KEYS: &str = "op, nth, every, p, seed, times, kind, latency";
const KINDS: &str = "latency:MS, status429[:SECONDS], error500-before, error500-after, lost, cut, \
                     stale-list:MS, hang";

/// The words that choose several calls.
const WORDS: &[&str] = &["*", "mutating", "list"];
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];
/// The first parts of paths: of the management API, of the job API, of the channel of workers.
const PATHS: &[&str] = &[
    "networkvolumes",
    "templates",
    "endpoints",
    "containerregistryauth",
    "pods",
    "billing",
    "run",
    "runsync",
    "status",
    "status-sync",
    "stream",
    "cancel",
    "retry",
    "purge-queue",
    "health",
    "requests",
    "openai",
    "job-take",
    "job-take-batch",
    "job-stop",
    "job-done",
    "job-stream",
    "ping",
];
/// The fields of GraphQL that are calls.
const FIELDS: &[&str] = &[
    "createNetworkVolume",
    "deleteEndpoint",
    "deleteNetworkVolume",
    "deleteRegistryAuth",
    "deleteTemplate",
    "gpuTypes",
    "myself",
    "pod",
    "podTemplate",
    "saveEndpoint",
    "saveRegistryAuth",
    "saveTemplate",
    "secretCreate",
    "secretDelete",
    "updateEndpointTemplate",
    "updateEndpointWorkersMax",
    "updateEndpointWorkersMin",
    "updateNetworkVolume",
    "updateRegistryAuth",
    "updateUserSettings",
];

/// The parts of a fault that have been read so far. `finish` checks that they fit each other.
#[derive(Default)]
struct Draft {
    operations: Vec<String>,
    nth: Option<u64>,
    every: Option<u64>,
    p: Option<f64>,
    seed: Option<u64>,
    times: Option<u64>,
    kind: Option<FaultKind>,
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        read(text).map_err(|reason| FaultError { text: text.to_owned(), reason })
    }
}

fn read(text: &str) -> Result<Fault, String> {
    let mut draft = Draft::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` has no `=`; write KEY=VALUE with a key of {KEYS}"))?;
        draft.set(key.trim(), value.trim())?;
    }
    draft.finish()
}

impl Draft {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "op" => self.operations = value.split('|').map(operation).collect::<Result<_, _>>()?,
            "nth" => self.nth = Some(count(key, value)?),
            "every" => self.every = Some(count(key, value)?),
            "times" => self.times = Some(count(key, value)?),
            "seed" => self.seed = Some(number(key, value)?),
            "p" => self.p = Some(probability(value)?),
            "latency" => self.kind = Some(FaultKind::Latency(millis(value)?)),
            "kind" => self.kind = Some(kind(value)?),
            _ => return Err(format!("there is no key `{key}`; there are {KEYS}")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Fault, String> {
        let kind = self.kind.ok_or_else(|| format!("it has no `kind`; there are {KINDS}"))?;
        let when = match (self.nth, self.every, self.p) {
            (None, None, None) => When::Always,
            (Some(nth), None, None) => When::Nth(nth),
            (None, Some(every), None) => When::Every(every),
            (None, None, Some(p)) => When::Probability { p, seed: self.seed.unwrap_or(0) },
            _ => return Err("only one of `nth`, `every` and `p` can be given".to_owned()),
        };
        if self.seed.is_some() && self.p.is_none() {
            return Err("`seed` goes with `p`".to_owned());
        }
        let any = || vec!["*".to_owned()];
        let operations = if self.operations.is_empty() { any() } else { self.operations };
        Ok(Fault { operations, when, times: self.times, kind })
    }
}

/// Checks the pattern of an operation. A pattern that can choose no call is a mistake, and so an
/// error.
fn operation(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_known = match text.split_once(' ') {
        Some((method, path)) => METHODS.contains(&method) && is_path(path.trim()),
        None => WORDS.contains(&text) || FIELDS.contains(&text),
    };
    if is_known {
        return Ok(text.to_owned());
    }
    Err(format!(
        "no call is named `{text}`; known are {}, a method and a path such as `POST /networkvolumes`, \
         whose first part is one of {}, and the GraphQL fields {}",
        WORDS.join(", "),
        PATHS.join(", "),
        FIELDS.join(", ")
    ))
}

/// Returns true for a path of the management APIs or the job API, also with its version and a real
/// id.
fn is_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let first = rest.split('/').next().unwrap_or_default();
    PATHS.contains(&first) || matches!(first, "v1" | "v2" | "graphql")
}

fn kind(value: &str) -> Result<FaultKind, String> {
    let (name, detail) = match value.split_once([':', '=']) {
        Some((name, detail)) => (name.trim(), Some(detail.trim())),
        None => (value, None),
    };
    match (name, detail) {
        ("latency", Some(ms)) => Ok(FaultKind::Latency(millis(ms)?)),
        ("stale-list", Some(ms)) => Ok(FaultKind::StaleList(i64::from(number::<u32>(name, ms)?))),
        ("latency" | "stale-list", None) => Err(format!("write `{name}:MS`")),
        ("status429", seconds) => {
            Ok(FaultKind::Status429(seconds.map_or(Ok(1), |seconds| number(name, seconds))?))
        }
        ("error500-before", None) => Ok(FaultKind::Error500Before),
        ("error500-after", None) => Ok(FaultKind::Error500After),
        ("lost", None) => Ok(FaultKind::Lost),
        ("cut", None) => Ok(FaultKind::Cut),
        ("hang", None) => Ok(FaultKind::Hang),
        _ => Err(format!("there is no kind `{value}`; there are {KINDS}")),
    }
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{key}` needs a whole number, not `{value}`"))
}

fn count(key: &str, value: &str) -> Result<u64, String> {
    match number(key, value)? {
        0 => Err(format!("`{key}` counts from 1")),
        count => Ok(count),
    }
}

fn millis(value: &str) -> Result<Duration, String> {
    number::<u32>("latency", value).map(|ms| Duration::from_millis(u64::from(ms)))
}

fn probability(value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err(format!("`p` is a probability between 0 and 1, not `{value}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_documented() {
        let fault: Fault = "op=POST /networkvolumes,nth=3,kind=lost".parse().unwrap();
        assert_eq!(fault.operations, ["POST /networkvolumes"]);
        assert_eq!((fault.when, fault.kind), (When::Nth(3), FaultKind::Lost));
        let fault: Fault = "p=0.1,seed=7,kind=status429:2,times=4".parse().unwrap();
        assert_eq!(fault.when, When::Probability { p: 0.1, seed: 7 });
        assert_eq!((fault.kind, fault.times), (FaultKind::Status429(2), Some(4)));
        let latency = |text: &str| text.parse::<Fault>().unwrap().kind;
        assert_eq!(latency("latency=50"), latency("kind=latency:50"));
    }

    #[test]
    fn a_wrong_fault_says_what_to_write() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(expected), "{error}");
        };
        check("lost", "KEY=VALUE");
        check("op=*", "no `kind`");
        check("kind=gone", "error500-after");
        check("op=foo,kind=lost", "no call is named `foo`; known are *, mutating, list");
        check("op=mutating|POTS /run,kind=lost", "no call is named `POTS /run`");
        check("op=POST /networkvolume,kind=lost", "networkvolumes");
        for known in ["GET /templates/{id}", "PATCH /endpoints/abc", "GET /job-take", "myself"] {
            format!("op={known},kind=lost").parse::<Fault>().unwrap();
        }
        check("nth=0,kind=lost", "counts from 1");
        check("nth=1,p=1,kind=lost", "only one of");
        check("p=7,kind=lost", "between 0 and 1");
        check("seed=7,kind=lost", "goes with `p`");
        check("when=1,kind=lost", "no key `when`");
    }
}
