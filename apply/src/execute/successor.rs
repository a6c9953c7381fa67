//! What a replace that deletes first would make: it ends nothing as long as the new object could not be
//! made.
//!
//! The plan says it where it looked. One that did not look, or a saved one, is held to it here, as far as
//! what the new object is made from stays as it is: what this run makes yet will be known in time.

use engine::address::Address;
use engine::expression::Expr;
use engine::journal::{PhaseRef, ProgramKind};
use engine::plan::{Action, Change, Step, lint};
use engine::types::Type;
use engine::value::Value;

use super::Run;
use crate::fill::known;
use crate::trouble::Trouble;

impl Run<'_> {
    /// Why the old object of a replace is not to be deleted yet.
    pub(super) fn no_successor(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
    ) -> Option<Trouble> {
        let entry = self.session.snapshot().entries.get(&step.address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        let is_old = current.is_some_and(|current| step.object.as_ref() == Some(&current.id));
        if phase.kind != ProgramKind::Delete || change.action != Action::Replace || !is_old {
            return None;
        }
        change.secrets.iter().find_map(|(name, expr)| {
            let why = known(expr, &self.scope()).err().filter(|_| self.is_settled(expr, change))?;
            Some(Trouble {
                message: format!("`{name}` of the new object is not known: {why}"),
                help: Some(
                    "nothing was deleted: replace what the secret comes from, too, or give it as \
                     a variable"
                        .to_owned(),
                ),
            })
        })
    }

    /// Whether all that an expression refers to stays as it is.
    fn is_settled(&self, expr: &Expr, change: &Change) -> bool {
        let stays = |address: &Address| {
            let other = self.input.plan.change(address);
            *address != change.address && other.is_some_and(|it| it.action == Action::NoOp)
        };
        let sources = lint::slots(&[Value::unknown(Type::Any, expr.clone())]);
        !sources.is_empty() && sources.iter().all(stays)
    }
}
