//! The wanted number of workers of an endpoint. The functions are pure: all input is in the
//! arguments.

use crate::jobs::projection::Tally;
use crate::resources::endpoint::Endpoint;

/// The input of the autoscaler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) tally: Tally,
    /// The milliseconds that the first jobs of the queue have waited.
    pub(crate) waits: &'a [i64],
    /// The number of workers that run jobs.
    pub(crate) busy: i64,
    /// The number of workers that live or start, without those that shall end.
    pub(crate) live: i64,
}

/// Returns the number of workers that the load needs, within the bounds of the endpoint. Jobs of
/// low priority need none.
///
/// - `REQUEST_COUNT`, and every endpoint that balances load: one worker for each `scalerValue` jobs
///   or requests.
/// - `QUEUE_DELAY`: one more worker for each job that has waited longer than `scalerValue`
///   seconds. The first worker starts at once, because waiting for it would help nobody.
#[expect(clippy::cast_precision_loss, reason = "counts and waits are far below 2^52")]
pub(crate) fn wanted(endpoint: &Endpoint, load: Load<'_>) -> i64 {
    let Load { tally, waits, busy, live } = load;
    let value = endpoint.scaler_value;
    let called_for = if endpoint.is_balanced() || endpoint.scaler_type == "REQUEST_COUNT" {
        let jobs = tally.pressing + tally.in_progress;
        if tally.pressing > 0 { rounded(jobs as f64 / value) } else { 0 }
    } else {
        let late = waits.iter().filter(|wait| **wait as f64 > value * 1000.0).count();
        let late = i64::try_from(late).unwrap_or(i64::MAX);
        if late > 0 {
            busy.saturating_add(late)
        } else {
            i64::from(tally.pressing > 0 && live == 0)
        }
    };
    // A busy worker is kept, whatever the queue contains.
    called_for.max(busy).clamp(endpoint.workers_min, endpoint.workers_max.max(endpoint.workers_min))
}

/// Returns the number rounded up.
#[expect(clippy::cast_possible_truncation, reason = "a cast to i64 saturates")]
fn rounded(count: f64) -> i64 {
    count.ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(scaler_type: &str, value: f64, min: i64, max: i64) -> Endpoint {
        let mut endpoint = crate::resources::endpoint::blank();
        scaler_type.clone_into(&mut endpoint.scaler_type);
        (endpoint.scaler_value, endpoint.workers_min, endpoint.workers_max) = (value, min, max);
        endpoint
    }

    fn load(pressing: i64, in_progress: i64, waits: &[i64], busy: i64, live: i64) -> Load<'_> {
        let tally = Tally { in_queue: pressing, pressing, in_progress, ..Tally::default() };
        Load { tally, waits, busy, live }
    }

    #[test]
    fn request_count_divides_the_jobs() {
        let endpoint = endpoint("REQUEST_COUNT", 4.0, 0, 5);
        assert_eq!(wanted(&endpoint, load(0, 0, &[], 0, 0)), 0);
        assert_eq!(wanted(&endpoint, load(1, 0, &[], 0, 0)), 1);
        assert_eq!(wanted(&endpoint, load(4, 4, &[], 1, 1)), 2);
        assert_eq!(wanted(&endpoint, load(5, 4, &[], 1, 1)), 3);
        assert_eq!(wanted(&endpoint, load(1000, 0, &[], 0, 0)), 5);
        assert_eq!(wanted(&self::endpoint("REQUEST_COUNT", 0.5, 0, 5), load(2, 0, &[], 0, 0)), 4);
        let slow = self::endpoint("REQUEST_COUNT", 1e-300, 0, 5);
        assert_eq!(wanted(&slow, load(2, 0, &[], 0, 0)), 5);
    }

    #[test]
    fn queue_delay_follows_those_who_wait_too_long() {
        let endpoint = endpoint("QUEUE_DELAY", 4.0, 0, 3);
        assert_eq!(wanted(&endpoint, load(1, 0, &[10], 0, 0)), 1);
        assert_eq!(wanted(&endpoint, load(1, 1, &[10], 1, 1)), 1);
        assert_eq!(wanted(&endpoint, load(1, 1, &[4001], 1, 1)), 2);
        assert_eq!(wanted(&endpoint, load(9, 1, &[9000; 9], 1, 1)), 3);
        let quick = self::endpoint("QUEUE_DELAY", 0.5, 0, 3);
        assert_eq!(wanted(&quick, load(1, 1, &[501], 1, 1)), 2);
        assert_eq!(wanted(&quick, load(1, 1, &[499], 1, 1)), 1);
    }

    #[test]
    fn bounds_hold_and_low_priority_calls_for_nobody() {
        assert_eq!(wanted(&endpoint("QUEUE_DELAY", 4.0, 2, 3), load(0, 0, &[], 0, 0)), 2);
        assert_eq!(wanted(&endpoint("QUEUE_DELAY", 4.0, 0, 0), load(5, 0, &[9000], 0, 0)), 0);
        let mut low = load(0, 0, &[], 0, 0);
        low.tally.in_queue = 5;
        assert_eq!(wanted(&endpoint("REQUEST_COUNT", 1.0, 0, 3), low), 0);
        assert_eq!(wanted(&endpoint("QUEUE_DELAY", 1.0, 0, 3), low), 0);
    }
}
