//! Decided changes of objects that move, and moves that the spec contradicts.

use crate::diagnostics::Diagnostics;
use crate::plan::context::Context;
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::facts::deferrals::Deferral;
use crate::plan::moves::Moves;
use crate::plan::{Action, Reason, diagnostics};

/// Gives each object that moves its earlier address. An object without any other change gets the action move.
pub(in crate::plan) fn mark(moves: &Moves, drafts: &mut [Draft]) {
    if moves.origins().is_empty() {
        return;
    }
    for Draft { change, deferral, .. } in drafts {
        if change.deposed || change.object.is_none() {
            continue;
        }
        change.moved_from = moves.origin(&change.address).cloned();
        let is_idle = change.action == Action::NoOp && *deferral != Some(Deferral::InDoubt);
        if is_idle && change.moved_from.is_some() {
            (change.action, change.reason) = (Action::Move, Reason::Moved);
        }
    }
}

/// Reports moves that contradict the spec: a move away from an instance that the spec wants, or to one that
/// it does not have.
pub(in crate::plan) fn check(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    found: &mut Diagnostics,
) {
    for config in &context.input.config.moves {
        let rule = &config.rule;
        let (from, to) = (rule.from().instance(), rule.to().instance());
        if let Some(from) = from.filter(|from| evaluation.planned.has(from)) {
            found.push(diagnostics::moved_and_wanted(&from, config.from));
        }
        let acts = |to: &_| context.input.moves.origin(to).is_some();
        let missing = to.filter(|to| to.key.is_some() && acts(to));
        if let Some(to) = missing.filter(|to| !evaluation.planned.has(to)) {
            found.push(diagnostics::move_to_no_instance(&to, config.to));
        }
    }
}
