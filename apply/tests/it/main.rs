//! Runs against a cloud in memory: whole lives of specs, and a crash at every record.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod aside;
mod behind;
mod bounds;
mod busy;
mod chained;
mod chains;
mod chosen;
mod circles;
mod cloud;
mod crashes;
mod creates;
mod decided;
mod decisions;
mod deletes;
mod derived;
mod doubts;
mod endings;
mod halfway;
mod identities;
mod ids;
mod imports;
mod large;
mod lives;
mod lost;
mod meanwhile;
mod moves;
mod names;
mod nulls;
mod once;
mod outputs;
mod overtaken;
mod passwords;
mod pauses;
mod phases;
mod programs;
mod promises;
mod pushes;
mod renames;
mod replaces;
mod reports;
mod resolve;
mod saved_plans;
mod secrets;
#[path = "../support/shapes.rs"]
mod shapes;
mod triggers;
mod turned;
mod versions;
mod wholes;
mod world;
