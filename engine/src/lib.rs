//! The engine: spec to graph to plan to steps, and the journal as a state machine.
//!
//! Pure: no files, network, clock, environment, randomness or threads (a clippy.toml here bans
//! them). What it needs from outside it asks for, and the shell answers. In the order in which one
//! resource flows through it: text becomes a [`config`], its [`expression`]s are typed against the
//! [`schema`]s and evaluated to [`value`]s, the [`plan`] compares them with the [`state`] and what is
//! live, and the [`journal`] folds what happened back into the state.

pub mod address;
pub mod adopt;
pub mod condition;
pub mod config;
pub mod constraint;
pub mod diagnostics;
pub mod digest;
pub mod doubt;
pub mod duration;
pub mod event;
pub mod expression;
pub mod form;
pub mod graph;
pub mod hosts;
pub mod journal;
pub mod plan;
pub mod schema;
pub mod shell;
pub mod sorted;
pub mod state;
pub mod stored;
pub mod types;
pub mod value;
pub mod work;
pub mod write_back;
