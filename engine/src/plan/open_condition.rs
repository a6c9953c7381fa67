//! Conditions that a run has to judge: those that nobody knows while planning, and what an object turned out to be.

use crate::diagnostics::{Sources, Span};
use crate::expression::Expr;
use crate::plan::Plan;

/// The time at which a run judges a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the object of the change is made or changed: a step `require`.
    Before,
    /// After that: a step `verify`.
    After,
}

/// A condition that a run judges.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCondition {
    /// The time.
    pub when: When,
    /// The kind, for people: `precondition`, `postcondition`, ``policy `x` ``.
    pub kind: String,
    /// The condition, with what is known filled in.
    pub condition: Expr,
    /// The message, with what is known filled in.
    pub message: Expr,
    /// The place of the condition in the spec.
    pub span: Span,
    /// The place, as people say it.
    pub place: Option<String>,
    /// True if it holds as far as the plan goes. It does not fail then because a secret in it is not known any more.
    pub holds_so_far: bool,
}

impl OpenCondition {
    /// Returns the kind and the place, as in `postcondition at plumb.toml:12`.
    pub fn title(&self) -> String {
        match &self.place {
            Some(place) => format!("{} at {place}", self.kind),
            None => self.kind.clone(),
        }
    }
}

impl Plan {
    /// Notes the places of conditions as people say them: a run has no texts of the spec.
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
