//! What keeps an object as it is although the spec may want another. Planning goes by a hold; the
//! [`Reason`] that a plan shows follows from it, and nothing from that.

use super::{Reason, Use};

/// Why nothing is done about an instance.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hold {
    /// A call on it, or on something that it depends on, is in doubt.
    InDoubt,
    /// The plan is not about it.
    LeftOut,
    /// Something that stays as it is uses it. In a box: every draft has room for a hold, and few
    /// have this one.
    StillUsed(Box<Use>),
}

impl Hold {
    pub(super) fn still_used(user: &Use) -> Self {
        Self::StillUsed(Box::new(user.clone()))
    }

    /// What people are told.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::InDoubt => Reason::InDoubt,
            Self::LeftOut => Reason::Untargeted,
            Self::StillUsed(user) => Reason::StillUsed(Use::clone(user)),
        }
    }
}
