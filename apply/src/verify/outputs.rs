//! Whether the outputs that a saved plan changes are still what it changes them from.

use engine::plan::{Action, OutputChange};
use engine::state::OutputValue;
use engine::stored::seal_like;

use super::{Fit, says_all_agrees, stale};
use crate::ApplyError;

impl Fit<'_> {
    /// What another run has made of an output since is not taken back unseen.
    pub(super) fn check_outputs(&self) -> Result<(), ApplyError> {
        let agrees = says_all_agrees(self.plan);
        let outputs = self.plan.outputs.iter();
        for (name, output) in outputs.filter(|(_, it)| agrees || it.action != Action::NoOp) {
            if !self.is_as_planned(output, self.snapshot.outputs.get(name)) {
                return stale(format!("the output `{name}` changed since then"));
            }
        }
        Ok(())
    }

    fn is_as_planned(&self, output: &OutputChange, now: Option<&OutputValue>) -> bool {
        let now = now.and_then(|now| now.value.value().ok());
        match (&output.before, &now) {
            (Some(before), Some(now)) => {
                seal_like(now, before, &self.snapshot.seal_key).same(before)
            }
            (before, now) => before.is_none() && now.is_none(),
        }
    }
}
