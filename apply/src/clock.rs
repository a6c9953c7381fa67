//! Measures how long ago a moment was, also if the machine slept in between.
//!
//! A monotonic clock stands still while a machine is suspended, and the time of day is set by people and
//! servers. A run may have lost its lock if either clock says that too much time went by. So the longer of
//! the two times counts, and a time of day that was set back counts as infinitely long.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A reader of the time of day, in milliseconds since 1970, for tasks that outlive the borrow of a host.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Returns a clock that calls a function to read the time.
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    /// Returns the current moment.
    pub fn moment(&self) -> Moment {
        Moment { instant: Instant::now(), at_ms: (self.0)(), clock: self.clone() }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A point in time by both clocks.
#[derive(Clone, Debug)]
pub struct Moment {
    instant: Instant,
    at_ms: u64,
    clock: Clock,
}

impl Moment {
    /// Returns how much time went by since this moment: the longer of what the two clocks say.
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
