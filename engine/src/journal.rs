//! The journal as a pure fold: the kinds of records, and the effect of each on a snapshot.
//!
//! No mutating call begins before a [`Record::Started`] that names it is durable. So at every instant, every
//! object that may exist because of Plumb is named, by id or by nonce. [`Snapshot::fold`] refuses a record
//! that cannot have happened, both when it is written and when it is read back. Frames, checksums and files
//! belong to the `state` crate.

mod calls;
mod fate;
mod objects;
mod phases;
mod records;

use std::fmt;

pub use self::calls::{Calls, Pending};
pub use self::records::{CallId, Outcome, Record, Resolution, Seen, Started};
pub use crate::schema::{PhaseRef, ProgramKind, Wait};
use crate::state::Snapshot;

/// A record that cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal says what cannot have happened: {0}")]
pub struct IllegalRecord(String);

fn illegal<T>(what: impl fmt::Display) -> Result<T, IllegalRecord> {
    Err(IllegalRecord(what.to_string()))
}

impl Snapshot {
    /// Applies one record.
    pub fn fold(&mut self, record: &Record) -> Result<(), IllegalRecord> {
        match record {
            Record::RunOpened { .. } | Record::RunClosed { .. } => Ok(()),
            Record::Started(started) => self.start(started),
            Record::Finished { call, outcome } => self.finish(*call, outcome),
            Record::Doubted { call, reason, accepted } => {
                if self.pending.doubt(*call, reason, *accepted) {
                    return Ok(());
                }
                illegal(format_args!("call {call} is in doubt and never began"))
            }
            Record::Resolved { call, resolution } => self.resolve(*call, resolution),
            Record::Seen { .. } => self.see(record),
            Record::Triggered { address, object, made_with } => {
                self.remember_triggers(address, object, made_with)
            }
            Record::Vanished { address, object } => self.remove(address, object),
            Record::Forgot { address, object } => self.let_go(address, object),
            Record::Adopted { address, provider, object, deposed: true, .. } => {
                self.depose(address, provider, object);
                Ok(())
            }
            Record::Adopted { address, provider, object, dependencies, .. } => {
                self.adopt(address, provider, object, dependencies)
            }
            Record::Unwatched { nonce } => {
                self.unwatch(nonce);
                Ok(())
            }
            Record::Moved { from, to } => self.rename(from, to),
            Record::Outputs { outputs } => {
                self.outputs.clone_from(outputs);
                Ok(())
            }
            Record::Located { provider, location } => {
                match location {
                    Some(location) => self.locations.insert(provider.clone(), location.clone()),
                    None => self.locations.remove(provider),
                };
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
