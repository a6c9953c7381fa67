//! The rates of the job API, for each endpoint and operation: requests within any ten seconds, and
//! requests at once.

use std::collections::{HashMap, VecDeque};
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
    /// The most requests at once; 0 means no limit.
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

/// The number of running workers above which the limits grow: as the document says, each worker
/// adds a tenth of the base limit, if that is more than the base.
const WORKERS_PER_BASE: u64 = 10;

/// The length of a step. The window moves on in steps: the requests of a step leave it together,
/// when the latest of them may leave.
const STEP: Duration = Duration::from_millis(100);

/// The number of windows above which unused ones are removed.
const WINDOWS_MAX: usize = 4096;

type Windows = HashMap<(String, &'static str), Window>;

/// The counts of all endpoints and operations.
#[derive(Default)]
pub(crate) struct Rates(Arc<Mutex<Windows>>);

/// The requests of one operation of one endpoint within the last ten seconds.
#[derive(Default)]
struct Window {
    /// The steps with requests, the oldest first.
    steps: VecDeque<Step>,
    requests: u64,
    running: u64,
}

/// The requests that came in one step.
struct Step {
    /// The latest time at which one of the requests may have come.
    end: Instant,
    requests: u64,
}

/// A request that was let in. It counts as running until this is dropped.
pub(crate) struct Permit {
    rates: Arc<Mutex<Windows>>,
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
    /// Lets a request in, or refuses it with the time after which the client may come again.
    pub(crate) fn enter(
        &self,
        endpoint: &str,
        limit: Limit,
        running_workers: usize,
    ) -> Result<Permit, Problem> {
        self.enter_at(Instant::now(), endpoint, limit, running_workers)
    }

    fn enter_at(
        &self,
        now: Instant,
        endpoint: &str,
        limit: Limit,
        running_workers: usize,
    ) -> Result<Permit, Problem> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() > WINDOWS_MAX {
            windows.retain(|_, window| !window.is_idle(now));
        }
        let key = (endpoint.to_owned(), limit.name);
        let window = windows.entry(key.clone()).or_default();
        window.forget_before(now);
        let workers = u64::try_from(running_workers).unwrap_or(u64::MAX);
        let lifted = |base: u64| base.max(base.saturating_mul(workers) / WORKERS_PER_BASE);
        let (name, requests, concurrent) =
            (limit.name, lifted(limit.requests), lifted(limit.concurrent));
        if window.requests >= requests {
            let after = Duration::from_secs(window.wait(now, requests).as_secs() + 1);
            let message = format!("rate limit of /{name} exceeded: {requests} per 10 s");
            return Err(Problem::new(Kind::TooMany(after), message));
        }
        if limit.concurrent > 0 && window.running >= concurrent {
            let after = Kind::TooMany(Duration::from_secs(1));
            let message = format!("too many /{name} requests at once: {concurrent}");
            return Err(Problem::new(after, message));
        }
        window.count(now);
        Ok(Permit { rates: Arc::clone(&self.0), key })
    }
}

impl Window {
    /// Removes the steps that are older than the window.
    fn forget_before(&mut self, now: Instant) {
        while let Some(step) = self.steps.front()
            && now >= step.end + WINDOW
        {
            self.requests -= step.requests;
            self.steps.pop_front();
        }
    }

    /// Returns true if the window has no running request, and no request of the last ten seconds.
    fn is_idle(&self, now: Instant) -> bool {
        self.running == 0 && self.steps.back().is_none_or(|step| now >= step.end + WINDOW)
    }

    /// Returns the time until fewer than so many requests count.
    fn wait(&self, now: Instant, requests: u64) -> Duration {
        let mut left = self.requests;
        for step in &self.steps {
            left -= step.requests;
            if left < requests {
                return (step.end + WINDOW).saturating_duration_since(now);
            }
        }
        Duration::ZERO
    }

    fn count(&mut self, now: Instant) {
        self.requests += 1;
        self.running += 1;
        match self.steps.back_mut() {
            Some(step) if now < step.end => step.requests += 1,
            _ => self.steps.push_back(Step { end: now + STEP, requests: 1 }),
        }
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

    /// For any times of the calls, no ten seconds contain more requests than the limit. A request
    /// is refused only if the last ten seconds and one step contain as many requests as the limit.
    #[test]
    fn no_ten_seconds_hold_more_than_the_limit() {
        let (rates, start) = (Rates::default(), Instant::now());
        let (mut now, mut let_in, mut seed) = (start, Vec::<Instant>::new(), 7u64);
        for _ in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += Duration::from_millis((seed >> 33) % 190);
            let within =
                |time: Duration| let_in.iter().rev().take_while(|then| now - **then < time).count();
            match rates.enter_at(now, "a", CANCEL, 0) {
                Ok(_) => {
                    assert!(within(WINDOW) < 100);
                    let_in.push(now);
                }
                Err(refused) => {
                    assert!(within(WINDOW + STEP) >= 100);
                    let Kind::TooMany(after) = refused.kind else { panic!("{refused:?}") };
                    assert!(rates.enter_at(now + after, "b", CANCEL, 0).is_ok());
                    assert!(after <= Duration::from_secs(11), "{after:?}");
                }
            }
        }
        assert!(let_in.len() > 2000, "{}", let_in.len());
    }

    #[test]
    fn who_is_refused_is_told_the_limit_that_holds() {
        let rates = Rates::default();
        let refused = || (0..5).find_map(|_| rates.enter("a", PURGE, 20).err()).unwrap();
        assert_eq!(refused().message, "rate limit of /purge-queue exceeded: 4 per 10 s");
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
