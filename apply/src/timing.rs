//! Time limits that runs and look-ups share.

use std::time::Duration;

/// The time after its record within which a call must be sent, or not at all. A process that stood still in
/// between may have lost its lock to another run, which relies on this call not being sent any more.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(5);
