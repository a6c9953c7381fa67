//! The pause before a call is sent again, and the header `Retry-After`.
//!
//! A pause grows with each attempt, and it is random, so that callers that were refused at the same time do
//! not return at the same time. The time that the API asks for is its lower bound, and
//! [`Timing::retry_after_max`] bounds that time. All calls to an API that throttles pause together;
//! [`crate::limits`] does this.

use std::time::Duration;

use crate::timing::Timing;
use crate::transport::Response;

/// Returns the time for which an answer asks to wait, from the header `Retry-After`, in seconds or as a date;
/// none without the header.
pub(crate) fn requested(answer: &Response) -> Option<Duration> {
    let text = answer.header("retry-after")?.trim();
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite());
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds.min(1e9)).ok(),
        None => until(text, answer.header("date")?.trim()),
    }
}

/// Returns the time from one date of the server's clock to another; zero if it has passed.
fn until(date: &str, now: &str) -> Option<Duration> {
    let (date, now) = (httpdate::parse_http_date(date).ok()?, httpdate::parse_http_date(now).ok()?);
    Some(date.duration_since(now).unwrap_or_default())
}

/// Returns the pause after `attempts` failed attempts: the time that the API asked for, else one that doubles
/// each time. `random` spreads it.
pub(crate) fn pause(
    timing: &Timing,
    attempts: u32,
    requested: Option<Duration>,
    random: u64,
) -> Duration {
    match requested {
        Some(requested) => requested.min(timing.retry_after_max),
        None => backoff(timing, attempts, random),
    }
}

/// Returns a pause that doubles each time; `random` chooses between half and all of it.
fn backoff(timing: &Timing, attempts: u32, random: u64) -> Duration {
    let doubled = timing.pause_first.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    let spread = f64::from(u32::try_from(random % 512).unwrap_or(0)) / 1024.0;
    doubled.min(timing.pause_max).mul_f64(0.5 + spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&str, &str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Response { status: 503, headers: headers.collect(), body: Vec::new() }
    }

    #[test]
    fn seconds_and_dates_of_the_servers_clock() {
        let now = "Sat, 21 Nov 2026 02:00:00 GMT";
        for (text, seconds) in [
            ("7", Some(7.0)),
            ("1.5", Some(1.5)),
            ("-1", None),
            ("Sat, 21 Nov 2026 02:00:07 GMT", Some(7.0)),
            ("Saturday, 21-Nov-26 02:01:00 GMT", Some(60.0)),
            ("Fri, 20 Nov 2026 02:00:07 GMT", Some(0.0)),
            ("tomorrow", None),
        ] {
            let asked = requested(&answer(&[("retry-after", text), ("date", now)]));
            assert_eq!(asked.map(|asked| asked.as_secs_f64()), seconds, "{text}");
        }
        assert_eq!(requested(&answer(&[("retry-after", now), ("date", "soon")])), None);
        assert_eq!(requested(&answer(&[])), None);
    }

    #[test]
    fn a_request_to_wait_is_followed_up_to_a_bound() {
        let timing = Timing::default();
        let seconds = Duration::from_secs;
        assert_eq!(pause(&timing, 1, Some(seconds(7)), 0), seconds(7));
        assert_eq!(pause(&timing, 1, Some(seconds(100_000)), 0), timing.retry_after_max);
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_spread() {
        let timing = Timing::default();
        let ms = |attempts, random| pause(&timing, attempts, None, random).as_millis();
        assert_eq!([1, 2, 3, 4].map(|attempts| ms(attempts, 0)), [125, 250, 500, 1000]);
        assert_eq!(ms(99, 0), timing.pause_max.as_millis() / 2);
        assert!((125..250).contains(&ms(1, u64::MAX)) && ms(1, 511) > ms(1, 100));
    }
}
