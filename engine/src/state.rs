//! The state: a snapshot of the objects that Plumb manages, and the records since.
//!
//! A [`Snapshot`] maps addresses to the objects that Plumb made or took over. Only [`crate::journal`] records
//! and the few commands that edit it change it; each change of a snapshot is a whole new serial. Bytes, files
//! and locks belong to the `state` crate.

mod objects;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Name};
use crate::digest::{Fingerprint, SealKey};
use crate::journal::{Calls, Started};
use crate::sorted::Set;
use crate::value::Paths;

pub use self::objects::{Location, Nonce, Object, ObjectId, OutputValue, Progress};

/// The state of one spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The random identity of the state, drawn once when the state is made: two states with the same lineage
    /// are versions of one state.
    pub lineage: String,
    /// The version number, which each write raises by one.
    pub serial: u64,
    /// The key of this lineage's fingerprints.
    pub seal_key: SealKey,
    /// The entry of each address.
    pub entries: BTreeMap<Address, Entry>,
    /// The calls that began and whose outcome is unknown.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub pending: Calls,
    /// The nonces of creates that may have made more objects than the state names. An object that turns up
    /// under one is a leftover of Plumb: inert and unwanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    /// The objects of others that were taken over, by address. The state keeps this even after the object is
    /// gone, because the block that asked for it may stay in the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taken_over: BTreeMap<Address, Set<ObjectId>>,
    /// The outputs of the last finished run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<Name, OutputValue>,
    /// The number of the next call, across runs.
    #[serde(default)]
    pub next_call: u64,
    /// The service and account of each provider instance in the last run. Empty in older states.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locations: BTreeMap<Name, Location>,
}

/// The name of the service that belongs to the folder of the spec, whatever port it listens on.
pub const LOCAL_SERVICE: &str = "local service";

fn no_calls(calls: &Calls) -> bool {
    calls.is_empty()
}

impl Snapshot {
    /// Returns the state of a spec that was never applied.
    pub fn new(lineage: String, seal_key: SealKey) -> Self {
        Self {
            lineage,
            serial: 0,
            seal_key,
            entries: BTreeMap::new(),
            pending: Calls::default(),
            watched: Vec::new(),
            taken_over: BTreeMap::new(),
            outputs: BTreeMap::new(),
            next_call: 0,
            locations: BTreeMap::new(),
        }
    }

    /// Returns true if an address has taken over an object, and the object was not let go since.
    pub fn has_taken_over(&self, address: &Address, id: &ObjectId) -> bool {
        self.taken_over.get(address).is_some_and(|ids| ids.contains(id))
    }

    /// Returns the address that stands for an object, as its current or a deposed one; none if no address
    /// does.
    pub fn owner(&self, provider: &Name, ty: &Name, id: &ObjectId) -> Option<&Address> {
        self.owners(provider, ty, id).next()
    }

    /// Returns all addresses that stand for an object.
    pub fn owners<'a>(
        &'a self,
        provider: &Name,
        ty: &Name,
        id: &ObjectId,
    ) -> impl Iterator<Item = &'a Address> {
        let owns = move |(address, entry): &(&Address, &Entry)| {
            address.block.ty == *ty && entry.provider == *provider && entry.object(id).is_some()
        };
        self.entries.iter().filter(owns).map(|(address, _)| address)
    }

    /// Returns the addresses whose creates, under way or in doubt, drew this one-time name: at most one,
    /// except by accident. An object that has the name was made by that create.
    pub fn named_in_doubt<'a>(
        &'a self,
        provider: &Name,
        ty: &Name,
        name: &str,
    ) -> impl Iterator<Item = &'a Address> {
        let started = self.pending.values().map(|pending| &pending.started);
        let names_it = move |started: &&Started| {
            let is_drawn = started.nonce.as_ref().is_some_and(|nonce| nonce.is(name));
            is_drawn && started.provider == *provider && started.address.block.ty == *ty
        };
        started.filter(names_it).map(|started| &started.address)
    }

    /// Returns all objects of the state, with the addresses that stand for them.
    pub fn objects(&self) -> impl Iterator<Item = (&Address, Which<'_>)> {
        self.entries.iter().flat_map(|(address, entry)| {
            let which = |object| Which::new(&entry.provider, &address.block.ty, object);
            let objects = entry.current.iter().chain(&entry.deposed);
            objects.map(move |object| (address, which(&object.id)))
        })
    }
}

/// The key of an object in the world. An id alone is not enough: an API may count the objects of each type,
/// and of each account, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which<'a> {
    /// The provider instance that manages the object.
    pub provider: &'a Name,
    /// The type of the object.
    pub ty: &'a Name,
    /// The id of the object at the provider instance.
    pub id: &'a ObjectId,
}

impl<'a> Which<'a> {
    /// Returns the key of the object with this id, of a type, at a provider instance.
    pub fn new(provider: &'a Name, ty: &'a Name, id: &'a ObjectId) -> Self {
        Self { provider, ty, id }
    }
}

/// The objects of one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The provider instance that manages the objects.
    pub provider: Name,
    /// The current object; none if only deposed ones are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Object>,
    /// Objects that a replace put aside and has not deleted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deposed: Vec<Object>,
    /// The addresses that the address depended on in the last applied spec.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub dependencies: Set<Address>,
}

impl Entry {
    /// Returns an entry without any object.
    pub fn without_object(provider: Name) -> Self {
        Self { provider, current: None, deposed: Vec::new(), dependencies: Set::new() }
    }
}

/// A nonce under which another object may turn up: its create was given up, or made its object and may have
/// been executed twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The nonce.
    pub nonce: Nonce,
    /// The provider instance whose lists are searched.
    pub provider: Name,
    /// The type whose lists are searched.
    #[serde(rename = "type")]
    pub ty: Name,
    /// The address for which the nonce was drawn.
    pub address: Address,
    /// The fingerprint of the account that the create went to: the lists of another account prove little
    /// about it. None if the provider has no account, and in older states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Fingerprint>,
    /// The start of the watch, in milliseconds since 1970: the time when the create was given up or, if it
    /// was answered, the time when it was sent.
    pub since_ms: u64,
    /// True if the create was answered: it made its object, or was refused. Another object with the nonce
    /// comes from a second execution, which turns up soon.
    #[serde(rename = "made", default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// The objects that a person let go of while they had the nonce: they are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub let_go: Vec<ObjectId>,
    /// The sensitive places of the object by the spec, in addition to those of the type.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
}

impl Watched {
    /// Returns the watch for the nonce of a create.
    pub fn of(started: &Started, nonce: Nonce, since_ms: u64, answered: bool) -> Self {
        Self {
            nonce,
            provider: started.provider.clone(),
            ty: started.address.block.ty.clone(),
            address: started.address.clone(),
            account: started.account.clone(),
            since_ms,
            answered,
            let_go: Vec::new(),
            sensitive: started.sensitive.clone(),
        }
    }

    /// The time for which the nonce of an answered create is watched, in milliseconds: one hour. A server
    /// that executes a request twice has done so long before.
    pub const ANSWERED_MS: u64 = 60 * 60 * 1000;
    /// The time for which a create that was given up is looked for, in milliseconds: 30 days.
    pub const GIVEN_UP_MS: u64 = 30 * 24 * 60 * 60 * 1000;

    /// The additional time for which a nonce is watched while only another account than its own can be looked
    /// at, in milliseconds: 30 days. If keys live for one run, each run has its own account, so the watch
    /// must end.
    pub const ELSEWHERE_MS: u64 = 30 * 24 * 60 * 60 * 1000;

    /// Returns true if an object that has not turned up by now, in the account that is looked at, will not.
    /// Only a look at the lists shows if one has turned up.
    pub fn is_over(&self, account: Option<&Fingerprint>, now_ms: u64) -> bool {
        let is_elsewhere = self.account.is_some() && self.account.as_ref() != account;
        let own_ms = if self.answered { Self::ANSWERED_MS } else { Self::GIVEN_UP_MS };
        let for_ms = own_ms + if is_elsewhere { Self::ELSEWHERE_MS } else { 0 };
        now_ms.saturating_sub(self.since_ms) > for_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_an_api_changed_are_known_again() {
        let nonce = Nonce::from_random([7; 16]);
        let (name, other) = (nonce.0.to_string(), Nonce::from_random([8; 16]).0);
        for own in [&name, &name.to_uppercase(), &name[..20], &name[..18]] {
            assert!(nonce.is(own) && nonce.is_in(own) && Nonce::is_likely(own), "{own}");
        }
        for else_ in ["", "plumb-", &name[..17], &format!("{name}-2"), &other, "plumb-ä", "plum"] {
            assert!(!nonce.is(else_), "{else_}");
        }
        let drawn_for_none = nonce.another();
        assert!(!nonce.is(&drawn_for_none.0) && drawn_for_none.0.len() == nonce.0.len());
        assert!(nonce.is_in(&format!("{}-2", name.to_uppercase())));
        assert!(!nonce.is_in(&other));
    }

    #[test]
    fn typed_ids_do_not_step_out_of_an_address() {
        for good in ["abc123", "a.b", "a_b-c:d@e", "ü", "/|jobs", "a/b", "a?b=c", "a#b"] {
            assert_eq!(ObjectId::typed(good).unwrap().0.as_ref(), good);
        }
        let long = "a".repeat(257);
        for bad in ["", "..", ".", "a..b", "a/../b", "%2e", "a\\b", "a\nb", "a b", "a\0", &long] {
            assert!(ObjectId::typed(bad).is_err(), "{bad:?}");
        }
    }
}
