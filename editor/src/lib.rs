//! A spec as editors see it: [`spec_schema`] describes it to editors of TOML, [`layout`] is how its text looks.

pub mod layout;
pub mod spec_schema;
pub mod words;
