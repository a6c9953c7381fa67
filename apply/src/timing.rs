//! Times that runs and look-ups share.

use std::time::Duration;

/// A call begins within this time after its record, or not at all: a process that stood still in
/// between may have lost its place to another run, which believes that nothing more comes.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(5);
