//! The text of a program: `s1 = create value.b after s0`, a line for each step.
//!
//! Planner tests compare this text, and `plan --steps` shows it.

use std::fmt::Write as _;

use crate::plan::{Plan, Step};

/// Returns the steps as text.
pub fn steps(plan: &Plan) -> String {
    plan.steps.iter().fold(String::new(), |mut text, step| {
        let _infallible = writeln!(text, "{}", line(step));
        text
    })
}

/// Returns one step as text, without a line end.
pub fn line(step: &Step) -> String {
    let mut text = format!("{} = {} {}", step.id, step.operation.word(), step.address);
    if let (Some(object), true) = (&step.object, step.phase.is_some()) {
        let _infallible = write!(text, " ({object})");
    }
    let needs: Vec<String> = step.needs.iter().map(ToString::to_string).collect();
    if !needs.is_empty() {
        let _infallible = write!(text, " after {}", needs.join(", "));
    }
    text
}
// x
