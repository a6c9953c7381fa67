//! The errors of a store.

use crate::holder::Holder;

/// The error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another run holds the lock. Fields of the holder that the store does not know are empty.
    #[error("another run holds the lock")]
    Locked(Box<Holder>),
    /// This run lost the lock to another one, or the snapshot is at another version.
    #[error("this run can no longer write the state: {0}")]
    Fenced(String),
    /// State or journal cannot be read, or are not what they should be. Nothing was changed.
    #[error("{what}")]
    Suspicious {
        /// The error message, which names the file.
        what: String,
        /// The way out.
        help: String,
    },
    /// There must be a state here, and there is none. Nothing was changed.
    #[error("{what}")]
    Missing {
        /// The error message, with the trace of an earlier state.
        what: String,
        /// The way out.
        help: String,
    },
    /// The state was moved away from here, on purpose. Nothing was changed.
    #[error("the state was moved from {from} to {to}")]
    Moved {
        /// The place that was left.
        from: String,
        /// The place where it is now, as [`Store::place`] says it.
        to: String,
    },
    /// The state is on its way here, and is not yet to be used here. Nothing was changed.
    #[error("the state is being moved from {from} to {to}")]
    Arriving {
        /// The place that it comes from, as [`Store::place`] says it.
        from: String,
        /// This place.
        to: String,
    },
    /// The store cannot keep a state safely, or cannot be used as it is set up. Nothing was changed.
    #[error("{what}")]
    Unfit {
        /// The cause, or the error message.
        what: String,
        /// The way out.
        help: String,
    },
    /// Reading or writing failed.
    #[error("{what}")]
    Failed {
        /// The operation that failed, with the file.
        what: String,
        /// The cause, or the error message.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    pub(crate) fn failed(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { what: what.into(), source: Some(source.into()) }
    }

    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    pub(crate) fn suspicious(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Suspicious { what: what.into(), help: help.into() }
    }
}
