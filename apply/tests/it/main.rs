//! Runs against a cloud in memory: whole lives of specs, and a crash at every record.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accepted_creates;
mod accounts;
mod client_ids;
mod cloud;
mod concurrent_changes;
mod crashes;
mod creates;
mod decided;
mod decisions;
mod delete_protection;
mod deletes;
mod dependency_cycles;
mod deposed_objects;
mod derived_attributes;
mod for_each;
mod for_each_references;
mod imports;
mod in_doubt;
mod interrupted_runs;
mod large_specs;
mod limits;
mod null_references;
mod object_ids;
mod one_time_secrets;
mod outputs;
mod overtaken;
mod phases;
mod plan_and_apply;
mod programs;
mod renames;
mod replace;
mod replace_triggered_by;
mod resolve;
mod reused_ids;
mod run_report;
mod saved_plans;
mod secret_chains;
mod secrets;
mod sensitivity_changes;
#[path = "../support/shapes.rs"]
mod shapes;
mod slow_cloud;
mod stale_lists;
mod stalled_runs;
mod state_migrate;
mod state_push;
mod unavailable_secrets;
mod unique_names;
mod unset;
mod volatile_attributes;
mod world;
mod write_only_attributes;
