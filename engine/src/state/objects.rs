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
    /// The longest id that a person may give, in bytes.
    const LENGTH_MAX: usize = 256;

    /// Takes an id that a person typed. Providers encode an id in an address. An id that a server might still
    /// read as a path to another address is refused, with the reason.
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

/// The mark by which Plumb recognises the object of its own create. It is drawn at random, recorded first,
/// and sent as the object's first name.
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

    /// Returns another text of the same form that was drawn for no create; always the same text.
    #[must_use]
    pub fn another(&self) -> Self {
        let (start, drawn) = self.0.split_at_checked("plumb-".len()).unwrap_or(("", &self.0));
        let turned = |letter: char| if letter == 'a' { 'b' } else { 'a' };
        Self(start.chars().chain(drawn.chars().map(turned)).collect::<String>().into())
    }

    /// The length of the part of a nonce that identifies it: the prefix and 60 random bits.
    const TELLING: usize = 18;

    /// Returns true if a listed name may be a nonce.
    pub fn is_likely(name: &str) -> bool {
        name.get(.."plumb-".len()).is_some_and(|start| start.eq_ignore_ascii_case("plumb-"))
    }

    /// Returns true if a listed name is this nonce, which proves that Plumb made the object. It is also the
    /// nonce if the API changed its case, or cut it. A longer name belongs to another object: people copy
    /// objects, and consoles name a copy after the original.
    pub fn is(&self, name: &str) -> bool {
        let start = self.0.get(..name.len().max(Self::TELLING));
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    }

    /// Returns true if a secret name, which is known by its fingerprint, is this nonce.
    pub fn is_behind(&self, name: &Sealed, key: &SealKey) -> bool {
        name.fingerprint == Fingerprint::of(&Value::String(self.0.clone()), key)
    }

    /// Returns true if a name was made from this nonce. This does not prove who made the object. For an
    /// object that Plumb is known to have made, it shows that it still has its first name.
    pub fn is_in(&self, name: &str) -> bool {
        self.is(name) || name.to_ascii_lowercase().contains(&*self.0)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object that Plumb made or took over, as last seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// The id of the object.
    pub id: ObjectId,
    /// The progress of the operation on the object.
    #[serde(default, skip_serializing_if = "Progress::is_ready")]
    pub progress: Progress,
    /// The attributes as last seen, secrets sealed.
    pub attributes: Stored,
    /// The attributes that the spec, or a default, gave: differences in others are no drift.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub managed: Set<Name>,
    /// The places that hold secrets, beside those that the schema declares.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
    /// The time when a delete was sent whose effect nobody saw, in milliseconds since 1970; none if there was
    /// none. The delete may still happen: if the object is gone later, Plumb deleted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_sent_ms: Option<u64>,
    /// The fingerprints of the values of triggers from before they fired, for triggers whose replace is still
    /// to come.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_with: BTreeMap<Name, Fingerprint>,
    /// The inputs of the secret attributes that no later run can compute again: see
    /// [`crate::plan::SecretInputs`].
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
    /// The object is created, and its create is not finished.
    Created {
        /// The index of the program of the create.
        program: usize,
        /// The number of its phases that are done.
        done: usize,
        /// True if the call of the next phase took effect, so that only its wait is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        called: bool,
        /// The one-time name of the create.
        nonce: Nonce,
    },
    /// An update of the object has begun. It has more than one call, or a wait.
    Updating {
        /// The index of the program of the update.
        program: usize,
        /// The number of its phases that are done.
        done: usize,
        /// True if the call of the next phase took effect, so that only its wait is left.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        called: bool,
    },
    /// A delete of the object has begun.
    Deleting {
        /// The number of phases of the delete that are done.
        done: usize,
        /// The attributes from before the delete, secrets sealed: if the spec wants the object after all, an
        /// update sets those back that a drain changed. None in older states.
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
    /// The value; sealed if it is sensitive.
    pub value: Stored,
    /// True if the output is sensitive.
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
