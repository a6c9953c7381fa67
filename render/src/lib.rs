//! Rendering: one view model, and its forms for people and for machines.
//!
//! The data to show is first turned into a view ([`view`], [`state`], [`diagnostics`]). A view holds no
//! secret, and its serialisation is the JSON output. The renderers read only views, so no renderer shows more
//! than another. They return text and print nothing.

mod changes;
mod costs;
pub mod diagnostics;
pub mod differences;
pub mod drift;
pub mod events;
pub mod graph;
pub mod journal;
pub mod json;
pub mod markdown;
pub mod moment;
pub mod paint;
mod reason;
pub mod safe;
pub mod shown;
pub mod state;
pub mod steps;
pub mod terminal;
mod values;
pub mod view;

pub use paint::Colour;
