//! End to end: the real binary against the real service, as a user would run them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acceptance;
mod acme;
mod adopt;
mod bad_input;
mod catalog;
mod checks;
mod concurrent_runs;
mod conditions;
mod confirmation;
mod console;
mod crashes;
mod data;
mod drift_write;
mod empty_values;
mod endpoints;
mod examples;
mod harness;
mod hostile;
mod images;
mod import;
mod interrupts;
mod jobs;
mod kills;
mod lifecycle;
mod local_service;
mod modules;
mod moves;
mod options;
mod pods;
mod policies;
mod provider_addresses;
mod quickstart;
mod quirks;
mod random_changes;
mod recording_proxy;
mod saved_plans;
mod scale;
mod secret_sweep;
mod secrets;
mod spec_schema;
mod state;
mod state_encryption;
mod test_command;
mod versions;
