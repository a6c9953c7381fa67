//! The guards of objects and data: changes that a plan may not make, whatever the difference. The sibling
//! modules check names, references and the number of values.

use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::decide::{action, resume, rules};
use crate::plan::draft::Draft;
use crate::plan::facts::redactor;
use crate::plan::{Action, Change, diagnostics};

/// Refuses a change that ends an object which its `lifecycle` protects, that loses data without the consent
/// of the spec, or that breaks a rule of deletes. `resource` is the block of the spec; none if the spec has
/// no such block any more.
pub(in crate::plan) fn check(
    resource: Option<&ResourceConfig>,
    draft: &Draft,
    key: &SealKey,
    found: &mut Diagnostics,
) {
    let is_ended = matches!(draft.change.action, Action::Replace | Action::Delete);
    if !is_ended || is_half_made(draft, key) {
        return;
    }
    // The replace that put the object aside was checked already.
    if let (Some(resource), false) = (resource, draft.change.deposed) {
        check_prevent_destroy(resource, draft, found);
    }
    if draft.change.action == Action::Replace {
        check_loss(draft, found);
    }
    check_rules(resource, draft, found);
}

/// Refuses the end of an object whose `lifecycle.prevent_destroy` is true, by a delete or by a replace.
fn check_prevent_destroy(resource: &ResourceConfig, draft: &Draft, found: &mut Diagnostics) {
    if draft.flags.prevent_destroy {
        let (change, item) = (&draft.change, &resource.lifecycle.prevent_destroy);
        let span = item.as_ref().map(|item| item.span);
        found.push(diagnostics::destroy_prevented(span, &change.address, change.action.word()));
    }
}

/// Checks the rules of deletes. A replace deletes the old object, so a rule that forbids a delete also
/// forbids a replace.
fn check_rules(resource: Option<&ResourceConfig>, draft: &Draft, found: &mut Diagnostics) {
    let Draft { change, schema, retains, redacted, .. } = draft;
    if let (Some(live), false) = (&change.before, retains) {
        let span = change.span.or(resource.map(|resource| resource.header));
        let old = redactor::in_clear(change, live, redacted.as_deref());
        rules::check_delete(&schema.rules, &change.address, &old, span, found);
    }
}

/// Returns true if the create of the object is unfinished: such an object holds nothing to lose or protect.
fn is_half_made(draft: &Draft, key: &SealKey) -> bool {
    let Change { progress, before, .. } = &draft.change;
    let before = before.as_deref();
    before.is_some_and(|before| resume::is_half_made(progress, before, (&draft.schema, key)))
}

/// Refuses a replace that loses data, for whatever reason it replaces: the old object goes with everything in
/// it.
fn check_loss(draft: &Draft, found: &mut Diagnostics) {
    if draft.flags.allow_data_loss || draft.retains || !action::holds_data(&draft.schema) {
        return;
    }
    let causes: Vec<_> = draft.change.causes.iter().filter(|cause| cause.replaces).collect();
    let span = causes.iter().find_map(|cause| cause.span).or(draft.change.span);
    let names: Vec<_> = causes.iter().map(|cause| cause.attribute.clone()).collect();
    found.push(diagnostics::data_would_be_lost(span, &draft.change.address, &names));
}
