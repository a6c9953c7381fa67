//! What keeps an object as it is although the spec may want another. Planning goes by a hold; the
//! [`Reason`] that a plan shows follows from it, and nothing from that.

use crate::plan::{Reason, Use};

/// Why nothing is done about an instance.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::plan) enum Hold {
    /// A call on it, or on something that it depends on, is in doubt.
    InDoubt,
    /// The plan is not about it.
    LeftOut,
    /// Something that stays as it is uses it. In a box: every draft has room for a hold, and few
    /// have this one.
    StillUsed(Box<Use>),
}

impl Hold {
    pub(in crate::plan) fn still_used(user: &Use) -> Self {
        Self::StillUsed(Box::new(user.clone()))
    }

    /// What people are told.
    pub(in crate::plan) fn reason(&self) -> Reason {
        match self {
            Self::InDoubt => Reason::InDoubt,
            Self::LeftOut => Reason::Untargeted,
            Self::StillUsed(user) => Reason::StillUsed(Use::clone(user)),
        }
    }
}
