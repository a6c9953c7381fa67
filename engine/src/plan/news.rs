//! What a plan takes into the state without a call, and whether a state that has moved on since still
//! wants it.
//!
//! What was seen of an object replaces all that the state says of it. A state that has learned
//! something else since, from another run, knows more than the plan, so it keeps that.

use crate::address::Address;
use crate::digest::Digest;
use crate::journal::Record;
use crate::plan::Plan;
use crate::state::{Entry, Nonce, ObjectId, Snapshot};

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

/// The digest of what a state says of the watch of a one-time name. A create that was found long after it was sent is
/// watched no more; for a run that does not find it, its watch begins.
pub(super) fn watch(snapshot: &Snapshot, nonce: &Nonce) -> Option<Digest> {
    snapshot.watched.iter().find(|watched| watched.nonce == *nonce).map(Digest::of_json)
}

impl Plan {
    /// Says whether a record of what was seen is older than what the state says by now.
    pub fn is_outdated(&self, record: &Record, snapshot: &Snapshot) -> bool {
        let (then, now) = match record {
            Record::Seen { address, object, .. } => {
                let entry = snapshot.entries.get(address);
                (self.base.known.get(address), entry.and_then(|entry| known(entry, object)))
            }
            Record::Unwatched { nonce } => (self.base.over.get(nonce), watch(snapshot, nonce)),
            _ => return false,
        };
        now.is_none() || now.as_ref() != then
    }

    /// Says whether a state has learned something else of an object that was seen to be different: another run
    /// has come between, and may be who made it so.
    pub fn is_overtaken(&self, address: &Address, object: &ObjectId, snapshot: &Snapshot) -> bool {
        let now = snapshot.entries.get(address).and_then(|entry| known(entry, object));
        self.base.known.get(address).is_some_and(|then| now.as_ref() != Some(then))
    }
}
