//! Conditions that a run has to judge: those that are not known while planning, and those on the finished
//! object.

use crate::diagnostics::{Sources, Span};
use crate::expression::Expr;
use crate::plan::Plan;

/// The time at which a run judges a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the object of the change is made or changed: a step `require`.
    Before,
    /// After the object was made or changed: a step `verify`.
    After,
}

/// A condition that a run judges.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCondition {
    /// The time at which the condition is judged.
    pub when: When,
    /// The kind, for people: `precondition`, `postcondition`, ``policy `x` ``.
    pub kind: String,
    /// The condition, with the known values filled in.
    pub condition: Expr,
    /// The message, with the known values filled in.
    pub message: Expr,
    /// The place of the condition in the spec.
    pub span: Span,
    /// The place of the condition as people read it, such as `plumb.toml:12`; none if it was not computed.
    pub place: Option<String>,
    /// True if the condition holds by the values of the plan. It does not fail later because a secret in it
    /// is no longer known.
    pub holds_so_far: bool,
}

impl OpenCondition {
    /// Returns the kind and the place, such as `postcondition at plumb.toml:12`.
    pub fn title(&self) -> String {
        match &self.place {
            Some(place) => format!("{} at {place}", self.kind),
            None => self.kind.clone(),
        }
    }
}

impl Plan {
    /// Adds the places as people read them: a run does not have the texts of the spec.
    #[must_use]
    pub fn with_places(mut self, sources: &Sources) -> Self {
        let changes = self.changes.iter_mut().flat_map(|change| &mut change.conditions);
        let outputs = self.outputs.values_mut().flat_map(|output| &mut output.conditions);
        for condition in changes.chain(outputs) {
            let file = sources.get(condition.span.file);
            let position = sources.position(condition.span);
            let place = file.zip(position);
            condition.place = place.map(|(file, at)| format!("{}:{}", file.path, at.line));
        }
        self
    }
}
