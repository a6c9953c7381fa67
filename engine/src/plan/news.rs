//! What a plan takes into the state without a call, and whether a state that has moved on since still
//! wants it.
//!
//! What was seen of an object replaces all that the state says of it. A state that has learned
//! something else since, from another run, knows more than the plan, so it keeps that.

use super::Plan;
use crate::digest::Digest;
use crate::journal::Record;
use crate::state::{Entry, ObjectId, Snapshot};

/// The digest of what a state says of an object, as far as seeing it replaces that.
pub(super) fn known(entry: &Entry, id: &ObjectId) -> Option<Digest> {
    let object = entry.object(id)?;
    Some(Digest::of_json(&(
        &object.id,
        &object.progress,
        &object.attributes,
        &object.managed,
        &object.sensitive,
        &entry.dependencies,
    )))
}

impl Plan {
    /// Says whether a record of what was seen is older than what the state says by now.
    pub fn is_outdated(&self, record: &Record, snapshot: &Snapshot) -> bool {
        let Record::Seen { address, object, .. } = record else { return false };
        let now = snapshot.entries.get(address).and_then(|entry| known(entry, object));
        now.is_none() || now.as_ref() != self.base.known.get(address)
    }
}
