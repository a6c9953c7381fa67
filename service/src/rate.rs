//! The rate of the management APIs: the number of requests that they take within windows of time.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue};

use crate::problem::{Kind, Problem};

/// The windows, by the names that the headers of version 2 give them.
const WINDOWS: &[(&str, Duration)] = &[
    ("second", Duration::from_secs(1)),
    ("minute", Duration::from_mins(1)),
    ("hour", Duration::from_hours(1)),
    ("day", Duration::from_hours(24)),
];

/// The most requests that the management APIs take within each of some windows. The default has no
/// window, so no limit.
///
/// The text form is `60/minute,3000/hour`; a number alone is a limit for a second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateLimits(Vec<RateLimit>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RateLimit {
    requests: u32,
    window: &'static str,
    length: Duration,
}

impl FromStr for RateLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<RateLimits, String> {
        let mut limits: Vec<RateLimit> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let limit = limit(part).ok_or_else(|| {
                format!("`{part}` is no rate; write a number of requests, such as 5, or 60/minute")
            })?;
            if limits.iter().any(|other| other.window == limit.window) {
                return Err(format!("two rates for one {}", limit.window));
            }
            limits.push(limit);
        }
        limits.sort_by_key(|limit| limit.length);
        Ok(RateLimits(limits))
    }
}

fn limit(text: &str) -> Option<RateLimit> {
    let (requests, window) = text.split_once('/').unwrap_or((text, "second"));
    let requests = requests.trim().parse().ok().filter(|requests| *requests > 0)?;
    let (window, length) = *WINDOWS.iter().find(|(name, _)| *name == window.trim())?;
    Some(RateLimit { requests, window, length })
}

/// The limits, and the requests that were taken within the current windows.
pub(crate) struct Rate {
    limits: RateLimits,
    taken: Mutex<Vec<Taken>>,
}

/// The requests of one window.
#[derive(Debug, Clone, Copy)]
struct Taken {
    since: Instant,
    requests: u32,
}

/// One window after a request, with the requests that it still takes.
#[derive(Debug, Clone, Copy)]
struct Quota {
    limit: RateLimit,
    remaining: u32,
    reset: Duration,
    is_exceeded: bool,
}

/// The windows after a request, for the headers of its answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quotas(Vec<Quota>);

impl Rate {
    pub(crate) fn new(limits: RateLimits) -> Rate {
        let now = Instant::now();
        let taken = limits.0.iter().map(|_| Taken { since: now, requests: 0 }).collect();
        Rate { limits, taken: Mutex::new(taken) }
    }

    /// Counts a request in every window. If one of them is full, it is counted in none.
    pub(crate) fn take(&self) -> Quotas {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Quotas {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let windows = || self.limits.0.iter();
        for (limit, taken) in windows().zip(taken.iter_mut()) {
            if now.saturating_duration_since(taken.since) >= limit.length {
                *taken = Taken { since: now, requests: 0 };
            }
        }
        let is_full = |(limit, taken): (&RateLimit, &Taken)| taken.requests >= limit.requests;
        if !windows().zip(taken.iter()).any(is_full) {
            taken.iter_mut().for_each(|taken| taken.requests += 1);
            return Quotas::of(&self.limits, &taken, now, |_| false);
        }
        Quotas::of(&self.limits, &taken, now, is_full)
    }
}

impl Quotas {
    fn of(
        limits: &RateLimits,
        taken: &[Taken],
        now: Instant,
        is_exceeded: impl Fn((&RateLimit, &Taken)) -> bool,
    ) -> Quotas {
        let quota = |(limit, taken): (&RateLimit, &Taken)| Quota {
            limit: *limit,
            remaining: limit.requests.saturating_sub(taken.requests),
            reset: (taken.since + limit.length).saturating_duration_since(now),
            is_exceeded: is_exceeded((limit, taken)),
        };
        Quotas(limits.0.iter().zip(taken).map(quota).collect())
    }

    /// Refuses the request if a window was full. If several were, the answer names the time of the
    /// one that lasts longest.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let exceeded = self.0.iter().filter(|quota| quota.is_exceeded);
        let Some(quota) = exceeded.max_by_key(|quota| quota.reset) else { return Ok(()) };
        let again = Kind::TooMany(Duration::from_secs(whole_seconds(quota.reset)));
        let RateLimit { requests, window, .. } = quota.limit;
        let message = format!("rate limit exceeded for the {window} window: {requests} requests");
        Err(Problem::new(again, message))
    }

    /// Adds `RateLimit` and `RateLimit-Policy`, unless there are no limits.
    pub(crate) fn stamp(&self, headers: &mut HeaderMap) {
        let (mut state, mut policy) = (String::new(), String::new());
        for Quota { limit, remaining, reset, .. } in &self.0 {
            let RateLimit { requests, window, length } = limit;
            let comma = if state.is_empty() { "" } else { ", " };
            let (reset, length) = (whole_seconds(*reset), length.as_secs());
            let _always = write!(state, "{comma}\"{window}\";r={remaining};t={reset}");
            let _always = write!(policy, "{comma}\"{window}\";q={requests};w={length}");
        }
        for (name, value) in [("ratelimit", state), ("ratelimit-policy", policy)] {
            if let Some(value) = HeaderValue::try_from(value).ok().filter(|text| !text.is_empty()) {
                headers.insert(name, value);
            }
        }
    }
}

/// Returns a time in seconds, rounded up, so that a client that waits so long has waited long
/// enough.
fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> (Rate, Instant) {
        (Rate::new(text.parse().unwrap()), Instant::now())
    }

    fn headers(quotas: &Quotas) -> [String; 2] {
        let mut headers = HeaderMap::new();
        quotas.stamp(&mut headers);
        ["ratelimit", "ratelimit-policy"].map(|name| {
            headers.get(name).map_or_else(String::new, |text| text.to_str().unwrap().to_owned())
        })
    }

    #[test]
    fn every_window_counts_and_a_full_one_refuses() {
        let (rate, start) = rate("3/minute, 4/hour");
        let at = |seconds| rate.take_at(start + Duration::from_secs(seconds));
        let first = at(1);
        assert!(first.check().is_ok());
        let policy = "\"minute\";q=3;w=60, \"hour\";q=4;w=3600";
        assert_eq!(
            headers(&first),
            ["\"minute\";r=2;t=59, \"hour\";r=3;t=3599".to_owned(), policy.to_owned()]
        );
        assert!(at(2).check().is_ok() && at(3).check().is_ok());
        let refused = at(20).check().unwrap_err();
        assert_eq!(refused.message, "rate limit exceeded for the minute window: 3 requests");
        assert_eq!(refused.kind, Kind::TooMany(Duration::from_secs(40)));
        assert!(at(61).check().is_ok(), "a refused request counts in no window");
        let refused = at(62);
        assert_eq!(refused.check().unwrap_err().kind, Kind::TooMany(Duration::from_secs(3538)));
        assert_eq!(headers(&refused)[0], "\"minute\";r=2;t=59, \"hour\";r=0;t=3538");
        assert!(at(3601).check().is_ok());
    }

    #[test]
    fn without_limits_nothing_is_refused_or_said() {
        let rate = Rate::new(RateLimits::default());
        let quotas = rate.take();
        assert!(quotas.check().is_ok());
        assert_eq!(headers(&quotas), ["", ""]);
    }

    #[test]
    fn limits_have_a_text() {
        let same = |one: &str, other: &str| one.parse::<RateLimits>() == other.parse();
        assert!(same("5", "5/second"));
        assert!(same("1/day,2/minute", "2/minute, 1/day"));
        for wrong in ["", "0", "-1", "x", "5/year", "5/", "/minute", "5,6/second", "5/minute,"] {
            assert!(wrong.parse::<RateLimits>().is_err(), "{wrong}");
        }
    }
}
