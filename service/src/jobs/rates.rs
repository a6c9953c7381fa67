//! The rates of the job API: requests per ten seconds and at once, per endpoint and operation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::{Kind, Problem};

/// The window of the documented rates.
const WINDOW: Duration = Duration::from_secs(10);

/// One row of the documented table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    requests: u64,
    /// 0: any number.
    concurrent: u64,
}

pub(crate) const RUNSYNC: Limit = Limit { name: "runsync", requests: 2000, concurrent: 400 };
pub(crate) const RUN: Limit = Limit { name: "run", requests: 1000, concurrent: 200 };
pub(crate) const STATUS: Limit = Limit { name: "status", requests: 2000, concurrent: 400 };
pub(crate) const STREAM: Limit = Limit { name: "stream", requests: 2000, concurrent: 400 };
pub(crate) const CANCEL: Limit = Limit { name: "cancel", requests: 100, concurrent: 20 };
pub(crate) const PURGE: Limit = Limit { name: "purge-queue", requests: 2, concurrent: 0 };
pub(crate) const OPENAI: Limit = Limit { name: "openai", requests: 2000, concurrent: 400 };
pub(crate) const REQUESTS: Limit = Limit { name: "requests", requests: 10, concurrent: 2 };

/// Each running worker is good for a tenth of the base limit: with more than ten of them the
/// dynamic rule of the document lifts the limit.
const WORKERS_PER_BASE: u64 = 10;

/// Windows kept before the stale ones are thrown out.
const WINDOWS_MAX: usize = 4096;

/// The counts of all endpoints and operations.
#[derive(Default)]
pub(crate) struct Rates(Arc<Mutex<HashMap<(String, &'static str), Window>>>);

struct Window {
    since: Instant,
    requests: u64,
    running: u64,
}

/// A request that was let in; it leaves when this is dropped.
pub(crate) struct Permit {
    rates: Arc<Mutex<HashMap<(String, &'static str), Window>>>,
    key: (String, &'static str),
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut windows = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(&self.key) {
            window.running = window.running.saturating_sub(1);
        }
    }
}

impl Rates {
    /// Lets a request in, or says when to come again.
    pub(crate) fn enter(
        &self,
        endpoint: &str,
        limit: Limit,
        running_workers: usize,
    ) -> Result<Permit, Problem> {
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() > WINDOWS_MAX {
            windows.retain(|_, window| window.running > 0 || now - window.since < WINDOW);
        }
        let key = (endpoint.to_owned(), limit.name);
        let fresh = || Window { since: now, requests: 0, running: 0 };
        let window = windows.entry(key.clone()).or_insert_with(fresh);
        if now - window.since >= WINDOW {
            (window.since, window.requests) = (now, 0);
        }
        let workers = u64::try_from(running_workers).unwrap_or(u64::MAX);
        let lifted = |base: u64| base.max(base.saturating_mul(workers) / WORKERS_PER_BASE);
        let name = limit.name;
        if window.requests >= lifted(limit.requests) {
            let rest = WINDOW.saturating_sub(now - window.since);
            let after = Duration::from_secs(rest.as_secs() + 1);
            let message = format!("rate limit of /{name} exceeded: {} per 10 s", limit.requests);
            return Err(Problem::new(Kind::TooMany(after), message));
        }
        if limit.concurrent > 0 && window.running >= lifted(limit.concurrent) {
            let after = Kind::TooMany(Duration::from_secs(1));
            let message = format!("too many /{name} requests at once: {}", limit.concurrent);
            return Err(Problem::new(after, message));
        }
        window.requests += 1;
        window.running += 1;
        Ok(Permit { rates: Arc::clone(&self.0), key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_per_endpoint_and_operation() {
        let rates = Rates::default();
        for _ in 0..2 {
            assert!(rates.enter("a", PURGE, 0).is_ok());
        }
        let refused = rates.enter("a", PURGE, 0).err().unwrap();
        assert!(
            matches!(refused.kind, Kind::TooMany(after) if after.as_secs() >= 9),
            "{refused:?}"
        );
        assert!(rates.enter("b", PURGE, 0).is_ok() && rates.enter("a", CANCEL, 0).is_ok());
        assert!(rates.enter("a", PURGE, 20).is_ok(), "twenty workers lift the limit to four");
    }

    #[test]
    fn requests_at_once_are_bounded() {
        let rates = Rates::default();
        let mut inside: Vec<_> = (0..20).map(|_| rates.enter("a", CANCEL, 0).ok()).collect();
        assert!(inside.iter().all(Option::is_some));
        assert!(rates.enter("a", CANCEL, 0).is_err());
        inside.pop();
        assert!(rates.enter("a", CANCEL, 0).is_ok());
    }
}
