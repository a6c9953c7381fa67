//! A call of a run that is under way.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::address::Name;
use engine::digest::SealKey;
use engine::doubt::{CallInDoubt, Sent};
use engine::journal::Started;
use engine::schema::{PhaseWords, TypeSchema};
use engine::sorted::Set;
use engine::value::Attributes;
use provider_port::{Error, Provider};
use tokio::time::Instant;

/// A call that is under way.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) started: Started,
    pub(super) sent: SentAttributes,
    pub(super) schema: Arc<TypeSchema>,
    pub(super) provider: Arc<dyn Provider>,
    /// The number of earlier attempts of the step, each of which was in doubt.
    pub(super) tries: usize,
    pub(super) since: Instant,
    /// The reason why it is in doubt.
    pub(super) doubt: Option<Doubt>,
}

/// The attributes that a call sends.
#[derive(Clone)]
pub(super) struct SentAttributes {
    /// All of them, in clear.
    pub(super) desired: Arc<Attributes>,
    /// Those that the change is about.
    pub(super) changed: Arc<BTreeSet<Name>>,
    /// Those that may differ, by the spec's `ignore_changes`.
    pub(super) ignored: Set<Name>,
    /// Those that are to be read from the object before the call: secrets of a delete.
    pub(super) readable: BTreeSet<Name>,
}

/// An answer, or the loss of one, that leaves open what a call did.
#[derive(Clone)]
pub(super) enum Doubt {
    /// There was no answer that says anything.
    Lost(Error),
    /// The API accepted the call, and showed nothing of it.
    Accepted(Error),
    /// The API refused the call, which may repeat one that did its work. Should nothing have happened, the
    /// refusal stands.
    Refused(Error),
    /// The call did its work, and what it waits for did not come true.
    Unfulfilled(Error),
}

impl InFlight {
    /// Returns the words for what it does.
    pub(super) fn words(&self) -> PhaseWords {
        let phase = self.schema.phase(self.started.phase);
        phase.map(|phase| phase.words.clone()).unwrap_or_default()
    }

    /// Returns the call as the engine judges it by a look at its object.
    pub(super) fn in_doubt<'a>(&'a self, key: &'a SealKey) -> CallInDoubt<'a> {
        CallInDoubt {
            started: &self.started,
            schema: &self.schema,
            sent: Some(self.sent.borrow()),
            accepted: self.is_accepted(),
            elsewhere: false,
            key,
        }
    }

    /// Returns true if the API accepted the call, and showed nothing of it.
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.doubt, Some(Doubt::Accepted(_)))
    }
}

impl SentAttributes {
    pub(super) fn borrow(&self) -> Sent<'_> {
        Sent { desired: &self.desired, changed: &self.changed, ignored: &self.ignored }
    }
}

impl Doubt {
    pub(super) fn error(&self) -> &Error {
        match self {
            Self::Lost(error)
            | Self::Accepted(error)
            | Self::Refused(error)
            | Self::Unfulfilled(error) => error,
        }
    }
}
