//! Errors about secrets that a provider would refuse to send. The plan reports them before any call is made.

use engine::diagnostics::{Diagnostic, Diagnostics};
use engine::plan::{Change, Plan, Step};
use engine::value::Path;
use provider_port::Error;

use crate::Providers;
use crate::refresh::sensitive;

/// Returns the errors about secrets that the steps of a plan would send to a place where they may not go: one
/// error for each change.
pub(crate) fn refused_destinations(plan: &Plan, providers: &Providers) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut last = None;
    for step in &plan.steps {
        let change = &plan.changes[step.change];
        if last != Some(step.change)
            && let Some(error) = refusal(step, change, providers)
        {
            last = Some(step.change);
            found.push(said(error, change));
        }
    }
    found
}

fn refusal(step: &Step, change: &Change, providers: &Providers) -> Option<Error> {
    let (phase, after) = (step.phase?, change.after.as_ref()?);
    let provider = providers.get(&change.provider)?;
    let ty = &step.address.block.ty;
    let schema = provider.schema().types.get(ty)?.clone();
    let places = sensitive(&schema, &change.sensitive);
    let secrets = after.iter().filter(|(name, value)| {
        !value.is_null() && places.touches(&Path::attribute((*name).clone()))
    });
    secrets.map(|(name, _)| name).find_map(|name| provider.may_carry(ty, phase, name).err())
}

fn said(error: Error, change: &Change) -> Diagnostic {
    let said = Diagnostic::error(error.message).at(change.span).about(&change.address);
    match error.help {
        Some(help) => said.help(help),
        None => said,
    }
}
