//! End to end: the real binary against the real service, as a user would run them.

mod bad_input;
mod crashes;
mod harness;
mod lifecycle;
mod quickstart;
mod saved_plans;
mod secrets;
