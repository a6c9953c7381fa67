//! Why a run cannot go on as a whole. A step that fails is no such error: the run reports it and
//! goes on with what does not depend on it.

use std::time::Duration;

use engine::address::{Address, Name};
use engine::diagnostics::Diagnostics;
use engine::journal::IllegalRecord;
use engine::plan::Difference;
use state::StoreError;

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The state store failed, is locked, or holds what it should not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store takes so long for each write that no call may be made by it: meanwhile another run
    /// could have taken over.
    #[error(
        "the state store is too slow: what it is to write takes longer than {} s each time, and no \
         call is made whose record is older",
        .0.as_secs()
    )]
    SlowStore(Duration),
    /// The journal contradicts itself.
    #[error(transparent)]
    Journal(#[from] IllegalRecord),
    /// What is live could not be read.
    #[error("cannot read what is live: {ty}: {source}")]
    Refresh {
        /// The resource type that was read.
        ty: String,
        /// Why.
        source: provider_port::Error,
    },
    /// One object could not be read.
    #[error("cannot read what is live: {address}: {source}")]
    Unread {
        /// Which stands for it.
        address: Box<Address>,
        /// Why.
        source: provider_port::Error,
    },
    /// So many objects are gone at once that the key or the address is more likely wrong.
    #[error(
        "{gone} of {all} objects are gone at once, {} among them: is this the right account?",
        addresses.first().map(ToString::to_string).unwrap_or_default()
    )]
    Vanished {
        /// How many.
        gone: usize,
        /// Of how many.
        all: usize,
        /// Whose they are.
        addresses: Vec<Address>,
    },
    /// Look-ups need one another in a chain that is too long.
    #[error("more than {0} look-ups need one another in a chain")]
    EndlessLookUps(usize),
    /// A plan that is made again comes to something else.
    #[error("stale plan: {}", words(.0))]
    Stale(Vec<Difference>),
    /// A plan cannot be made again.
    #[error("stale plan: it cannot be made any more")]
    Unplannable(Diagnostics),
    /// A sensitive variable has another value than when a saved plan was made.
    #[error("the sensitive variable `{0}` has another value than when the plan was made")]
    OtherSecret(Name),
}

fn words(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
