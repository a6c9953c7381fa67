//! The time span of a billing report, and its sums in buckets.

use std::collections::BTreeMap;

use super::bucket::Bucket;
use super::ledger::Entry;
use crate::clock::parse;
use crate::problem::Problem;

/// The days of a report without a start time.
const DAYS: i64 = 30;

/// The most buckets of one answer.
const BUCKETS_MAX: i64 = 10_000;

/// A time span in milliseconds since 1970, and the length of its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) bucket: Bucket,
}

/// The query parameters of a billing report.
#[derive(Debug, Default)]
pub(crate) struct ReportQuery {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    pub(crate) bucket: Option<String>,
    pub(crate) last: Option<i64>,
}

impl Window {
    /// Returns the window of a query, in whole buckets.
    pub(crate) fn of(question: &ReportQuery, now: i64) -> Result<Window, Problem> {
        let ReportQuery { start, end, bucket, last } = question;
        let bucket = bucket.as_deref().and_then(Bucket::named).unwrap_or(Bucket::Day);
        if let Some(last) = last {
            if start.is_some() || end.is_some() {
                return Err(Problem::invalid("lastN goes without startTime and endTime"));
            }
            if *last > BUCKETS_MAX {
                return Err(Problem::invalid(format!("lastN must be at most {BUCKETS_MAX}")));
            }
            let from = (1..*last).fold(bucket.start(now), |start, _| bucket.previous(start));
            return Ok(Window { from, to: bucket.next(now), bucket });
        }
        let time = |name: &str, text: &Option<String>, default: i64| match text {
            None => Ok(default),
            Some(text) => parse(text).ok_or_else(|| {
                Problem::invalid(format!("{name} must be a time such as 2026-11-25T00:00:00Z"))
            }),
        };
        let end = time("endTime", end, now)?;
        let start = time("startTime", start, end - DAYS * 86_400_000)?;
        if start > end {
            return Err(Problem::invalid("startTime must not be after endTime"));
        }
        // An end on the boundary of a bucket stays. Any other end moves to the end of its bucket.
        let to = if bucket.start(end) == end { end } else { bucket.next(end) };
        Ok(Window { from: bucket.start(start), to, bucket })
    }

    /// Sums up the entries by bucket and, if wanted, also by object.
    pub(crate) fn buckets(
        &self,
        entries: Vec<Entry>,
        by_object: bool,
    ) -> BTreeMap<(i64, String), Vec<Entry>> {
        let mut buckets: BTreeMap<(i64, String), Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            let object = if by_object { entry.object.clone() } else { String::new() };
            buckets.entry((self.bucket.start(entry.hour), object)).or_default().push(entry);
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::BilledKind;
    use crate::clock::iso;
    use proptest::prelude::*;

    #[test]
    fn windows_are_whole_buckets() {
        let now = parse("2026-11-25T10:20:30Z").unwrap();
        let check = |question: ReportQuery, from: &str, to: &str| {
            let window = Window::of(&question, now).unwrap();
            assert_eq!((&iso(window.from)[..16], &iso(window.to)[..16]), (from, to));
        };
        check(ReportQuery::default(), "2026-10-26T00:00", "2026-11-26T00:00");
        let text = |text: &str| Some(text.to_owned());
        let last = ReportQuery { last: Some(3), bucket: text("month"), ..ReportQuery::default() };
        check(last, "2026-09-01T00:00", "2026-12-01T00:00");
        let times = ReportQuery {
            start: text("2026-11-01"),
            end: text("2026-11-03T00:00:00+00:00"),
            ..ReportQuery::default()
        };
        check(times, "2026-11-01T00:00", "2026-11-03T00:00");
        let both =
            ReportQuery { last: Some(1), start: text("2026-11-01"), ..ReportQuery::default() };
        assert!(Window::of(&both, now).is_err());
        let wrong = ReportQuery { start: text("yesterday"), ..ReportQuery::default() };
        assert!(Window::of(&wrong, now).is_err());
    }

    proptest! {
        /// The sum of the records equals the sum of the entries, for buckets of every length.
        #[test]
        fn records_add_up(
            used in prop::collection::vec((0i64..20_000, 0u8..5, 0i64..1_000_000), 0..50)
        ) {
            let entry = |(hour, object, nanos): &(i64, u8, i64)| Entry {
                what: BilledKind::WorkerGpu,
                object: object.to_string(),
                hour: hour * 3_600_000,
                ms: 1,
                nanos: *nanos,
            };
            let entries: Vec<Entry> = used.iter().map(entry).collect();
            let total: i64 = entries.iter().map(|entry| entry.nanos).sum();
            for name in super::super::bucket::NAMES {
                let bucket = Bucket::named(name).unwrap();
                let window = Window { from: 0, to: i64::MAX, bucket };
                for by_object in [false, true] {
                    let buckets = window.buckets(entries.clone(), by_object);
                    let sum: i64 = buckets.values().flatten().map(|entry| entry.nanos).sum();
                    prop_assert_eq!(sum, total);
                    for ((start, _), entries) in &buckets {
                        let next = bucket.next(*start);
                        prop_assert!(entries.iter().all(|e| e.hour >= *start && e.hour < next));
                    }
                }
            }
        }
    }
}
