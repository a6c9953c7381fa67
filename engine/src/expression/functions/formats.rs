//! `format` and `formatlist`: texts with verbs such as `%s` and `%05.1f`.

use super::Fault;
use super::texts::{bounded, text};
use crate::expression::evaluate::{BYTES_MAX, float, word};
use crate::expression::text::text_of;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The message about a secret, whatever the mistake.
const SECRET: &str = "the format and its values do not fit, or make too long a text";
/// The most digits after a point.
const PRECISION_MAX: usize = 1000;

pub(super) fn format(a: &[Value]) -> Out {
    let text = formatted(a).map_err(|fault| fault.of_secret(SECRET))?;
    Ok(Value::string(text))
}

pub(super) fn format_list(a: &[Value]) -> Out {
    rows(a).map_err(|fault| fault.of_secret(SECRET))
}

fn rows(a: &[Value]) -> Out {
    let mut count = None;
    for (argument, list) in a.iter().enumerate().skip(1) {
        let Some(items) = list.as_items() else { continue };
        match count {
            Some(count) if count != items.len() => {
                let message =
                    format!("this list has {} items, and an earlier one {count}", items.len());
                return Err(Fault::new(argument, message).help("give lists of the same length"));
            }
            _ => count = Some(items.len()),
        }
    }
    let mut rows = Vec::new();
    let mut bytes = 0;
    for row in 0..count.unwrap_or(1) {
        let cell = |value: &Value| match value.as_items() {
            Some(items) => items[row].clone(),
            None => value.clone(),
        };
        let text = formatted(&a.iter().map(cell).collect::<Vec<_>>())?;
        bytes += text.len();
        bounded(0, Some(bytes))?;
        rows.push(Value::string(text));
    }
    Ok(Value::list(rows))
}

fn formatted(a: &[Value]) -> Result<String, Fault> {
    let mut made = String::new();
    let (mut next, mut most) = (1, 0);
    let mut rest = text(a, 0);
    while let Some((before, behind)) = rest.split_once('%') {
        made.push_str(before);
        if let Some(behind) = behind.strip_prefix('%') {
            made.push('%');
            rest = behind;
            continue;
        }
        let (verb, behind) = Verb::read(behind)?;
        let argument = verb.argument.unwrap_or(next);
        let value = a.get(argument).ok_or_else(|| {
            let count = a.len() - 1;
            Fault::new(0, format!("the format has more verbs than the {count} values"))
        })?;
        made.push_str(&verb.shown(value, argument)?);
        bounded(argument, Some(made.len()))?;
        next = argument + 1;
        most = most.max(argument);
        rest = behind;
    }
    made.push_str(rest);
    if most + 1 < a.len() {
        return Err(Fault::new(most + 1, format!("the format has only {most} verbs")));
    }
    bounded(0, Some(made.len()))?;
    Ok(made)
}

/// A verb, with the flags and numbers between it and the percent sign.
struct Verb<'a> {
    /// Some of `-+ 0#`.
    flags: &'a str,
    width: usize,
    precision: Option<usize>,
    /// The index of the argument; none if the verb takes the next one.
    argument: Option<usize>,
    letter: char,
}

impl<'a> Verb<'a> {
    /// Reads a verb after its percent sign; returns it with the rest of the text.
    fn read(text: &'a str) -> Result<(Self, &'a str), Fault> {
        let (flags, rest) = split_where(text, |c| matches!(c, '-' | '+' | ' ' | '0' | '#'));
        let (width, mut rest) = split_where(rest, |c| c.is_ascii_digit());
        let mut precision = None;
        if let Some(behind) = rest.strip_prefix('.') {
            let (digits, behind) = split_where(behind, |c| c.is_ascii_digit());
            precision = Some(number(digits, PRECISION_MAX)?);
            rest = behind;
        }
        let mut argument = None;
        if let Some((index, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            argument = index.parse().ok().filter(|index| *index > 0);
            if argument.is_none() {
                let fault = Fault::new(0, "the number of a value in `%[…]` is not 1 or more");
                return Err(fault.help("write %[2]s for the second value"));
            }
            rest = behind;
        }
        let Some(letter) = rest.chars().next() else {
            let fault = Fault::new(0, "the format ends in the middle of a verb");
            return Err(fault.help("write %% for a percent sign"));
        };
        let width = number(width, BYTES_MAX)?;
        let verb = Self { flags, width, precision, argument, letter };
        Ok((verb, &rest[letter.len_utf8()..]))
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn shown(&self, value: &Value, argument: usize) -> Result<String, Fault> {
        let wrong = |wanted: &str| {
            let message = format!("`%{}` takes {wanted}, found {}", self.letter, word(value));
            Fault::new(argument, message)
        };
        match self.letter {
            'd' | 'b' | 'o' | 'x' | 'X' => {
                let number = value.as_integer().ok_or_else(|| wrong("a whole number"))?;
                Ok(self.signed(&self.digits(number.unsigned_abs()), number < 0))
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let number = float(value).ok_or_else(|| wrong("a number"))?;
                Ok(self.signed(&self.decimal(number.abs()), number < 0.0))
            }
            't' => match value {
                Value::Bool(value) => Ok(self.padded(&value.to_string())),
                _ => Err(wrong("a boolean")),
            },
            's' | 'q' => {
                let text = text_of(value).ok_or_else(|| wrong("a string, number or boolean"))?;
                let text = self.cut(&text);
                let quoted = || crate::stored::to_json(&Value::string(&*text)).to_string();
                Ok(self.padded(&if self.letter == 'q' { quoted() } else { text }))
            }
            'v' => {
                let json = || crate::stored::to_json(value).to_string();
                let plain = text_of(value).filter(|_| !self.has('#'));
                Ok(self.padded(&plain.unwrap_or_else(json)))
            }
            other => {
                let fault = Fault::new(0, format!("there is no verb `%{other}`"));
                Err(fault.help(
                    "write %s, %d, %f, %v or another verb of format(…), or %% for a percent sign",
                ))
            }
        }
    }

    /// Returns the digits of a whole number in the base of the verb.
    fn digits(&self, number: u64) -> String {
        let (prefix, digits) = match self.letter {
            'b' => ("0b", format!("{number:b}")),
            'o' => ("0", format!("{number:o}")),
            'x' => ("0x", format!("{number:x}")),
            'X' => ("0X", format!("{number:X}")),
            _ => ("", number.to_string()),
        };
        let prefix = if self.has('#') { prefix } else { "" };
        format!("{prefix}{digits:0>width$}", width = self.precision.unwrap_or(0))
    }

    fn decimal(&self, number: f64) -> String {
        let text = match self.letter {
            'f' | 'F' => format!("{number:.*}", self.precision.unwrap_or(6)),
            'e' | 'E' => with_exponent(&format!("{number:.*e}", self.precision.unwrap_or(6))),
            _ => self.shortest(number),
        };
        if self.letter.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
    }

    /// Returns as few digits as identify the number, with an exponent if it is far from 1.
    fn shortest(&self, number: f64) -> String {
        let precision = self.precision.map(|precision| precision.max(1));
        let scientific = match precision {
            Some(precision) => format!("{number:.*e}", precision - 1),
            None => format!("{number:e}"),
        };
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
        let exponent: i64 = exponent.parse().unwrap_or(0);
        let point = exponent + 1;
        let digits_count = i64::try_from(digits).unwrap_or(i64::MAX);
        let limit = match precision.map(|precision| i64::try_from(precision).unwrap_or(i64::MAX)) {
            Some(precision) if precision > digits_count && digits_count >= point => digits_count,
            Some(precision) => precision,
            None => 6,
        };
        if exponent < -4 || exponent >= limit {
            return with_exponent(&format!("{mantissa}e{exponent}"));
        }
        let behind = usize::try_from(digits_count - point).unwrap_or(0);
        format!("{number:.behind$}")
    }

    /// Returns a number with its sign, padded.
    fn signed(&self, digits: &str, negative: bool) -> String {
        let sign = match negative {
            true => "-",
            false if self.has('+') => "+",
            false if self.has(' ') => " ",
            false => "",
        };
        if self.has('0') && !self.has('-') {
            let width = self.width.saturating_sub(sign.len());
            return format!("{sign}{digits:0>width$}");
        }
        self.padded(&format!("{sign}{digits}"))
    }

    fn padded(&self, text: &str) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        if self.has('-') {
            return format!("{text}{}", " ".repeat(missing));
        }
        let fill = if self.has('0') { "0" } else { " " };
        format!("{}{text}", fill.repeat(missing))
    }

    fn cut(&self, text: &str) -> String {
        text.chars().take(self.precision.unwrap_or(usize::MAX)).collect()
    }
}

/// Writes an exponent with its sign and two digits or more.
fn with_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn split_where(text: &str, wanted: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !wanted(character)).unwrap_or(text.len()))
}

/// Returns the number that digits form; 0 if there are none.
fn number(digits: &str, most: usize) -> Result<usize, Fault> {
    if digits.is_empty() {
        return Ok(0);
    }
    let number = digits.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| Fault::new(0, format!("a width or precision in it is more than {most}")))
}
