//! End to end: the real binary against the real service, as a user would run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acme;
mod bad_input;
mod checks;
mod crashes;
mod examples;
mod harness;
mod import;
mod jobs;
mod kills;
mod lifecycle;
mod quickstart;
mod quirks;
mod saved_plans;
mod sealed;
mod secrets;
mod two_runs;
