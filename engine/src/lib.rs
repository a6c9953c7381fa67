//! The engine: from the spec to the graph, the plan and the steps, and the journal as a state machine.
//!
//! Pure: no files, network, clock, environment, randomness or threads (a clippy.toml here bans them). The
//! engine asks for what it needs from outside, and the shell answers. A resource flows through the modules in
//! this order: text becomes a [`config`], its [`expression`]s are typed against the [`schema`]s and evaluated
//! to [`value`]s, the [`plan`] compares these with the [`state`] and the live objects, and the [`journal`]
//! folds the results of calls back into the state.

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
mod secret_words;
pub mod shell;
pub mod sorted;
pub mod state;
pub mod stored;
pub mod types;
pub mod value;
pub mod work;
pub mod write_back;
