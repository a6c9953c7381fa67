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

/// The first of the numbers that no other surpasses.
fn extreme(numbers: &[Value], wanted: Ordering) -> Value {
    let better = |best: Option<Value>, number: &Value| match best {
        Some(best) if compare(number, &best) != wanted => Some(best),
        _ => Some(number.clone()),
    };
    numbers.iter().fold(None, better).unwrap_or(Value::Null)
}

/// Nothing sums to 0.
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

/// `range(limit)`, `range(start, limit)`, `range(start, limit, step)`; the limit is left out.
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

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        _ => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

/// A list of whole numbers when the arguments are.
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
