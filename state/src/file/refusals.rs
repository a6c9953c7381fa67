//! The errors of a folder whose files are not a state, with the way to restore one.

use super::backups;
use super::files::Files;
use crate::error::StoreError;

impl Files {
    /// Returns the error with the command that restores the newest backup over the present files.
    pub(super) fn suspicious(&self, what: impl Into<String>) -> StoreError {
        StoreError::suspicious(what, self.way_back("plumb state push --force"))
    }

    /// Returns the error of a bad journal beside a good state, which is newer than every backup.
    pub(super) fn without_journal(&self, what: impl Into<String>) -> StoreError {
        let help = format!(
            "nothing was changed; restore {} if you can; otherwise `plumb state push --force {}` \
             goes on without it: what was done since that state was saved is then unknown, and \
             `plumb plan` shows what differs",
            self.journal().display(),
            self.state().display()
        );
        StoreError::suspicious(what, help)
    }

    /// Returns the error of a missing state, with the same command.
    pub(super) fn missing(&self, what: impl Into<String>) -> StoreError {
        StoreError::Missing { what: what.into(), help: self.way_back("plumb state push") }
    }

    fn way_back(&self, push: &str) -> String {
        match backups::serials(self).last() {
            Some(serial) => format!(
                "nothing was changed; restore the files if you can; otherwise `{push} {}` puts \
                 the newest backup in place, and `plumb plan` shows what differs from it",
                self.backup(*serial).display()
            ),
            None => format!(
                "nothing was changed, and there is no backup in {}; restore the files of {} from \
                 a copy, or move the whole folder away to start over: Plumb then no longer knows \
                 the objects that exist",
                self.backups().display(),
                self.folder.display()
            ),
        }
    }
}
