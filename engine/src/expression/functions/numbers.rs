//! Functions of numbers. Whole numbers stay whole.

use std::cmp::Ordering;

use super::Fault;
use crate::expression::evaluate::{float, word};
use crate::types::Type;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The most items that `range` makes.
const RANGE_MAX: usize = 65_536;

pub(super) fn abs(a: &[Value]) -> Out {
    match &a[0] {
        Value::Integer(number) => {
            number.checked_abs().map(Value::Integer).ok_or_else(|| too_large(0))
        }
        other => finite(0, float(other).map(f64::abs)),
    }
}

pub(super) fn ceil(a: &[Value]) -> Out {
    whole(&a[0], f64::ceil)
}

pub(super) fn floor(a: &[Value]) -> Out {
    whole(&a[0], f64::floor)
}

fn whole(value: &Value, round: fn(f64) -> f64) -> Out {
    match value {
        Value::Integer(_) => Ok(value.clone()),
        other => finite(0, float(other).map(round))?
            .as_integer()
            .map(Value::Integer)
            .ok_or_else(|| too_large(0)),
    }
}

pub(super) fn max(a: &[Value]) -> Out {
    Ok(extreme(a, Ordering::Greater))
}

pub(super) fn min(a: &[Value]) -> Out {
    Ok(extreme(a, Ordering::Less))
}

/// Returns the first of the greatest, or least, numbers.
fn extreme(numbers: &[Value], wanted: Ordering) -> Value {
    let better = |best: Option<Value>, number: &Value| match best {
        Some(best) if compare(number, &best) != wanted => Some(best),
        _ => Some(number.clone()),
    };
    numbers.iter().fold(None, better).unwrap_or(Value::Null)
}

/// Returns the sum of numbers; 0 for none.
pub(super) fn sum(a: &[Value]) -> Out {
    let text = "every item must be a number, and the result not too large for one";
    added(a).map_err(|fault| fault.of_secret(text))
}

fn added(a: &[Value]) -> Out {
    let items = a[0].as_items().unwrap_or_default();
    items.iter().try_fold(Value::Integer(0), |total, item| match (&total, item) {
        (Value::Integer(a), Value::Integer(b)) => {
            a.checked_add(*b).map(Value::Integer).ok_or_else(|| too_large(0))
        }
        (total, item) => {
            let number = float(item).ok_or_else(|| {
                Fault::new(0, format!("every item must be a number, found {}", word(item)))
            })?;
            finite(0, float(total).map(|total| total + number))
        }
    })
}

/// Computes `range(limit)`, `range(start, limit)` or `range(start, limit, step)`; the limit itself is not in
/// the result.
pub(super) fn range(a: &[Value]) -> Out {
    let text = "the steps do not lead to the limit, or there are too many of them";
    stepped(a).map_err(|fault| fault.of_secret(text))
}

fn stepped(a: &[Value]) -> Out {
    let (start, limit) = match a {
        [limit] => (&Value::Integer(0), limit),
        [start, limit, ..] => (start, limit),
        [] => (&Value::Integer(0), &Value::Integer(0)),
    };
    let ahead = compare(start, limit);
    let down = ahead.is_gt();
    let unit = Value::Integer(if down { -1 } else { 1 });
    let step = a.get(2).unwrap_or(&unit);
    let forward = compare(step, &Value::Integer(0));
    if forward.is_eq() {
        return Err(Fault::new(2, "the step is zero"));
    }
    if ahead == forward {
        return Err(Fault::new(2, "the step leads away from the limit"));
    }
    let mut items = Vec::new();
    let mut next = Some(start.clone());
    while let Some(item) = next.filter(|item| compare(item, limit) == ahead && ahead.is_ne()) {
        if items.len() == RANGE_MAX {
            return Err(Fault::new(0, format!("the range has more than {RANGE_MAX} items")));
        }
        next = match (&item, step) {
            (Value::Integer(a), Value::Integer(b)) => a.checked_add(*b).map(Value::Integer),
            (a, b) => float(a).zip(float(b)).map(|(a, b)| Value::Float(a + b)),
        };
        items.push(item);
    }
    Ok(Value::list(items))
}

pub(super) fn signum(a: &[Value]) -> Out {
    Ok(Value::Integer(match compare(&a[0], &Value::Integer(0)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// Returns a power; that of whole numbers is exact.
pub(super) fn pow(a: &[Value]) -> Out {
    let text = "the result is no number, or too large for one";
    raised(a).map_err(|fault| fault.of_secret(text))
}

fn raised(a: &[Value]) -> Out {
    if let (Value::Integer(number), Some(Ok(exponent))) =
        (&a[0], a[1].as_integer().map(u32::try_from))
    {
        return number.checked_pow(exponent).map(Value::Integer).ok_or_else(|| too_large(0));
    }
    let number = float(&a[0]).zip(float(&a[1])).map(|(number, exponent)| number.powf(exponent));
    if number.is_some_and(f64::is_nan) {
        return Err(Fault::new(0, "a negative number has no such power"));
    }
    finite(0, number)
}

pub(super) fn log(a: &[Value]) -> Out {
    let text = "there is no logarithm of this number to this base";
    logarithm(a).map_err(|fault| fault.of_secret(text))
}

fn logarithm(a: &[Value]) -> Out {
    let (number, base) = (float(&a[0]).unwrap_or(0.0), float(&a[1]).unwrap_or(0.0));
    if number <= 0.0 {
        return Err(Fault::new(0, "only a number above 0 has a logarithm"));
    }
    let logarithm = number.ln() / base.ln();
    if base <= 0.0 || !logarithm.is_finite() {
        return Err(Fault::new(1, "the base of a logarithm is a number above 0 other than 1"));
    }
    finite(0, Some(logarithm))
}

/// Reads a whole number in a base. Digits above 9 are letters: up to base 36 in upper or lower case, beyond
/// it first lower case and then upper case.
pub(super) fn parse_int(a: &[Value]) -> Out {
    let text = "this text is no whole number to this base";
    spelled(a).map_err(|fault| fault.of_secret(text))
}

fn spelled(a: &[Value]) -> Out {
    let base = a[1].as_integer().unwrap_or(0);
    if !(2..=62).contains(&base) {
        return Err(Fault::new(1, "the base is a number from 2 to 62"));
    }
    let text = super::texts::text(a, 0);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let wrong = || Fault::new(0, format!("this text is no whole number to base {base}"));
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(i64::from(digit - b'0')),
        b'a'..=b'z' => Some(i64::from(digit - b'a') + 10),
        b'A'..=b'Z' if base <= 36 => Some(i64::from(digit - b'A') + 10),
        b'A'..=b'Z' => Some(i64::from(digit - b'A') + 36),
        _ => None,
    };
    if digits.is_empty() {
        return Err(wrong());
    }
    let number = digits.bytes().try_fold(0_i64, |number, byte| {
        let digit = digit(byte).filter(|digit| *digit < base).ok_or_else(wrong)?;
        let next = number.checked_mul(base).and_then(|number| number.checked_add(sign * digit));
        next.ok_or_else(|| too_large(0))
    });
    number.map(Value::Integer)
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        _ => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

/// Returns the type of a list of whole numbers if the arguments are whole numbers.
pub(super) fn range_type(types: &[Type]) -> Type {
    Type::list(super::types::numeric(types))
}

fn finite(argument: usize, number: Option<f64>) -> Out {
    match number {
        Some(number) if number.is_finite() => Ok(Value::Float(number + 0.0)),
        _ => Err(too_large(argument)),
    }
}

fn too_large(argument: usize) -> Fault {
    Fault::new(argument, "the result is too large for a number").help("whole numbers have 64 bits")
}
