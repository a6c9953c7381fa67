//! The types of clouds in memory, and the attributes that a phase of theirs sends.

#[path = "../../../engine/tests/support/shapes.rs"]
mod types;

use engine::schema::{Phase, Presence, Sends, TypeSchema};
use engine::value::Attributes;
use provider_port::Call;

pub(crate) use self::types::*;

/// Returns the attributes that a call sends, by its phase.
pub(crate) fn sent(schema: &TypeSchema, phase: &Phase, call: &Call<'_>) -> Attributes {
    call.desired
        .iter()
        .filter(|(name, _)| schema.attributes[*name].presence != Presence::Computed)
        .filter(|(name, _)| phase.carries(name))
        .filter(|(name, _)| phase.sends != Sends::Changed || call.changed.contains(*name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
