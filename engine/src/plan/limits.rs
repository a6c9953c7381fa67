//! The limits of a plan. Values are counted while they are evaluated, in any order.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::expression::Expr;
use crate::expression::visit::walk;
use crate::value::{Attributes, Value};

/// The most instances of a spec.
pub(in crate::plan) const INSTANCES_MAX: usize = 250_000;

/// The most values of a plan, in millions, items and entries counted. A shared value counts for each place,
/// because code that walks the plan meets it in each place.
pub(in crate::plan) const MILLIONS_MAX: usize = 20;
pub(in crate::plan) const VALUES_MAX: usize = MILLIONS_MAX * 1_000_000;

/// The number of bytes of text that count as one value more.
const BYTES_PER_VALUE: usize = 64;

/// The number of values that were evaluated so far.
#[derive(Debug, Default)]
pub(in crate::plan) struct Spent(AtomicUsize);

impl Spent {
    pub(in crate::plan) fn add(&self, values: usize) {
        self.0.fetch_add(values, Ordering::Relaxed);
    }

    /// Returns true if the plan has more values than it may hold.
    pub(in crate::plan) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) > VALUES_MAX
    }
}

/// Returns the number of values in a value, items and entries counted.
pub(in crate::plan) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / BYTES_PER_VALUE,
        Value::List(items) | Value::Set(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Map(entries) => 1 + weight_of(entries),
        Value::Unknown(unknown) => 1 + weight_of_expression(&unknown.residual),
        _ => 1,
    }
}

/// Returns the number of parts of a residual. A residual is copied as a whole, so all parts count.
pub(in crate::plan) fn weight_of_expression(expr: &Expr) -> usize {
    let mut parts = 0;
    walk(expr, &mut |_| parts += 1);
    parts
}

/// Returns the number of values in the attributes of an object.
pub(in crate::plan) fn weight_of(attributes: &Attributes) -> usize {
    attributes.values().map(weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_walked_is_counted() {
        let text = |length: usize| Value::string("x".repeat(length));
        for (value, counted) in [
            (Value::Null, 1),
            (text(63), 1),
            (text(640), 11),
            (Value::list(vec![Value::Null, text(64)]), 4),
            (Value::map(Attributes::from_iter([("a".into(), Value::Null)])), 2),
        ] {
            assert_eq!(weight(&value), counted, "{value:?}");
        }
    }

    #[test]
    fn the_bound_is_the_last_that_is_allowed() {
        let spent = Spent::default();
        spent.add(VALUES_MAX);
        assert!(!spent.is_over());
        spent.add(1);
        assert!(spent.is_over());
    }
}
