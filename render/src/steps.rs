//! The steps of a plan as a program; planner tests compare this text.

use engine::plan::Plan;

use crate::safe;
use crate::view::{StepView, step_view};

/// Returns one line for each step, such as `s1 = create value.a after s0`.
pub fn text(plan: &Plan) -> String {
    plan.steps.iter().map(|step| line(&step_view(step)) + "\n").collect()
}

/// Returns the line of one step, without its end.
pub fn line(step: &StepView) -> String {
    let StepView { id, operation, address, needs } = step;
    let address = safe::text(address);
    if needs.is_empty() {
        return format!("{id} = {operation} {address}");
    }
    format!("{id} = {operation} {address} after {}", needs.join(", "))
}
