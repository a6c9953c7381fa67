//! The stores of the state: the port, the stored formats, and the backends, each a module.
//!
//! A store holds one snapshot and the journal since. A save is a compare-and-swap: the caller names the
//! version that it replaces. Not only the lock is fenced, but the log, too: a holder that lost the lock can
//! append nothing, and by the rule "journal before world" starts no call.
//!
//! Stores do not fold: they return the snapshot and the records since, and do not know the meaning of the
//! records.

mod blocking;
pub mod cipher;
pub mod conformance;
pub mod disk;
mod environment;
mod error;
mod fence;
mod fenced_log;
pub mod file;
pub mod format;
pub mod frame;
mod holder;
mod json;
pub mod mark;
pub mod memory;
#[cfg(feature = "object-store")]
pub mod object;
pub mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
mod store;

pub use crate::environment::{Environment, Refusal};
pub use crate::error::StoreError;
pub use crate::frame::NUMBER_MAX;
pub use crate::holder::Holder;
pub use crate::store::{Loaded, LockedStore, Store, Version};
