//! Calls whose outcome is unknown: looked up by a run, by recovery, and by `plumb resolve`.

mod create_mismatch;
pub(crate) mod lookup;
pub(crate) mod ownership;
pub mod recover;
pub mod resolve;

pub(crate) use create_mismatch::{Sent, unlike};
