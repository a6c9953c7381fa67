//! Guards: what a plan may not do, whatever the difference: protected objects, lost data.

use super::decide::{self, Flags};
use super::planner::Draft;
use super::{Action, diagnostics};
use crate::diagnostics::Diagnostics;
use crate::spec::ResourceConfig;

/// Checks one decided instance.
pub(super) fn check(
    resource: &ResourceConfig,
    draft: &Draft,
    flags: Flags,
    found: &mut Diagnostics,
) {
    let change = &draft.change;
    if change.action == Action::Replace {
        if flags.prevent_destroy {
            let span = resource.lifecycle.prevent_destroy.as_ref().map(|item| item.span);
            found.push(diagnostics::destroy_prevented(span, &change.address, "replace"));
        }
        check_loss(draft, flags, found);
    }
}

/// Whatever asks for a replace, the old object goes with all that is in it.
fn check_loss(draft: &Draft, flags: Flags, found: &mut Diagnostics) {
    if flags.allow_data_loss || draft.retains || !decide::holds_data(&draft.schema) {
        return;
    }
    let causes: Vec<_> = draft.change.causes.iter().filter(|cause| cause.replaces).collect();
    let span = causes.iter().find_map(|cause| cause.span).or(draft.change.span);
    let names: Vec<_> = causes.iter().map(|cause| cause.attribute.clone()).collect();
    found.push(diagnostics::data_would_be_lost(span, &draft.change.address, &names));
}
