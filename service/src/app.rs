//! What every request handler sees of the running service.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::auth::Key;
use crate::faults::Faults;
use crate::gate::Rate;
use crate::lease::Leases;
use crate::options::{LogLine, Options};
use crate::quirks::Quirks;
use crate::store::Store;

/// The running service.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) key: Key,
    pub(crate) quirks: Quirks,
    pub(crate) faults: Faults,
    pub(crate) rate: Rate,
    pub(crate) access: Arc<AccessLog>,
    pub(crate) leases: Arc<Leases>,
    /// Fires when the service begins to drain: long polls answer early.
    pub(crate) draining: CancellationToken,
    pub(crate) log: LogLine,
    pub(crate) options: Options,
    /// Counts lists, for the quirk that leaves one object out of every other list.
    pub(crate) lists: AtomicU64,
}

impl App {
    /// Logs an event for people.
    pub(crate) fn say(&self, line: &str) {
        (self.log)(line);
    }
}
