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
use crate::problem::Problem;
use crate::quirks::{Quirk, Quirks};
use crate::resources::endpoint::{self, Endpoint, Face, FlashBoot};
use crate::store::{Store, Tx};

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

/// A worker as the management APIs show it.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) id: String,
    pub(crate) desired_status: &'static str,
}

impl App {
    /// The workers of an endpoint that live.
    #[expect(clippy::unused_self, reason = "the workers come next")]
    pub(crate) fn pods(&self, _endpoint: &str) -> Vec<Pod> {
        Vec::new()
    }

    /// Tells the autoscaler that endpoints or their templates have changed.
    #[expect(clippy::unused_self, reason = "the workers come next")]
    pub(crate) fn endpoints_changed(&self) {}

    /// Removes an endpoint with all that belongs to it.
    #[expect(clippy::unused_self, reason = "the jobs come next")]
    pub(crate) fn delete_endpoint(&self, tx: &Tx<'_>, id: &str, face: Face) -> Result<(), Problem> {
        endpoint::delete(tx, id, face)
    }

    /// Removes the folder of a volume that is no more.
    pub(crate) fn volume_removed(&self, id: &str) {
        drop(std::fs::remove_dir_all(self.options.data.join("volumes").join(id)));
        self.say(&format!("network volume {id} removed"));
    }

    /// The name of an endpoint as it reads back.
    pub(crate) fn shown_name(&self, endpoint: &Endpoint) -> String {
        let suffixed = self.quirks.has(Quirk::FbSuffix) && endpoint.flash_boot != FlashBoot::Off;
        if suffixed && !endpoint.name.ends_with("-fb") {
            return format!("{} -fb", endpoint.name);
        }
        endpoint.name.clone()
    }

    /// The id of the one account.
    #[expect(clippy::unused_self, reason = "an account belongs to a running service")]
    pub(crate) fn user_id(&self) -> &'static str {
        "user_000000000000000000000000001"
    }
}
