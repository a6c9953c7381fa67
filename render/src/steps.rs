//! The steps of a plan as a program: the oracle of planner tests.

use engine::plan::Plan;

use crate::safe;
use crate::view::{StepView, step_view};

/// One line per step, such as `s1 = create value.a after s0`.
pub fn text(plan: &Plan) -> String {
    plan.steps.iter().map(|step| line(&step_view(step)) + "\n").collect()
}

/// The line of one step, without its end.
pub fn line(step: &StepView) -> String {
    let StepView { id, operation, address, needs } = step;
    let address = safe::text(address);
    if needs.is_empty() {
        return format!("{id} = {operation} {address}");
    }
    format!("{id} = {operation} {address} after {}", needs.join(", "))
}
