//! The entries of all targets; see there.

pub mod entries;
