//! The records: what a line of the journal says. They are at rest as they are here.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Name};
use crate::digest::{Digest, Fingerprint};
use crate::schema::{Operation, PhaseRef, ProgramKind};
use crate::sorted::Set;
use crate::state::{Location, Nonce, Object, ObjectId, OutputValue, Progress};
use crate::stored::Stored;
use crate::value::Paths;

/// The number of a call, counted over the life of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl FromStr for CallId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('c').and_then(|digits| digits.parse().ok());
        number.map(Self).ok_or("a call is a `c` and a number, as `plumb resolve` lists it")
    }
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "record")]
pub enum Record {
    /// A run begins.
    RunOpened {
        /// The run's random name.
        run: String,
        /// The serial that it began from.
        serial: u64,
        /// The plan that it executes.
        plan: Digest,
        /// The time, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A mutating call is about to begin. Durable before its first byte leaves.
    Started(Box<Started>),
    /// The call ended, and how is known.
    Finished {
        /// The number of the call.
        call: CallId,
        /// Its end.
        outcome: Outcome,
    },
    /// The call ended, and nobody knows how.
    Doubted {
        /// The number of the call.
        call: CallId,
        /// The reason, without secrets.
        reason: String,
        /// True if the API accepted it, and showed nothing of it: it did its work, or will.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        accepted: bool,
    },
    /// A call in doubt was looked up.
    Resolved {
        /// The number of the call.
        call: CallId,
        /// The result of a look.
        resolution: Resolution,
    },
    /// An object was seen to differ from the state, and the difference was accepted.
    Seen {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
        /// The progress of its operation.
        progress: Progress,
        /// Its live attributes, sealed.
        attributes: Stored,
        /// The attributes that the spec manages from now on.
        managed: Set<Name>,
        /// The places that hold secrets.
        sensitive: Paths,
        /// The addresses that it depends on from now on.
        dependencies: Set<Address>,
    },
    /// Triggers of an object's replace fired. They go on firing until it is replaced.
    Triggered {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
        /// The fingerprint of what each of them stood for before it fired first.
        made_with: BTreeMap<Name, Fingerprint>,
    },
    /// An object was confirmed to be gone without our doing.
    Vanished {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
    },
    /// An object was taken over.
    Adopted {
        /// Under which address.
        address: Address,
        /// By which provider.
        provider: Name,
        /// The object.
        object: Object,
        /// The addresses that it depends on.
        dependencies: Set<Address>,
        /// True if it stands beside the address's object, to be deleted: a leftover of ours.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deposed: bool,
    },
    /// An object was let go: it stays in the API, and the state forgets it.
    Forgot {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
    },
    /// A watched nonce needs no more watching: its leftover is gone, or its time is over.
    Unwatched {
        /// The nonce.
        nonce: Nonce,
    },
    /// An address changed.
    Moved {
        /// Before.
        from: Address,
        /// After.
        to: Address,
    },
    /// A provider instance acts at this location from now on.
    Located {
        /// The provider instance.
        provider: Name,
        /// The location; none where a person said that the next run may choose another one.
        location: Option<Location>,
    },
    /// The outputs were evaluated.
    Outputs {
        /// All of them; those that failed to evaluate keep their last value.
        outputs: BTreeMap<Name, OutputValue>,
    },
    /// The run ended.
    RunClosed {
        /// Its end, in a word.
        outcome: String,
    },
}

/// A mutating call that is about to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Its number: the snapshot's next.
    pub call: CallId,
    /// The step of the plan.
    pub step: String,
    /// The address of the object.
    pub address: Address,
    /// The provider instance.
    pub provider: Name,
    /// Its operation.
    pub operation: Operation,
    /// Its phase.
    pub phase: PhaseRef,
    /// The object; none for a create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// The one-time name of a create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
    /// The name or id that a create gives, where the type's identity is one that the spec chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The fingerprint of that name or id where it is a secret: it stands nowhere in clear then. None in
    /// older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<Fingerprint>,
    /// True if the current object is put aside when this create succeeds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deposes: bool,
    /// The attributes that the spec manages.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub managed: Set<Name>,
    /// The places that hold secrets.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
    /// The attributes to which it gives another value, and which no answer shows: while its end is not
    /// known, nobody knows them. None in older journals.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub unshown: Set<Name>,
    /// The inputs of the secret attributes that it sends, where nobody can make them again: see
    /// [`crate::plan::SecretInputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_fingerprints: BTreeMap<Name, Fingerprint>,
    /// The addresses that the object depends on.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub dependencies: Set<Address>,
    /// The fingerprint of the account that it goes to: what is not there in another one says
    /// nothing about this call. None where the provider has no account, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Fingerprint>,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Started {
    /// Returns true if the call ends this object of an address.
    pub fn ends(&self, address: &Address, object: &ObjectId) -> bool {
        self.ends_its_object() && self.address == *address && self.object.as_ref() == Some(object)
    }

    /// Returns true if the call makes the object.
    pub fn makes_its_object(&self) -> bool {
        self.phase.makes()
    }

    /// Returns true if the call is the last phase of a delete.
    pub fn ends_its_object(&self) -> bool {
        self.phase.kind == ProgramKind::Delete && self.phase.is_last()
    }

    /// Returns the resolution of the call once its object is believed not to be there.
    pub fn absence(&self, at_ms: u64) -> Resolution {
        if self.makes_its_object() { Resolution::Absent { at_ms } } else { Resolution::Gone }
    }
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// It did what it was meant to.
    Done {
        /// The object; none after the last phase of a delete.
        object: Option<Seen>,
    },
    /// It did what it was meant to, and what is waited for after it has not come true yet.
    Called {
        /// The object.
        object: Seen,
    },
    /// The answer, or its absence before the first byte, proves that nothing happened.
    NoEffect {
        /// The reason, without secrets.
        reason: String,
    },
}

/// An object as a provider answered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its id.
    pub id: ObjectId,
    /// Its attributes, sealed.
    pub attributes: Stored,
}

/// The end of a call in doubt, as it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Resolution {
    /// The call's object exists: as created, or as it now is.
    Found {
        /// The object.
        object: Seen,
    },
    /// A create left nothing. Its nonce is watched from now on.
    Absent {
        /// The time when this was believed, in milliseconds since 1970.
        at_ms: u64,
    },
    /// The object of an update or a delete does not exist any more.
    Gone,
}
