//! The report of a plan that would hold too many values.
//!
//! Each single value has a bound where it is evaluated. This bounds the number of values that a spec makes:
//! without it a few lines make a plan that fits into no memory.

use std::collections::BTreeMap;

use crate::address::{Block, Name, local_shown};
use crate::config::{Config, ResourceConfig};
use crate::diagnostics::Diagnostic;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::evaluate::desired::Instance;
use crate::plan::evaluate::scope::LocalCache;
use crate::plan::limits::{MILLIONS_MAX, VALUES_MAX, weight, weight_of};

/// Returns the diagnostic of a plan that would hold too many values, with the place of most of them. `open`
/// are the instances that are being evaluated. Each counts for an equal part of the rest of the bound, so
/// that the answer does not depend on the order of evaluation.
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
            let span = config.locals.get(&name).map(|local| local.value.span);
            diagnostics::too_many_values(span, &local_shown(&name), MILLIONS_MAX)
        }
        (Some((block, _)), _) => {
            let span = config.resources.get(block).map(|resource| resource.header);
            diagnostics::too_many_values(span, &block.to_string(), MILLIONS_MAX)
        }
        (None, _) => diagnostics::too_many_values(None, "the outputs", MILLIONS_MAX),
    }
}

impl LocalCache {
    /// Returns the local with the most values among those that were computed.
    fn largest(&self) -> Option<(Name, usize)> {
        let values = self.values();
        let weights = values.iter().filter_map(|(name, local)| {
            let (datum, _) = local.as_ref().ok()?;
            Some((name.clone(), weight(&datum.value)))
        });
        weights.max_by_key(|(_, values)| *values)
    }
}
