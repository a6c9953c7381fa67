//! Times in the form of RFC 3339: `2026-11-25T04:30:00Z`.

use super::Fault;
use super::texts::text;
use crate::value::Value;

type Out = Result<Value, Fault>;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const DAY: i64 = 86_400;
const NANOSECONDS: i128 = 1_000_000_000;
/// The message about a secret, whatever the mistake.
const SECRET: &str = "the time is wrong, or what is asked of it";

/// A time, in the zone that it was written in.
struct Time {
    /// The time on the clock of the zone, in seconds since the beginning of 1970.
    clock: i64,
    nanoseconds: u32,
    /// The minutes by which that clock is ahead of UTC.
    ahead: i64,
}

/// A day of the calendar.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    // The algorithms of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin with
    // March, in eras of 400.

    /// Returns the days since the beginning of 1970.
    fn days(&self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let month = (self.month + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        let year = year.rem_euclid(400);
        era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
    }

    fn of_days(days: i64) -> Self {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day = days.rem_euclid(146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: year + era * 400 + i64::from(month <= 2), month, day }
    }
}

impl Time {
    fn read(a: &[Value], argument: usize) -> Result<Self, Fault> {
        let time = read_time(text(a, argument)).ok_or_else(|| {
            let fault = Fault::new(argument, "this is no time as RFC 3339 has it");
            fault.help("write it such as 2026-11-25T04:30:00Z or 2026-11-25T05:30:00+01:00")
        });
        time.map_err(|fault| fault.of_secret(SECRET))
    }

    /// Returns the nanoseconds since the beginning of 1970, in UTC.
    fn instant(&self) -> i128 {
        i128::from(self.clock - self.ahead * 60) * NANOSECONDS + i128::from(self.nanoseconds)
    }

    fn date(&self) -> Date {
        Date::of_days(self.clock.div_euclid(DAY))
    }

    /// Returns hour, minute and second.
    fn of_day(&self) -> [i64; 3] {
        let second = self.clock.rem_euclid(DAY);
        [second / 3600, second / 60 % 60, second % 60]
    }

    fn zone(&self, separator: &str) -> String {
        let sign = if self.ahead < 0 { '-' } else { '+' };
        let minutes = self.ahead.abs();
        format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
    }

    /// Returns the time in the form of RFC 3339, to the second.
    fn shown(&self) -> String {
        let (Date { year, month, day }, [hour, minute, second]) = (self.date(), self.of_day());
        let zone = if self.ahead == 0 { "Z".to_owned() } else { self.zone(":") };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }
}

fn read_time(text: &str) -> Option<Time> {
    let number = |from: usize, length: usize| -> Option<i64> {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| text.as_bytes().get(*at) != Some(mark)) {
        return None;
    }
    let date = Date { year: number(0, 4)?, month: number(5, 2)?, day: number(8, 2)? };
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let days = date.days();
    // A day that is not in the calendar converts back to another one.
    let back = Date::of_days(days);
    let is_day = (back.month, back.day) == (date.month, date.day) && date.day > 0;
    if !is_day || !(1..=12).contains(&date.month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanoseconds = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        nanoseconds =
            format!("{:0<9.9}", fraction.get(..end).filter(|it| !it.is_empty())?).parse().ok()?;
        rest = &fraction[end..];
    }
    let ahead = read_zone(rest)?;
    let clock = days * DAY + hour * 3600 + minute * 60 + second;
    Some(Time { clock, nanoseconds, ahead })
}

fn read_zone(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    let digits = |text: &str, most: i64| -> Option<i64> {
        let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| is_two && *number <= most)
    };
    Some(sign * (digits(hours, 23)? * 60 + digits(minutes, 59)?))
}

pub(super) fn compare(a: &[Value]) -> Out {
    let (time, other) = (Time::read(a, 0)?, Time::read(a, 1)?);
    Ok(Value::Integer(match time.instant().cmp(&other.instant()) {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }))
}

pub(super) fn add(a: &[Value]) -> Out {
    later(a).map_err(|fault| fault.of_secret(SECRET))
}

fn later(a: &[Value]) -> Out {
    let time = Time::read(a, 0)?;
    let added = read_duration(text(a, 1)).ok_or_else(|| {
        let fault = Fault::new(1, "this is no length of time");
        fault.help("write numbers with units, such as 1h30m or -90s: h, m, s, ms, us, ns")
    })?;
    let clock = i128::from(time.clock) * NANOSECONDS + i128::from(time.nanoseconds) + added;
    let nanoseconds = u32::try_from(clock.rem_euclid(NANOSECONDS)).unwrap_or(0);
    let clock = i64::try_from(clock.div_euclid(NANOSECONDS)).unwrap_or(i64::MAX);
    let later = Time { clock, nanoseconds, ..time };
    if !(0..=9999).contains(&later.date().year) {
        return Err(Fault::new(1, "the time is before the year 0 or after the year 9999"));
    }
    Ok(Value::string(later.shown()))
}

/// Reads numbers with units, such as `1h30m0.5s`; returns nanoseconds.
fn read_duration(text: &str) -> Option<i128> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() || rest.len() > 100 {
        return None;
    }
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let unit_end =
            behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOSECONDS,
            "m" => 60 * NANOSECONDS,
            "h" => 3600 * NANOSECONDS,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u32>().ok()?.into() };
        let fraction: i128 = format!("{fraction:0<15.15}").parse().ok()?;
        sum += whole * unit + fraction * unit / 1_000_000_000_000_000;
        rest = behind;
    }
    Some(if negative { -sum } else { sum })
}

pub(super) fn format(a: &[Value]) -> Out {
    formatted(a).map_err(|fault| fault.of_secret(SECRET))
}

fn formatted(a: &[Value]) -> Out {
    let time = Time::read(a, 1)?;
    let mut made = String::new();
    let mut rest = text(a, 0);
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('\'') {
            rest = unquoted(quoted, &mut made)?;
            continue;
        }
        let end = rest.find(|c: char| c != first).unwrap_or(rest.len());
        let (verb, behind) = rest.split_at(end);
        if first.is_ascii_alphabetic() {
            let part = part(&time, verb).ok_or_else(|| {
                let fault = Fault::new(0, format!("there is no part `{verb}` of a time"));
                fault.help("text stands in single quotes: formatdate(\"'at' hh:mm\", …)")
            })?;
            made.push_str(&part);
        } else {
            made.push_str(verb);
        }
        rest = behind;
    }
    Ok(Value::string(made))
}

/// Adds a quoted text, in which two quotes mean one, and returns the rest after it.
fn unquoted<'t>(mut quoted: &'t str, made: &mut String) -> Result<&'t str, Fault> {
    loop {
        let Some((text, behind)) = quoted.split_once('\'') else {
            return Err(Fault::new(0, "a single quote in it is not closed"));
        };
        made.push_str(text);
        match behind.strip_prefix('\'') {
            Some(more) => {
                made.push('\'');
                quoted = more;
            }
            None => return Ok(behind),
        }
    }
}

fn part(time: &Time, verb: &str) -> Option<String> {
    let (Date { year, month, day }, [hour, minute, second]) = (time.date(), time.of_day());
    let of_twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour < 12 { "am" } else { "pm" };
    let name = |names: &[&str], index: i64| -> Option<String> {
        Some((*names.get(usize::try_from(index).ok()?)?).to_owned())
    };
    let month_name = || name(&MONTHS, month - 1);
    let day_name = || name(&DAYS, (time.clock.div_euclid(DAY) + 4).rem_euclid(7));
    let short = |name: Option<String>| name.map(|name| name[..3].to_owned());
    Some(match verb {
        "YYYY" => format!("{year:04}"),
        "YY" => format!("{:02}", year % 100),
        "MMMM" => month_name()?,
        "MMM" => short(month_name())?,
        "MM" => format!("{month:02}"),
        "M" => month.to_string(),
        "DD" => format!("{day:02}"),
        "D" => day.to_string(),
        "EEEE" => day_name()?,
        "EEE" => short(day_name())?,
        "hh" => format!("{hour:02}"),
        "h" => hour.to_string(),
        "HH" => format!("{of_twelve:02}"),
        "H" => of_twelve.to_string(),
        "AA" => half.to_uppercase(),
        "aa" => half.to_owned(),
        "mm" => format!("{minute:02}"),
        "m" => minute.to_string(),
        "ss" => format!("{second:02}"),
        "s" => second.to_string(),
        "ZZZZZ" => time.zone(":"),
        "ZZZZ" => time.zone(""),
        "ZZZ" if time.ahead == 0 => "UTC".to_owned(),
        "ZZZ" => time.zone(""),
        "Z" if time.ahead == 0 => "Z".to_owned(),
        "Z" => time.zone(":"),
        _ => return None,
    })
}
