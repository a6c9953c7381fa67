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
    /// The number of earlier attempts of the step. The call of each was in doubt.
    pub(super) tries: usize,
    pub(super) since: Instant,
    /// The reason why the call is in doubt; `None` if it is not.
    pub(super) doubt: Option<Doubt>,
}

/// The attributes that a call sends.
#[derive(Clone)]
pub(super) struct SentAttributes {
    /// All attributes, in clear.
    pub(super) desired: Arc<Attributes>,
    /// The names of the attributes that the change is about.
    pub(super) changed: Arc<BTreeSet<Name>>,
    /// The names of the attributes that may differ, by the spec's `ignore_changes`.
    pub(super) ignored: Set<Name>,
    /// The names of the attributes that are read from the object right before the call: secrets of a delete.
    pub(super) readable: BTreeSet<Name>,
}

/// An answer, or the loss of one, that leaves open what a call did.
#[derive(Clone)]
pub(super) enum Doubt {
    /// No answer came, or none that says what happened.
    Lost(Error),
    /// The API accepted the call, and its answer shows no object.
    Accepted(Error),
    /// The API refused the call. The call may repeat an earlier one that did its work, and then the refusal
    /// proves nothing. If a look-up shows that nothing happened, the step fails with this refusal.
    Refused(Error),
    /// The call did its work, and the state that it waits for did not come.
    Unfulfilled(Error),
}

impl InFlight {
    /// Returns the descriptor's words for the phase.
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

    /// Returns true if the API accepted the call, and its answer shows no object.
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
