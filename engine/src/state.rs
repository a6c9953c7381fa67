//! State: what the last run left behind, as a snapshot and the records since.
//!
//! A [`Snapshot`] maps addresses to the objects that Plumb made or took over. It changes only by
//! [`crate::journal`] records and by the few commands that edit it, each time as a whole new
//! serial. Bytes, files and locks are the `state` crate's.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Name};
use crate::digest::{Fingerprint, SealKey};
use crate::journal::{Calls, Started};
use crate::sorted::Set;
use crate::stored::Stored;
use crate::value::{Paths, Sealed, Value};

/// An id that an API chose for an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectId(pub Name);

impl ObjectId {
    /// The longest id that a person may give.
    const LENGTH_MAX: usize = 256;

    /// Takes an id that a person typed. What would be another address when it stands in one is
    /// refused, with the reason.
    pub fn typed(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.len() > Self::LENGTH_MAX {
            return Err("it is longer than 256 bytes");
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("a space or a control character is in it");
        }
        if text.contains(['/', '\\', '?', '#', '%']) || text.contains("..") || text == "." {
            return Err(
                "it could lead to another address: `/`, `\\`, `?`, `#`, `%` and `..` are refused",
            );
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What makes a create ours: drawn at random, recorded first, sent as the object's first name.
///
/// The text is `plumb-` and 26 letters and digits (128 bits).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(pub Name);

impl Nonce {
    /// Makes a nonce from 16 random bytes that the shell supplies.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let mut number = u128::from_le_bytes(bytes);
        let mut text = String::from("plumb-");
        for _ in 0..26 {
            text.push(char::from(DIGITS[(number % 32) as usize]));
            number /= 32;
        }
        Self(text.into())
    }

    /// Another text of the same form, which was drawn for nothing: always the same one.
    #[must_use]
    pub fn another(&self) -> Self {
        let (start, drawn) = self.0.split_at_checked("plumb-".len()).unwrap_or(("", &self.0));
        let turned = |letter: char| if letter == 'a' { 'b' } else { 'a' };
        Self(start.chars().chain(drawn.chars().map(turned)).collect::<String>().into())
    }

    /// As much of a nonce as nobody else comes upon: 60 random bits, and what stands before them.
    const TELLING: usize = 18;

    /// Says whether a listed name may be a nonce at all.
    pub fn is_likely(name: &str) -> bool {
        name.get(.."plumb-".len()).is_some_and(|start| start.eq_ignore_ascii_case("plumb-"))
    }

    /// Says whether a listed name is this nonce, which makes its object ours: also where the API
    /// changed its case, or cut it. A name that has more than that is a stranger's: people copy
    /// objects, and consoles name a copy after the original.
    pub fn is(&self, name: &str) -> bool {
        let start = self.0.get(..name.len().max(Self::TELLING));
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    }

    /// Says whether a name that is a secret, and known by its fingerprint, is this nonce.
    pub fn is_behind(&self, name: &Sealed, key: &SealKey) -> bool {
        name.fingerprint == Fingerprint::of(&Value::String(self.0.clone()), key)
    }

    /// Says whether a name was made from this nonce. That is no proof of whose an object is; it
    /// tells only of one that is known to be ours whether it still bears its first name.
    pub fn is_in(&self, name: &str) -> bool {
        self.is(name) || name.to_ascii_lowercase().contains(&*self.0)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of one spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Drawn once, when the state is made: two states with one lineage are versions of one thing.
    pub lineage: String,
    /// Raised by one with each write.
    pub serial: u64,
    /// The key of this lineage's fingerprints.
    pub seal_key: SealKey,
    /// What each address stands for.
    pub entries: BTreeMap<Address, Entry>,
    /// Calls that began and whose end nobody knows.
    #[serde(default, skip_serializing_if = "no_calls")]
    pub pending: Calls,
    /// Nonces of creates that may have left more than the state names: what surfaces under one is
    /// ours, inert and unwanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    /// Which objects of strangers were taken over as what. An address remembers it also when the
    /// object is gone: the block that asked for it may stay in the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taken_over: BTreeMap<Address, Set<ObjectId>>,
    /// The outputs of the last finished run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<Name, OutputValue>,
    /// The number of the next call, across runs.
    #[serde(default)]
    pub next_call: u64,
}

fn no_calls(calls: &Calls) -> bool {
    calls.is_empty()
}

impl Snapshot {
    /// The state of a spec that was never applied.
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
        }
    }

    /// Says whether an address has taken over an object once, and nobody has let it go since.
    pub fn has_taken_over(&self, address: &Address, id: &ObjectId) -> bool {
        self.taken_over.get(address).is_some_and(|ids| ids.contains(id))
    }

    /// The address that stands for an object, as its own or as one put aside.
    pub fn owner(&self, provider: &Name, ty: &Name, id: &ObjectId) -> Option<&Address> {
        self.owners(provider, ty, id).next()
    }

    /// All addresses that stand for an object.
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

    /// The addresses for whose creates, under way or in doubt, a one-time name was drawn: one but for
    /// accidents. What bears it is what that create made.
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

    /// All objects that it knows, with the addresses that stand for them.
    pub fn objects(&self) -> impl Iterator<Item = (&Address, Which<'_>)> {
        self.entries.iter().flat_map(|(address, entry)| {
            let which = |object| Which::new(&entry.provider, &address.block.ty, object);
            let objects = entry.current.iter().chain(&entry.deposed);
            objects.map(move |object| (address, which(&object.id)))
        })
    }
}

/// Which object of the world an id stands for: an API may count the objects of each type, and each
/// account, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which<'a> {
    /// The provider instance that manages it.
    pub provider: &'a Name,
    /// Its type.
    pub ty: &'a Name,
    /// Its id there.
    pub id: &'a ObjectId,
}

impl<'a> Which<'a> {
    /// The object of this id, of a type, at a provider instance.
    pub fn new(provider: &'a Name, ty: &'a Name, id: &'a ObjectId) -> Self {
        Self { provider, ty, id }
    }
}

/// What one address stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The provider instance that manages it.
    pub provider: Name,
    /// The object, unless only deposed ones are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Object>,
    /// Objects that a replace put aside and has not deleted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deposed: Vec<Object>,
    /// The addresses that the last applied spec made it depend on.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub dependencies: Set<Address>,
}

impl Entry {
    /// An entry that no object belongs to yet.
    pub fn without_object(provider: Name) -> Self {
        Self { provider, current: None, deposed: Vec::new(), dependencies: Set::new() }
    }
}

/// An object that exists in an API because of us, as last seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Its id.
    pub id: ObjectId,
    /// How far its operation has come.
    #[serde(default, skip_serializing_if = "Progress::is_ready")]
    pub progress: Progress,
    /// Its attributes as last seen, secrets sealed.
    pub attributes: Stored,
    /// The attributes that the spec, or a default, gave: drift of others is nobody's concern.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub managed: Set<Name>,
    /// The places that hold secrets, beside those that the schema declares.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
    /// When a delete of it went out that nobody saw happen, in milliseconds since 1970. It may still
    /// happen: should the object be gone one day, that is our doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_sent_ms: Option<u64>,
    /// What its triggers stood for, of those that have fired since and have not replaced it yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_with: BTreeMap<Name, Fingerprint>,
    /// What its secret attributes were made of that nobody can make again: see [`crate::plan::SecretInputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_fingerprints: BTreeMap<Name, Fingerprint>,
}

/// How far the operation on an object has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Progress {
    /// All phases are done.
    #[default]
    Ready,
    /// Created, and not yet what it is to be.
    Created {
        /// The program of the create, and how many of its phases are done.
        program: usize,
        /// See `program`.
        done: usize,
        /// Whether the call of the next phase did its work, so that only its wait is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        called: bool,
        /// The one-time name.
        nonce: Nonce,
    },
    /// Its update has begun, and has more to it than a call whose effect shows.
    Updating {
        /// The program of the update, and how many of its phases are done.
        program: usize,
        /// See `program`.
        done: usize,
        /// Whether the call of the next phase did its work, so that only its wait is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        called: bool,
    },
    /// Its delete has begun.
    Deleting {
        /// How many phases of the delete are done.
        done: usize,
        /// Its attributes before that, secrets sealed: what a drain changed is given back to an
        /// object that the spec wants after all. None in older states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Box<Stored>>,
    },
}

impl Progress {
    /// Says whether all phases are done.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// A nonce under which more may surface: its create was given up, or made its object and may have
/// been executed twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The nonce.
    pub nonce: Nonce,
    /// Whose lists to look at.
    pub provider: Name,
    /// See `provider`.
    #[serde(rename = "type")]
    pub ty: Name,
    /// For which address it was drawn.
    pub address: Address,
    /// The fingerprint of the account that its create went to: what another one lists says little of it. None
    /// where the provider has no account, and in older states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Fingerprint>,
    /// Since when it is watched, in milliseconds since 1970: when the create was given up, or, if it was
    /// answered, when it was sent.
    pub since_ms: u64,
    /// Whether the create was answered: it made its object, or was refused. What else bears the nonce
    /// is another execution, which does not take long to show.
    #[serde(rename = "made", default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// The objects that somebody let go of while they bore it: they are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub let_go: Vec<ObjectId>,
    /// The places in the object whose values the spec calls secret, beside those of the type.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
}

impl Watched {
    /// Watches the nonce of a create.
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

    /// For how long the nonce of a create that was answered is watched, in milliseconds: an hour. A
    /// server that executes a request twice has done so long before.
    pub const ANSWERED_MS: u64 = 60 * 60 * 1000;
    /// For how long a create that was given up is looked for, in milliseconds: 30 days.
    pub const GIVEN_UP_MS: u64 = 30 * 24 * 60 * 60 * 1000;

    /// For how much longer it is watched while only another account than its own can be looked at, in
    /// milliseconds: 30 days. Where keys live for a run each has an account of its own, so there is an end to it.
    pub const ELSEWHERE_MS: u64 = 30 * 24 * 60 * 60 * 1000;

    /// Says whether what has not surfaced by now, in the account that is looked at, will not. Only a look at
    /// the lists tells whether it has.
    pub fn is_over(&self, account: Option<&Fingerprint>, now_ms: u64) -> bool {
        let is_elsewhere = self.account.is_some() && self.account.as_ref() != account;
        let own_ms = if self.answered { Self::ANSWERED_MS } else { Self::GIVEN_UP_MS };
        let for_ms = own_ms + if is_elsewhere { Self::ELSEWHERE_MS } else { 0 };
        now_ms.saturating_sub(self.since_ms) > for_ms
    }
}

/// The last value of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputValue {
    /// The value; sealed where it is sensitive.
    pub value: Stored,
    /// Whether it is sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
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
    fn typed_ids_are_one_segment_of_an_address() {
        for good in ["abc123", "a.b", "a_b-c:d@e", "ü"] {
            assert_eq!(ObjectId::typed(good).unwrap().0.as_ref(), good);
        }
        let long = "a".repeat(257);
        for bad in [
            "", "a/b", "..", ".", "a..b", "a?b=c", "a#b", "%2e", "a\\b", "a\nb", "a b", "a\0",
            &long,
        ] {
            assert!(ObjectId::typed(bad).is_err(), "{bad:?}");
        }
    }
}
