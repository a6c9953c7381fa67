//! The check before a replace that deletes first: the old object is not deleted as long as the new one could
//! not be made.
//!
//! A plan with a refresh reports this itself. A plan without one, and a saved plan, are checked here. The
//! check applies if the inputs of the new object do not change in this run, or are a secret that this run
//! does not make anew. All other inputs that this run makes will be known in time.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::expression::evaluate::evaluate;
use engine::expression::{Expr, visit};
use engine::journal::{PhaseRef, ProgramKind};
use engine::plan::{Action, Change, Step};
use engine::types::Type;
use engine::value::Value;

use super::StepContext;
use crate::fill::known;
use crate::step_error::StepError;

impl StepContext<'_> {
    /// Returns the error if the old object of a replace must not be deleted yet; else `None`.
    pub(super) fn no_successor(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
    ) -> Option<StepError> {
        let entry = self.snapshot.entries.get(&step.address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        let is_old = current.is_some_and(|current| step.object.as_ref() == Some(&current.id));
        if phase.kind != ProgramKind::Delete || change.action != Action::Replace || !is_old {
            return None;
        }
        change.secrets.iter().find_map(|(name, expr)| {
            let why = known(expr, &self.scope()).err()?;
            if !self.is_settled(expr, change) && !self.is_lost(expr, change) {
                return None;
            }
            Some(StepError {
                message: format!("`{name}` of the new object is not known: {why}"),
                help: Some(
                    "nothing was deleted: replace what the secret comes from, too, or give it as \
                     a variable"
                        .to_owned(),
                ),
            })
        })
    }

    /// Returns true if this run changes none of the objects that an expression refers to.
    fn is_settled(&self, expr: &Expr, change: &Change) -> bool {
        let stays = |address: &Address| {
            let other = self.input.plan.change(address);
            *address != change.address && other.is_some_and(|it| it.action.is_idle())
        };
        let sources = self.sources(expr);
        !sources.is_empty() && sources.iter().all(stays)
    }

    /// Returns true if an expression refers to a secret of which only the fingerprint is known, and this run
    /// makes no new one. A mere update of the object does not show the secret.
    fn is_lost(&self, expr: &Expr, change: &Change) -> bool {
        let keeps = |address: &Address| {
            let other = self.input.plan.change(address);
            let makes = |it: &Change| matches!(it.action, Action::Create | Action::Replace);
            *address != change.address && other.is_some_and(|it| !makes(it))
        };
        let mut is_lost = false;
        visit::references(expr, &mut |part| {
            let datum = evaluate(part, &self.scope());
            let is_sealed = datum.is_ok_and(|datum| datum.value.holds_sealed());
            is_lost |= is_sealed && self.sources(part).iter().all(keeps);
        });
        is_lost
    }

    fn sources(&self, expr: &Expr) -> BTreeSet<Address> {
        self.input.plan.referred(&[Value::unknown(Type::Any, expr.clone())])
    }
}
