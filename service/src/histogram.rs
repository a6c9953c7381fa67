//! Histograms of durations that many threads fill at once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of buckets in seconds, ascending. The last bucket, without a bound, is implied.
pub(crate) type Bounds = &'static [f64];

/// A histogram of durations.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: Bounds,
    /// The number of durations in each bucket. There is one more bucket than there are bounds.
    buckets: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
}

/// The content of a histogram at one moment.
#[derive(Debug, PartialEq)]
pub(crate) struct Distribution {
    /// Each bound with the number of durations up to it.
    pub(crate) cumulative: Vec<(f64, u64)>,
    /// The number of all durations.
    pub(crate) count: u64,
    /// The sum of all durations in seconds.
    pub(crate) sum: f64,
}

impl Histogram {
    /// Returns an empty histogram with these buckets.
    pub(crate) fn new(bounds: Bounds) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, buckets, sum_micros: AtomicU64::new(0) }
    }

    /// Adds a duration.
    pub(crate) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Relaxed);
    }

    /// Returns the content up to now.
    pub(crate) fn distribution(&self) -> Distribution {
        let mut count = 0;
        let mut cumulative = Vec::with_capacity(self.bounds.len());
        for (bucket, held) in self.buckets.iter().enumerate() {
            count += held.load(Relaxed);
            cumulative.extend(self.bounds.get(bucket).map(|bound| (*bound, count)));
        }
        let sum = Duration::from_micros(self.sum_micros.load(Relaxed)).as_secs_f64();
        Distribution { cumulative, count, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_up_to_their_bound() {
        let histogram = Histogram::new(&[0.5, 1.0]);
        for millis in [0, 500, 501, 1000, 2500] {
            histogram.observe(Duration::from_millis(millis));
        }
        let expected = Distribution { cumulative: vec![(0.5, 2), (1.0, 4)], count: 5, sum: 4.501 };
        assert_eq!(histogram.distribution(), expected);
    }
}
