//! Guards: what a plan may not do, whatever the difference: protected objects and lost data here; names that somebody
//! has, or may have, what an object names that is let go or stays, and too many values below.

use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::check::rules;
use crate::plan::decide::action::Flags;
use crate::plan::decide::{action, resume};
use crate::plan::draft::Draft;
use crate::plan::secrets::turned;
use crate::plan::{Action, Change, diagnostics};

/// Checks one decided instance.
pub(in crate::plan) fn check(
    resource: &ResourceConfig,
    draft: &Draft,
    (flags, key): (Flags, &SealKey),
    found: &mut Diagnostics,
) {
    let change = &draft.change;
    if change.action == Action::Replace && !is_half_made(draft, key) {
        check_prevent_destroy(flags.prevent_destroy, resource, change, found);
        check_loss(draft, flags, found);
        check_rules(draft, found);
    }
}

/// Refuses the end of an object whose `lifecycle.prevent_destroy` is true, by a delete or by a replace.
pub(in crate::plan) fn check_prevent_destroy(
    is_protected: bool,
    resource: &ResourceConfig,
    change: &Change,
    found: &mut Diagnostics,
) {
    if is_protected {
        let span = resource.lifecycle.prevent_destroy.as_ref().map(|item| item.span);
        found.push(diagnostics::destroy_prevented(span, &change.address, change.action.word()));
    }
}

/// A replace deletes the old object, so what keeps that from being deleted keeps it from being replaced.
fn check_rules(draft: &Draft, found: &mut Diagnostics) {
    let Draft { change, schema, retains, turned, .. } = draft;
    if let (Some(live), false) = (&change.before, retains) {
        let old = turned::in_clear(change, live, turned.as_deref());
        rules::check_delete(&schema.rules, &change.address, &old, change.span, found);
    }
}

/// What was not made whole holds nothing that could be lost or is worth protecting.
fn is_half_made(draft: &Draft, key: &SealKey) -> bool {
    let Change { progress, before, .. } = &draft.change;
    let before = before.as_deref();
    before.is_some_and(|before| resume::is_half_made(progress, before, (&draft.schema, key)))
}

/// Whatever asks for a replace, the old object goes with all that is in it.
fn check_loss(draft: &Draft, flags: Flags, found: &mut Diagnostics) {
    if flags.allow_data_loss || draft.retains || !action::holds_data(&draft.schema) {
        return;
    }
    let causes: Vec<_> = draft.change.causes.iter().filter(|cause| cause.replaces).collect();
    let span = causes.iter().find_map(|cause| cause.span).or(draft.change.span);
    let names: Vec<_> = causes.iter().map(|cause| cause.attribute.clone()).collect();
    found.push(diagnostics::data_would_be_lost(span, &draft.change.address, &names));
}
