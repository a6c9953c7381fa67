//! A spec as editors see it: [`spec_schema`] describes it to editors of TOML, [`layout`] is the way that its text looks,
//! and [`serve`] is a language server.
//!
//! The engine finds the mistakes and says what is what; this crate turns texts with a cursor into questions about that.
//! Files, environment and state are the shell's, behind [`Workspace`].

mod language;
pub mod layout;
mod server;
pub mod spec_schema;
mod text;
pub mod words;
mod workspace;

pub use server::serve;
pub use workspace::{OpenTexts, PlannedChanges, Spec, Workspace};
