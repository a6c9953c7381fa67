//! Questions to the shell: what look-ups need beside lists.

use crate::address::{Address, Name};
use crate::state::ObjectId;

/// A question to the shell.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRequest {
    /// The look-up that needs the answer.
    pub address: Address,
    /// The object that is to be read, because lists do not show all of it.
    pub object: ObjectId,
    /// The provider instance that reads it.
    pub provider: Name,
}
