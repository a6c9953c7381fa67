//! Measures how long ago something was, also when the machine slept meanwhile.
//!
//! The clock that only goes forward stands still while a machine is suspended, and that of the day is
//! set by people and servers. A run may have lost its place whenever one of them says so: the longer
//! time of the two counts, and a day that begins again counts as for ever.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The time of day, in milliseconds since 1970, for whoever outlives the borrow of a host.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// A clock that is read by a function.
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    /// Now.
    pub fn moment(&self) -> Moment {
        Moment { instant: Instant::now(), at_ms: (self.0)(), clock: self.clone() }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A point in time, by both clocks.
#[derive(Clone, Debug)]
pub struct Moment {
    instant: Instant,
    at_ms: u64,
    clock: Clock,
}

impl Moment {
    /// Returns how long ago it was, at least.
    pub(crate) fn elapsed(&self) -> Duration {
        let by_day = (self.clock.0)().checked_sub(self.at_ms);
        self.instant.elapsed().max(by_day.map_or(Duration::MAX, Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longer_time_counts() {
        let day = Arc::new(AtomicU64::new(10_000));
        let shown = day.clone();
        let moment = Clock::new(move || shown.load(Ordering::Relaxed)).moment();
        assert_eq!(moment.elapsed(), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(moment.elapsed(), Duration::from_secs(2));
        day.store(70_000, Ordering::Relaxed);
        assert_eq!(moment.elapsed(), Duration::from_mins(1), "the machine slept");
        day.store(9_999, Ordering::Relaxed);
        assert_eq!(moment.elapsed(), Duration::MAX, "the day was set back");
    }
}
