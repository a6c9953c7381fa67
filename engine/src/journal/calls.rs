//! The calls that began and whose outcome is not recorded, by number and by object.

use std::collections::BTreeMap;
use std::ops::Deref;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records::{CallId, Started};
use crate::address::Address;
use crate::state::ObjectId;

/// A call that began and whose outcome is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// The record of its intent.
    pub started: Started,
    /// The reason that its outcome is unknown; none if the run ended before it could record one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// True if the API accepted the call, and showed nothing of its effect. In that case a look-up that finds
    /// no effect does not prove that there will be none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

impl Pending {
    /// Returns the reason that the outcome is unknown, for people. `running` is true if another run holds the
    /// lock.
    pub fn why(&self, running: bool) -> &str {
        match &self.doubt {
            Some(reason) => reason,
            None if running => "another run is working on it",
            None => "the run ended before the answer came",
        }
    }
}

/// Calls by number, which read like a map. The number of calls on each object is kept beside it, so that
/// starting a call costs the same however many are under way.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    by_number: BTreeMap<CallId, Pending>,
    /// The number of calls on each object.
    about: FxHashMap<(Address, Option<ObjectId>), usize>,
}

impl Calls {
    /// Returns true if a call on the same object is under way.
    pub(super) fn is_busy(&self, started: &Started) -> bool {
        self.about.contains_key(&about(started))
    }

    /// Adds a call.
    pub(super) fn insert(&mut self, call: CallId, pending: Pending) {
        self.remove(call);
        *self.about.entry(about(&pending.started)).or_default() += 1;
        self.by_number.insert(call, pending);
    }

    /// Removes a call and returns it.
    pub(super) fn remove(&mut self, call: CallId) -> Option<Pending> {
        let pending = self.by_number.remove(&call)?;
        let key = about(&pending.started);
        if let Some(count) = self.about.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.about.remove(&key);
            }
        }
        Some(pending)
    }

    /// Records the reason that the outcome of a call is unknown; returns false if there is no such call.
    pub(super) fn doubt(&mut self, call: CallId, reason: &str, accepted: bool) -> bool {
        let Some(pending) = self.by_number.get_mut(&call) else { return false };
        pending.doubt = Some(reason.to_owned());
        pending.accepted |= accepted;
        true
    }

    /// Gives calls and their dependencies the new addresses; `new` has them by the old ones.
    pub(super) fn rename(&mut self, new: &BTreeMap<Address, Address>) {
        for pending in self.by_number.values_mut() {
            let started = &mut pending.started;
            started.dependencies.replace(new);
            if let Some(to) = new.get(&started.address) {
                started.address = to.clone();
            }
        }
        self.about.clear();
        for pending in self.by_number.values() {
            *self.about.entry(about(&pending.started)).or_default() += 1;
        }
    }

    /// Removes all calls. No journal does this; tests use it to show the consequences.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Returns the address and the object that a call is about: a deposed object is another one than the
/// address's current object.
fn about(started: &Started) -> (Address, Option<ObjectId>) {
    (started.address.clone(), started.object.clone())
}

impl Deref for Calls {
    type Target = BTreeMap<CallId, Pending>;

    fn deref(&self) -> &Self::Target {
        &self.by_number
    }
}

impl<'a> IntoIterator for &'a Calls {
    type Item = (&'a CallId, &'a Pending);
    type IntoIter = std::collections::btree_map::Iter<'a, CallId, Pending>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_number.iter()
    }
}

impl PartialEq for Calls {
    fn eq(&self, other: &Self) -> bool {
        self.by_number == other.by_number
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.by_number.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Calls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut calls = Self::default();
        for (call, pending) in BTreeMap::deserialize(deserializer)? {
            calls.insert(call, pending);
        }
        Ok(calls)
    }
}
