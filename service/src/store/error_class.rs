//! The classes of errors of the store. `SQLite` describes some of them in words that do not help,
//! or not at all.
//!
//! Only errors that a person can do something about have a class of their own. The advice is given
//! by the callers, which know how the service was started.

use rusqlite::Error;
use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// There is no room on the disk.
    Full,
    /// The file was not written by `SQLite`, or has been damaged.
    Damaged,
    /// Anything else.
    Other,
}

/// Returns the class of an error.
pub(crate) fn of(error: &Error) -> ErrorClass {
    let Error::SqliteFailure(failure, _) = error else { return ErrorClass::Other };
    match failure.code {
        DiskFull => ErrorClass::Full,
        // `SQLite` cannot enlarge the shared-memory file, which it needs for every read.
        _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => ErrorClass::Full,
        DatabaseCorrupt | NotADatabase => ErrorClass::Damaged,
        _ => ErrorClass::Other,
    }
}

/// Returns an error as a text for people.
pub(crate) fn said(error: &Error) -> String {
    match of(error) {
        ErrorClass::Full => format!("the disk is full ({error})"),
        ErrorClass::Damaged => format!("the file is damaged ({error})"),
        ErrorClass::Other => error.to_string(),
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
            assert_eq!(of(&failure(code)), ErrorClass::Other, "{code}");
        }
    }
}
