//! End to end: the real binary against the real service, as a user would run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acceptance;
mod acme;
mod addressed;
mod asked;
mod bad_input;
mod changes;
mod checks;
mod crashes;
mod endpoints;
mod examples;
mod harness;
mod hostile;
mod import;
mod jobs;
mod kills;
mod lifecycle;
mod local_service;
mod omitted;
mod options;
mod quickstart;
mod quirks;
mod recorder;
mod saved_plans;
mod scale;
mod sealed;
mod secrets;
mod state;
mod stopping;
mod sweep;
mod two_runs;
