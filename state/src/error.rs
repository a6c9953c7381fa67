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
    /// State or journal cannot be read, or contradict each other. Nothing was changed.
    #[error("{what}")]
    Suspicious {
        /// The error message, which names the file.
        what: String,
        /// The advice.
        help: String,
    },
    /// There should be a state here, and there is none. Nothing was changed.
    #[error("{what}")]
    Missing {
        /// The error message, with the trace of an earlier state.
        what: String,
        /// The advice.
        help: String,
    },
    /// The state was moved away from here by a person. Nothing was changed.
    #[error("the state was moved from {from} to {to}")]
    Moved {
        /// The location that the state left.
        from: String,
        /// The location where the state is now, in the form of [`Store::place`].
        to: String,
    },
    /// The state is on its way here, and must not be used here yet. Nothing was changed.
    #[error("the state is being moved from {from} to {to}")]
    Arriving {
        /// The location that the state comes from, in the form of [`Store::place`].
        from: String,
        /// This location.
        to: String,
    },
    /// The store cannot keep a state safely, or is not set up correctly. Nothing was changed.
    #[error("{what}")]
    Unfit {
        /// The cause, or the error message.
        what: String,
        /// The advice.
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
