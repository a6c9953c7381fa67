//! Buckets of time: hours, days, weeks, months, years, in UTC.

use crate::clock::{civil, days};

/// The length of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bucket {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// The names of the buckets.
pub(crate) const NAMES: &[&str] = &["hour", "day", "week", "month", "year"];

/// An hour in milliseconds.
pub(crate) const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

impl Bucket {
    pub(crate) fn named(name: &str) -> Option<Bucket> {
        let all = [Bucket::Hour, Bucket::Day, Bucket::Week, Bucket::Month, Bucket::Year];
        NAMES.iter().zip(all).find(|(known, _)| **known == name).map(|(_, bucket)| bucket)
    }

    /// Returns the beginning of the bucket that contains a time, in milliseconds since 1970.
    pub(crate) fn start(self, ms: i64) -> i64 {
        let day = ms.div_euclid(DAY_MS);
        let (year, month, _) = civil(day);
        match self {
            Bucket::Hour => ms.div_euclid(HOUR_MS) * HOUR_MS,
            Bucket::Day => day * DAY_MS,
            // 1970-01-01 was a Thursday; weeks begin on Monday.
            Bucket::Week => (day - (day + 3).rem_euclid(7)) * DAY_MS,
            Bucket::Month => days(year, month, 1) * DAY_MS,
            Bucket::Year => days(year, 1, 1) * DAY_MS,
        }
    }

    /// Returns the beginning of the bucket after the one that contains a time.
    pub(crate) fn next(self, ms: i64) -> i64 {
        // No bucket of this kind is longer than this, and two of them always are.
        let beyond = match self {
            Bucket::Hour => HOUR_MS,
            Bucket::Day => DAY_MS,
            Bucket::Week => 7 * DAY_MS,
            Bucket::Month => 31 * DAY_MS,
            Bucket::Year => 366 * DAY_MS,
        };
        self.start(self.start(ms) + beyond)
    }

    /// Returns the beginning of the bucket before the one that contains a time.
    pub(crate) fn previous(self, ms: i64) -> i64 {
        self.start(self.start(ms) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{iso, parse};

    #[test]
    fn times_lie_in_their_buckets() {
        let time = parse("2026-11-25T10:20:30Z").unwrap();
        let check = |name: &str, start: &str, next: &str| {
            let bucket = Bucket::named(name).unwrap();
            assert_eq!(&iso(bucket.start(time))[..16], start, "{name}");
            assert_eq!(&iso(bucket.next(time))[..16], next, "{name}");
            assert_eq!(bucket.next(bucket.previous(time)), bucket.start(time), "{name}");
        };
        check("hour", "2026-11-25T10:00", "2026-11-25T11:00");
        check("day", "2026-11-25T00:00", "2026-11-26T00:00");
        check("week", "2026-11-23T00:00", "2026-11-30T00:00");
        check("month", "2026-11-01T00:00", "2026-12-01T00:00");
        check("year", "2026-01-01T00:00", "2027-01-01T00:00");
    }
}
