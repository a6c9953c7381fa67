//! Guards: what a plan may not do, whatever the difference: protected objects, lost data, names
//! that somebody else has.

use super::decide::Flags;
use super::input::PlanInput;
use super::planner::Draft;
use super::{Action, diagnostics};
use crate::diagnostics::Diagnostics;
use crate::spec::ResourceConfig;
use crate::value::Value;

/// Checks one decided instance.
pub(super) fn check(
    input: &PlanInput<'_>,
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
    if matches!(change.action, Action::Create | Action::Replace) {
        check_name(input, draft, found);
    }
}

fn check_loss(draft: &Draft, flags: Flags, found: &mut Diagnostics) {
    let losing: Vec<_> = draft
        .change
        .causes
        .iter()
        .filter(|cause| cause.replaces && draft.schema.attributes[&cause.attribute].data_loss)
        .collect();
    if losing.is_empty() || flags.allow_data_loss {
        return;
    }
    let span = losing.iter().find_map(|cause| cause.span).or(draft.change.span);
    let names: Vec<_> = losing.iter().map(|cause| cause.attribute.clone()).collect();
    found.push(diagnostics::data_would_be_lost(span, &draft.change.address, &names));
}

fn check_name(input: &PlanInput<'_>, draft: &Draft, found: &mut Diagnostics) {
    let change = &draft.change;
    let Some(attribute) = &draft.schema.name_attribute else { return };
    let after = change.after.as_ref().and_then(|after| after.get(attribute));
    let Some(Value::String(name)) = after else { return };
    let key = (change.provider.clone(), draft.schema.name.clone(), name.clone());
    let Some(ids) = input.observations.strangers.get(&key) else { return };
    let config = input.config.resources.get(&change.address.block);
    let span = config
        .and_then(|resource| resource.attributes.get(attribute))
        .map(|item| item.value.span)
        .or(change.span);
    let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    found.push(diagnostics::name_is_taken(
        span,
        &change.address,
        name,
        draft.schema.unique_name,
        &ids,
    ));
}
