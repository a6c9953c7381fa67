//! The wall clock in milliseconds, the unit of every time in the store and on the wire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970. A clock before 1970 reads as 0.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a time in milliseconds since 1970 as `2026-11-20T23:03:12.345Z`.
pub(crate) fn iso(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Returns year, month and day of a day number counted from 1970-01-01 (Howard Hinnant's
/// algorithm).
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the number of a day counted from 1970-01-01.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Reads a time of RFC 3339, or a day, which means its beginning. Returns milliseconds since 1970,
/// or `None` for any other text.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let number = |text: Option<&str>| {
        text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i64>().ok()
    };
    let in_range = |number: i64, least: i64, most: i64| (least..=most).contains(&number);
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00:00Z"),
    };
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (number(date.next())?, number(date.next())?, number(date.next())?);
    if !(in_range(year, 1970, 9999) && in_range(month, 1, 12) && in_range(day, 1, 31)) {
        return None;
    }
    let end = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(end);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next())?, number(clock.next())?);
    let second = number(clock.next())?;
    if !(in_range(hour, 0, 23) && in_range(minute, 0, 59) && in_range(second, 0, 60)) {
        return None;
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let minutes = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign, zone) => {
            let (hours, minutes) = zone.split_once(':')?;
            let minutes = number(Some(hours))? * 60 + number(Some(minutes))?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute - minutes) * 60 + second;
    Some(seconds * 1000 + number(Some(&fraction))?)
}

#[cfg(test)]
mod tests {
    use super::{civil, days, iso, parse};

    #[test]
    fn times_read_as_iso_8601() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(iso(1_795_215_792_000), "2026-11-20T23:03:12.000Z");
    }

    #[test]
    fn times_are_read() {
        for ms in [0, 951_782_400_123, 1_795_215_792_000] {
            assert_eq!(parse(&iso(ms)), Some(ms));
        }
        assert_eq!(parse("2026-11-20"), parse("2026-11-20T02:00:00+02:00"));
        assert_eq!(parse("2026-11-20T00:00:00.5Z").unwrap() % 1000, 500);
        for wrong in
            ["", "x", "2026-13-01", "2026-11-20T", "2026-11-20T10:00", "2026-11-20T10:00:00"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        for day in [0, 59, 60, 365, 11_016, 20_000, 36_524] {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
        }
    }
}
