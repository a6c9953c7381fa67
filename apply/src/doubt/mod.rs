//! Calls whose outcome is unknown. A run, recovery and `plumb resolve` look them up. [`engine::doubt`]
//! decides what a look-up means.

mod claims;
pub(crate) mod lookup;
pub mod recover;
pub mod resolve;
