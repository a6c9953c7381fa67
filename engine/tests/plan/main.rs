//! Tests of the planner, text to text. The spec that was applied, changes outside Plumb and the spec that is
//! planned go in; the plan's changes, steps and diagnostics come out as lines.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod conditions;
mod data;
mod forms;
mod imports;
mod lifecycle;
mod moves;
mod names;
mod order;
mod plan_rules;
#[path = "../support/shapes.rs"]
mod shapes;
mod unset;
mod world;
