//! The numbers and times of requests by interface and status, and the refusals of rates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::histogram::{Bounds, Histogram};
use crate::ids;

/// The names of the interfaces in metrics. The last one is for requests to all other paths.
const INTERFACES: [&str; 8] =
    ["rest_v1", "rest_v2", "graphql", "jobs", "workers", "load_balancer", "console", "other"];

/// The number of counted statuses. Status 0 is a request without an answer.
const STATUSES: usize = 600;

const BOUNDS: Bounds =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The counts of all requests.
pub(crate) struct RequestCounts {
    interfaces: [InterfaceCounts; INTERFACES.len()],
    refusals: Mutex<BTreeMap<&'static str, u64>>,
}

/// The counts of one interface.
struct InterfaceCounts {
    statuses: Box<[AtomicU64]>,
    times: Histogram,
}

impl Default for RequestCounts {
    fn default() -> RequestCounts {
        let counts = |_| InterfaceCounts {
            statuses: (0..STATUSES).map(|_| AtomicU64::new(0)).collect(),
            times: Histogram::new(BOUNDS),
        };
        RequestCounts { interfaces: std::array::from_fn(counts), refusals: Mutex::default() }
    }
}

/// One request under way. It is counted when this is dropped, with or without an answer.
pub(crate) struct Measured<'a> {
    counts: &'a InterfaceCounts,
    began: Instant,
    status: u16,
}

impl Measured<'_> {
    /// Notes the status of the answer.
    pub(crate) fn answered(mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.counts.statuses.get(usize::from(self.status)) {
            count.fetch_add(1, Relaxed);
        }
        self.counts.times.observe(self.began.elapsed());
    }
}

impl RequestCounts {
    /// Begins to measure a request to this path.
    pub(crate) fn begin(&self, path: &str) -> Measured<'_> {
        let counts = &self.interfaces[interface(path)];
        Measured { counts, began: Instant::now(), status: 0 }
    }

    /// Counts a request that a rate refused. `limit` is the name of the rate.
    pub(crate) fn refused(&self, limit: &'static str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(limit).or_default() += 1;
    }

    /// Returns the non-zero numbers of requests, by interface and status.
    pub(super) fn statuses(&self) -> Vec<(&'static str, usize, u64)> {
        let mut found = Vec::new();
        for (name, counts) in INTERFACES.iter().zip(&self.interfaces) {
            let numbers = counts.statuses.iter().map(|count| count.load(Relaxed)).enumerate();
            let seen = numbers.filter(|(_, number)| *number > 0);
            found.extend(seen.map(|(status, number)| (*name, status, number)));
        }
        found
    }

    /// Returns the times of the interfaces that had requests.
    pub(super) fn times(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let all = INTERFACES.iter().zip(&self.interfaces);
        all.map(|(name, counts)| (*name, &counts.times))
            .filter(|(_, times)| times.distribution().count > 0)
    }

    /// Returns the numbers of refusals by the name of the rate.
    pub(super) fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the index of the interface of a path.
fn interface(path: &str) -> usize {
    let mut parts = path.split('/').skip(1);
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    let is_endpoint = second.is_some_and(ids::is_long);
    let is_worker = third.is_some_and(|part| part.starts_with("job-") || part == "ping");
    let name = match first {
        Some("v1") => "rest_v1",
        Some("v2") if is_endpoint && is_worker => "workers",
        Some("v2") if is_endpoint => "jobs",
        Some("v2") => "rest_v2",
        Some("graphql") => "graphql",
        Some("lb") => "load_balancer",
        Some("console" | "") => "console",
        _ => "other",
    };
    INTERFACES.iter().position(|known| *known == name).unwrap_or(INTERFACES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_one_interface() {
        for (path, name) in [
            ("/v1/endpoints", "rest_v1"),
            ("/v2/serverless/p4k2m9x1c7v3b8/workers", "rest_v2"),
            ("/v2/p4k2m9x1c7v3b8/run", "jobs"),
            ("/v2/p4k2m9x1c7v3b8/job-take/w", "workers"),
            ("/v2/p4k2m9x1c7v3b8/ping/w", "workers"),
            ("/graphql", "graphql"),
            ("/lb/p4k2m9x1c7v3b8/x", "load_balancer"),
            ("/", "console"),
            ("/lease", "other"),
            ("", "other"),
        ] {
            assert_eq!(INTERFACES[interface(path)], name, "{path}");
        }
    }

    #[test]
    fn each_request_counts_once() {
        let counts = RequestCounts::default();
        counts.begin("/v1/endpoints").answered(200);
        counts.begin("/v1/endpoints").answered(200);
        drop(counts.begin("/v1/endpoints"));
        counts.begin("/graphql").answered(999);
        counts.refused("run");
        assert_eq!(counts.statuses(), [("rest_v1", 0, 1), ("rest_v1", 200, 2)]);
        let times: Vec<_> =
            counts.times().map(|(name, times)| (name, times.distribution().count)).collect();
        assert_eq!(times, [("rest_v1", 3), ("graphql", 1)]);
        assert_eq!(counts.refusals(), BTreeMap::from([("run", 1)]));
    }
}
