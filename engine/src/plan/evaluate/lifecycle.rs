//! The flags of an instance's `lifecycle`.

use crate::address::Address;
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::plan::draft::Flags;
use crate::plan::evaluate::desired;
use crate::plan::evaluate::scope::SpecScope;

/// Evaluates the flags.
pub(in crate::plan) fn flags(
    resource: &ResourceConfig,
    scope: &SpecScope<'_>,
    address: &Address,
    found: &mut Diagnostics,
) -> Flags {
    let lifecycle = &resource.lifecycle;
    let mut flag = |item, word| desired::flag(item, word, scope, address, found);
    Flags {
        prevent_destroy: flag(lifecycle.prevent_destroy.as_ref(), "prevent_destroy")
            .unwrap_or(false),
        allow_data_loss: flag(lifecycle.allow_data_loss.as_ref(), "allow_data_loss")
            .unwrap_or(false),
        create_first: flag(lifecycle.create_before_destroy.as_ref(), "create_before_destroy"),
        retain: flag(lifecycle.retain.as_ref(), "retain").unwrap_or(false),
        triggered: false,
    }
}
