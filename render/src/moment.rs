//! Times as people read them. Data keeps milliseconds since 1970.

/// The number of days in four hundred years, after which the calendar repeats itself.
const DAYS_OF_CYCLE: u64 = 146_097;

/// Returns a time in UTC, to the second: `2026-11-20 23:03:12 UTC`.
pub fn utc(ms: u64) -> String {
    let (days, seconds) = (ms / 86_400_000, ms / 1_000 % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns year, month and day for a number of days since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let (mut year, mut left) = (1970 + days / DAYS_OF_CYCLE * 400, days % DAYS_OF_CYCLE);
    while left >= 365 + leap_days(year) {
        left -= 365 + leap_days(year);
        year += 1;
    }
    let months = [31, 28 + leap_days(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

fn leap_days(year: u64) -> u64 {
    let leaps = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    u64::from(leaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399_999), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_782_400_123), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_215_792_000), "2026-11-20 23:03:12 UTC");
        assert_eq!(utc(4_102_444_799_000), "2099-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00 UTC");
        assert_eq!(utc(13_569_465_600_000), "2400-01-01 00:00:00 UTC");
        assert!(utc(u64::MAX).ends_with(" UTC"));
    }
}
