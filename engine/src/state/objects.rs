//! Objects of the state: their ids, nonces and progress.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
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

    /// Takes an id that a person typed. Providers encode it where it stands in an address. What a server may take
    /// for a step to another address all the same is refused, with the reason.
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
        if text.contains(['\\', '%']) || text.contains("..") || text == "." {
            return Err("it could lead to another address: `\\`, `%` and `..` are refused");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The mark that makes a create ours: drawn at random, recorded first, sent as the object's first name.
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

    /// Returns true if a listed name may be a nonce at all.
    pub fn is_likely(name: &str) -> bool {
        name.get(.."plumb-".len()).is_some_and(|start| start.eq_ignore_ascii_case("plumb-"))
    }

    /// Returns true if a listed name is this nonce, which makes its object ours: also where the API
    /// changed its case, or cut it. A name that has more than that is a stranger's: people copy
    /// objects, and consoles name a copy after the original.
    pub fn is(&self, name: &str) -> bool {
        let start = self.0.get(..name.len().max(Self::TELLING));
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    }

    /// Returns true if a name that is a secret, and known by its fingerprint, is this nonce.
    pub fn is_behind(&self, name: &Sealed, key: &SealKey) -> bool {
        name.fingerprint == Fingerprint::of(&Value::String(self.0.clone()), key)
    }

    /// Returns true if a name was made from this nonce. That is no proof of whose an object is; it
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

/// An object that exists in an API because of us, as last seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Its id.
    pub id: ObjectId,
    /// The progress of its operation.
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
    /// The time when a delete of it went out that nobody saw happen, in milliseconds since 1970. It may still
    /// happen: should the object be gone one day, that is our doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_sent_ms: Option<u64>,
    /// The fingerprints of what its triggers stood for, of those that have fired since and have not replaced it yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_with: BTreeMap<Name, Fingerprint>,
    /// The inputs of its secret attributes that nobody can make again: see [`crate::plan::SecretInputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_fingerprints: BTreeMap<Name, Fingerprint>,
}

/// The progress of the operation on an object.
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
        /// True if the call of the next phase did its work, so that only its wait is left.
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
        /// True if the call of the next phase did its work, so that only its wait is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        called: bool,
    },
    /// Its delete has begun.
    Deleting {
        /// The number of phases of the delete that are done.
        done: usize,
        /// Its attributes before that, secrets sealed: what a drain changed is given back to an
        /// object that the spec wants after all. None in older states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Box<Stored>>,
    },
}

impl Progress {
    /// Returns true if all phases are done.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// The last value of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputValue {
    /// The value; sealed where it is sensitive.
    pub value: Stored,
    /// True if it is sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

/// The service and the account that a provider instance acts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// [`LOCAL_SERVICE`], or the hosts of its APIs.
    pub service: String,
    /// The fingerprint of the account; none where the provider has no account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Fingerprint>,
}
