//! The errors that end a run as a whole. The failure of a single step is no such error: the run reports the
//! failure and goes on with the steps that do not depend on it.

use std::time::Duration;

use engine::address::{Address, Name};
use engine::diagnostics::Diagnostics;
use engine::journal::IllegalRecord;
use engine::plan::Difference;
use state::StoreError;

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The state store failed, is locked, or holds something invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Each write to the store takes so long that no call may follow it: another run could have taken over
    /// the lock in the meantime.
    #[error(
        "the state store is too slow: what it is to write takes longer than {} s each time, and no \
         call is made whose record is older",
        .0.as_secs()
    )]
    SlowStore(Duration),
    /// The journal contradicts itself.
    #[error(transparent)]
    Journal(#[from] IllegalRecord),
    /// The objects of a type could not be read.
    #[error("cannot read what is live: {ty}: {source}")]
    Refresh {
        /// The resource type that was read.
        ty: String,
        /// The provider's error.
        source: provider_port::Error,
    },
    /// One object could not be read.
    #[error("cannot read what is live: {address}: {source}")]
    Unread {
        /// The address that stands for the object.
        address: Box<Address>,
        /// The provider's error.
        source: provider_port::Error,
    },
    /// So many objects are gone at once that the key or the address is more likely wrong.
    #[error(
        "{gone} of {all} objects are gone at once, {} among them: is this the right account?",
        addresses.first().map(ToString::to_string).unwrap_or_default()
    )]
    Vanished {
        /// The number of objects that are gone.
        gone: usize,
        /// The number of objects that the run looked at.
        all: usize,
        /// The addresses of the objects that are gone.
        addresses: Vec<Address>,
    },
    /// Look-ups need one another in a chain that is too long.
    #[error("more than {0} look-ups need one another in a chain")]
    EndlessLookUps(usize),
    /// A saved plan was made again, and the new plan differs from it.
    #[error("stale plan: {}", words(.0))]
    Stale(Vec<Difference>),
    /// A saved plan cannot be made again: planning finds errors.
    #[error("stale plan: it cannot be made any more")]
    Unplannable(Diagnostics),
    /// A sensitive variable has another value than it had when the saved plan was made.
    #[error("the sensitive variable `{0}` has another value than when the plan was made")]
    OtherSecret(Name),
}

fn words(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
