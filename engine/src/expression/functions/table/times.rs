//! Functions of times. None of them reads a clock.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::Text;
use crate::expression::functions::{times, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("formatdate"("format" Text, "time" Text) -> types::string, Full(times::format))
        .gives("a time as text: `YYYY` `YY` year, `MMMM` `MMM` `MM` `M` month, `DD` `D` day, `EEEE` `EEE` day of the week, \
                `hh` `h` `HH` `H` hour of 24 and of 12, `AA` `aa` half of the day, `mm` `m` minute, `ss` `s` second, \
                `Z` `ZZZ` `ZZZZ` `ZZZZZ` zone, `'text'` text")
        .example(r#"formatdate("D MMM YYYY, hh:mm", "2026-01-02T23:12:01Z")"#, r#""2 Jan 2026, 23:12""#),
    function!("timeadd"("time" Text, "duration" Text) -> types::string, Full(times::add))
        .gives("the time that is so much later, such as `1h30m`; `-` for earlier")
        .example(r#"timeadd("2026-02-28T23:00:00Z", "1h30m")"#, r#""2026-03-01T00:30:00Z""#),
    function!("timecmp"("time" Text, "other" Text) -> types::integer, Full(times::compare))
        .gives("-1 if the first time is earlier, 0 if both are the same, 1 if it is later")
        .example(r#"timecmp("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00")"#, "0"),
];
