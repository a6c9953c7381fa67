//! How many values a plan may hold in all.
//!
//! Each value is bounded by itself where it is evaluated. This bounds what a spec makes by having many
//! of them: without it a few lines make a plan that nobody can hold, walk or read. Who counts does so
//! as it evaluates, in any order; what is said of it is counted again in the order of the walk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::address::{Block, Name};
use crate::config::{Config, ResourceConfig};
use crate::diagnostics::Diagnostic;
use crate::expression::Expr;
use crate::expression::visit::walk;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::evaluate::desired::Instance;
use crate::plan::evaluate::scope::LocalCache;
use crate::value::{Attributes, Value};

/// The most values of a plan, in millions, items and entries counted. What is shared counts each time,
/// since whoever walks the plan meets it each time.
const MILLIONS_MAX: usize = 20;
const VALUES_MAX: usize = MILLIONS_MAX * 1_000_000;

/// So many bytes of text count as one value more.
const BYTES_PER_VALUE: usize = 64;

/// How many values were evaluated so far.
#[derive(Debug, Default)]
pub(in crate::plan) struct Spent(AtomicUsize);

impl Spent {
    pub(in crate::plan) fn add(&self, values: usize) {
        self.0.fetch_add(values, Ordering::Relaxed);
    }

    /// Whether a plan may hold no more.
    pub(in crate::plan) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) > VALUES_MAX
    }
}

/// What a value counts.
pub(in crate::plan) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / BYTES_PER_VALUE,
        Value::List(items) | Value::Set(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Map(entries) => 1 + weight_of(entries),
        Value::Unknown(unknown) => 1 + weight_of_expression(&unknown.residual),
        _ => 1,
    }
}

/// What a residual counts: its parts, for it is copied whole.
pub(in crate::plan) fn weight_of_expression(expr: &Expr) -> usize {
    let mut parts = 0;
    walk(expr, &mut |_| parts += 1);
    parts
}

/// What the attributes of an object count.
pub(in crate::plan) fn weight_of(attributes: &Attributes) -> usize {
    attributes.values().map(weight).sum()
}

/// Returns the diagnostic of a plan that would hold too much, with the place of most of it. `open` are
/// the instances under way: each is taken to need an equal part of what is left of the bound, so
/// that the answer does not depend on which of them was evaluated first.
pub(in crate::plan) fn exceeded(
    config: &Config,
    drafts: &[Draft],
    locals: &LocalCache,
    open: &[(&ResourceConfig, Instance<'_>)],
) -> Diagnostic {
    let mut blocks: BTreeMap<&Block, usize> = BTreeMap::new();
    for draft in drafts {
        let after = draft.change.after.as_deref().map_or(0, weight_of);
        *blocks.entry(&draft.change.address.block).or_default() += after;
    }
    let left = VALUES_MAX.saturating_sub(blocks.values().sum());
    for (resource, _) in open {
        *blocks.entry(&resource.block).or_default() += left / open.len();
    }
    let block = blocks.into_iter().max_by_key(|(_, values)| *values);
    match (block, locals.largest()) {
        (block, Some((name, values))) if block.is_none_or(|(_, most)| most < values) => {
            let span = config.locals.get(&name).map(|local| local.span);
            diagnostics::too_many_values(span, &format!("local.{name}"), MILLIONS_MAX)
        }
        (Some((block, _)), _) => {
            let span = config.resources.get(block).map(|resource| resource.header);
            diagnostics::too_many_values(span, &block.to_string(), MILLIONS_MAX)
        }
        (None, _) => diagnostics::too_many_values(None, "the outputs", MILLIONS_MAX),
    }
}

impl LocalCache {
    /// The one that counts most of those that were computed.
    fn largest(&self) -> Option<(Name, usize)> {
        let values = self.values();
        let weights = values.iter().filter_map(|(name, local)| {
            let (datum, _) = local.as_ref().ok()?;
            Some((name.clone(), weight(&datum.value)))
        });
        weights.max_by_key(|(_, values)| *values)
    }
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
