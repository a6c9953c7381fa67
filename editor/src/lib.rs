//! A spec as editors see it: [`spec_schema`] describes it to editors of TOML.

pub mod spec_schema;
pub mod words;
