//! The marks of the two locations of a migration, and the operations that they forbid.
//!
//! `apply::migrate` writes them in an order that allows three situations. First, the new location has the
//! mark "arriving": runs use the old location. Second, the old location has the mark "left" as well: runs use
//! neither, and the migration has to be finished. Third, only the old location has a mark: runs use the new
//! one. So both locations are never in use at the same time, and each location knows by itself if it is in
//! use.
//!
//! The name of the location is followed by the run that wrote the mark. Both marks of a migration have the
//! same run. That distinguishes a migration that was cut short from another one to a location with the same
//! name: a tunnel may lead to another database tomorrow.

use crate::error::StoreError;

/// The beginning of the text of an arriving mark.
const ARRIVING: &str = "arriving from ";

/// The text between the name of the location and the run.
const RUN: &str = " (run ";

/// The mark of a location that takes part in a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The state was moved away: this location is not read or written any more.
    Left {
        /// The location where the state is now, in the form of [`crate::Store::place`].
        to: String,
        /// The run that moved it away.
        run: String,
    },
    /// The state is on its way here: its data here may be read, and no run may use it.
    Arriving {
        /// The location that the state comes from.
        from: String,
        /// The run that brings it.
        run: String,
    },
}

impl Mark {
    /// Returns the error about using `place`, which has this mark.
    pub fn refusal(&self, place: &str) -> StoreError {
        let place = place.to_owned();
        match self {
            Self::Left { to, .. } => StoreError::Moved { from: place, to: to.clone() },
            Self::Arriving { from, .. } => StoreError::Arriving { from: from.clone(), to: place },
        }
    }

    /// Returns the run that wrote the mark; empty if the mark names none.
    pub fn run(&self) -> &str {
        let (Self::Left { run, .. } | Self::Arriving { run, .. }) = self;
        run
    }

    /// Reads a mark. Anybody who can write the store can write a mark, so it is shown without control
    /// characters.
    pub(crate) fn parse(text: &str) -> Self {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let parts = text.strip_suffix(')').and_then(|text| text.rsplit_once(RUN));
        let (place, run) = parts.unwrap_or((&text, ""));
        let run = run.to_owned();
        match place.strip_prefix(ARRIVING) {
            Some(from) => Self::Arriving { from: from.to_owned(), run },
            None => Self::Left { to: place.to_owned(), run },
        }
    }

    /// Returns the stored form.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Left { to, run } => format!("{to}{RUN}{run})"),
            Self::Arriving { from, run } => format!("{ARRIVING}{from}{RUN}{run})"),
        }
    }
}

/// The purpose of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Work on the stored state. Every mark forbids it.
    Run,
    /// A migration, from here or to here. It reads the mark in [`crate::Loaded::mark`] and follows it.
    Move,
}

impl Purpose {
    /// Refuses a location whose mark forbids this purpose.
    pub(crate) fn check(self, mark: Option<&Mark>, place: &str) -> Result<(), StoreError> {
        match mark {
            Some(mark) if self == Self::Run => Err(mark.refusal(place)),
            _ => Ok(()),
        }
    }
}

/// Refuses a location that the state has left, before any other data of it is read.
pub(crate) fn refuse_left(mark: Option<&Mark>, place: &str) -> Result<(), StoreError> {
    Purpose::Run.check(mark.filter(|mark| matches!(mark, Mark::Left { .. })), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_as_they_were() {
        let run = || "r1".to_owned();
        for mark in [
            Mark::Left { to: "s3://bucket/prefix".to_owned(), run: run() },
            Mark::Left { to: "s3://bucket/prefix (run 5)".to_owned(), run: run() },
            Mark::Arriving { from: "/srv/x/.plumb".to_owned(), run: run() },
            Mark::Arriving { from: "/srv/x/.plumb".to_owned(), run: String::new() },
        ] {
            assert_eq!(Mark::parse(&mark.text()), mark);
        }
        // This is a text that somebody else may have put there.
        let left = |to: &str| Mark::Left { to: to.to_owned(), run: String::new() };
        assert_eq!(Mark::parse("gs://b/p\n"), left("gs://b/p"));
        assert_eq!(Mark::parse("a\u{1b}[2Jb"), left("a[2Jb"));
        assert_eq!(Mark::parse("a)"), left("a)"));
    }
}
