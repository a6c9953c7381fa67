//! The checks of a plan: they read the decided changes and report diagnostics.

pub(super) mod budget;
pub(super) mod dangling_references;
pub(super) mod lifecycle;
pub(super) mod names;
pub(super) mod plan_rules;
mod plan_words;
pub(super) mod policies;
mod programs;
pub(super) mod targets;
mod unavailable_secrets;
pub(super) mod unmanaged;
pub(super) mod written_secrets;

use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::context::Context;
use crate::plan::decided_changes::DecidedChanges;
use crate::plan::draft::Draft;
use crate::plan::facts::redactor;
use crate::plan::findings::Findings;
use crate::plan::{Action, diagnostics};

/// Runs every check over the decided changes.
pub(in crate::plan) fn check(
    context: &Context<'_>,
    changes: &DecidedChanges<'_>,
    found: &mut Findings,
) {
    let input = context.input;
    let DecidedChanges { drafts, names, references } = changes;
    for draft in drafts.iter().filter(|draft| draft.change.action != Action::NoOp) {
        check_one(context, draft, found);
    }
    dangling_references::check(drafts, references, &mut found.diagnostics);
    unmanaged::warn(drafts, references, &mut found.diagnostics);
    warn_of_changed_secret(drafts, &input.snapshot.seal_key, &mut found.diagnostics);
    names::check_conflicts(input, drafts, names, &mut found.diagnostics);
}

/// Warns about an attribute that becomes a secret and changes at the same time.
fn warn_of_changed_secret(drafts: &[Draft], key: &SealKey, found: &mut Diagnostics) {
    let changed =
        drafts.iter().find_map(|draft| Some((draft, redactor::changed_secret(draft, key)?)));
    if let Some((Draft { change, .. }, name)) = changed {
        found.push(diagnostics::secret_changed(change.span, &change.address, name));
    }
}

/// Checks one decided change by itself.
fn check_one(context: &Context<'_>, draft: &Draft, found: &mut Findings) {
    let input = context.input;
    let resource = input.config.resources.get(&draft.change.address.block);
    lifecycle::check(resource, draft, &input.snapshot.seal_key, &mut found.diagnostics);
    let Some(resource) = resource else { return };
    names::check_strangers(input, draft, found);
    found.lacks.extend(unavailable_secrets::check(draft, resource));
    // Before anything was read from outside, many more values are unknown than in a plan.
    if !input.options.validating {
        programs::check(resource, draft, &mut found.diagnostics);
    }
}
