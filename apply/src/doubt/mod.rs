//! Calls whose outcome is unknown: looked up by a run, by recovery, and by `plumb resolve`. What a look means
//! says [`engine::doubt`].

mod claims;
pub(crate) mod lookup;
pub mod recover;
pub mod resolve;
