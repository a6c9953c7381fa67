//! What ails the store, where `SQLite` says it in words that help nobody, or not at all.
//!
//! Only what a person can do something about is told apart. What to do is for those to say who
//! start the service.

use rusqlite::Error;
use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// What ails it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ailment {
    /// There is no room on the disk.
    Full,
    /// The file is none of `SQLite`'s, or holds what it never wrote.
    Damaged,
    /// Anything else.
    Other,
}

/// What an error says about the store.
pub(crate) fn of(error: &Error) -> Ailment {
    let Error::SqliteFailure(failure, _) = error else { return Ailment::Other };
    match failure.code {
        DiskFull => Ailment::Full,
        // The file of shared memory has to grow before anything can be read, and cannot.
        _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => Ailment::Full,
        DatabaseCorrupt | NotADatabase => Ailment::Damaged,
        _ => Ailment::Other,
    }
}

/// An error in words.
pub(crate) fn said(error: &Error) -> String {
    match of(error) {
        Ailment::Full => format!("the disk is full ({error})"),
        Ailment::Damaged => format!("the file is damaged ({error})"),
        Ailment::Other => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_sqlite_means() {
        let failure = |code| Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert!(said(&failure(code)).starts_with("the disk is full ("), "{code}");
        }
        for code in [ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT, ffi::SQLITE_CORRUPT_INDEX] {
            assert!(said(&failure(code)).starts_with("the file is damaged ("), "{code}");
        }
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_READ, ffi::SQLITE_BUSY] {
            assert_eq!(of(&failure(code)), Ailment::Other, "{code}");
        }
    }
}
