//! The records: the lines of the journal, in the form in which they are stored.

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
        /// The serial of the state at the start of the run.
        serial: u64,
        /// The plan that it executes.
        plan: Digest,
        /// The time, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A mutating call is about to begin. The record is durable before the first byte of the call is sent.
    Started(Box<Started>),
    /// The call ended, and its outcome is known.
    Finished {
        /// The number of the call.
        call: CallId,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// The call ended, and its outcome is unknown.
    Doubted {
        /// The number of the call.
        call: CallId,
        /// The reason, without secrets.
        reason: String,
        /// True if the API accepted the call, and showed nothing of its effect: it has taken effect, or will.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        accepted: bool,
    },
    /// A call in doubt was looked up.
    Resolved {
        /// The number of the call.
        call: CallId,
        /// The result of the look-up.
        resolution: Resolution,
    },
    /// An object differed from the state, and the difference was accepted.
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
    /// Triggers of an object's replace fired. They fire in each plan until the object is replaced.
    Triggered {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
        /// The fingerprint of each trigger's value from before it first fired.
        made_with: BTreeMap<Name, Fingerprint>,
    },
    /// An object is confirmed gone, and no call of Plumb deleted it.
    Vanished {
        /// The address of the object.
        address: Address,
        /// The id of the object.
        object: ObjectId,
    },
    /// An object was taken over.
    Adopted {
        /// The address that takes the object over.
        address: Address,
        /// The provider instance.
        provider: Name,
        /// The object.
        object: Object,
        /// The addresses that it depends on.
        dependencies: Set<Address>,
        /// True if the object is a leftover of Plumb, which stands beside the address's object until it is
        /// deleted.
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
        /// The address before.
        from: Address,
        /// The address after.
        to: Address,
    },
    /// A provider instance acts at this location from now on.
    Located {
        /// The provider instance.
        provider: Name,
        /// The location; none if a person allowed the next run to choose another one.
        location: Option<Location>,
    },
    /// The outputs were evaluated.
    Outputs {
        /// All outputs; those that failed to evaluate keep their last value.
        outputs: BTreeMap<Name, OutputValue>,
    },
    /// The run ended.
    RunClosed {
        /// The outcome of the run, in one word.
        outcome: String,
    },
}

/// A mutating call that is about to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The number of the call, which is the snapshot's next.
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
    /// The name or id that a create gives, if the spec chooses the value that identifies the object; else
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The fingerprint of that name or id if it is a secret; `name` is none then. None in older journals.
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
    /// The attributes to which the call gives another value, and which no answer shows: until the outcome is
    /// known, their values are unknown. Empty in older journals.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub unshown: Set<Name>,
    /// The inputs of the secret attributes that the call sends and that no later run can compute again: see
    /// [`crate::plan::SecretInputs`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_fingerprints: BTreeMap<Name, Fingerprint>,
    /// The addresses that the object depends on.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub dependencies: Set<Address>,
    /// The fingerprint of the account that the call goes to: an absence in another account proves nothing
    /// about this call. None if the provider has no account, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Fingerprint>,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Started {
    /// Returns true if the call is the last phase of a delete of this object of an address.
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

    /// Returns the resolution of the call if its object is believed to be absent.
    pub fn absence(&self, at_ms: u64) -> Resolution {
        if self.makes_its_object() { Resolution::Absent { at_ms } } else { Resolution::Gone }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// The call took effect.
    Done {
        /// The object; none after the last phase of a delete.
        object: Option<Seen>,
    },
    /// The call took effect, and the condition that is waited for has not come true yet.
    Called {
        /// The object.
        object: Seen,
    },
    /// The answer, or its absence before the first byte was sent, proves that nothing happened.
    NoEffect {
        /// The reason, without secrets.
        reason: String,
    },
}

/// An object as a provider showed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its id.
    pub id: ObjectId,
    /// Its attributes, sealed.
    pub attributes: Stored,
}

/// The outcome of a call in doubt, as a look-up found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Resolution {
    /// The call's object exists. Its attributes are those that the look-up saw.
    Found {
        /// The object.
        object: Seen,
    },
    /// A create made nothing. Its nonce is watched from now on.
    Absent {
        /// The time at which this was believed, in milliseconds since 1970.
        at_ms: u64,
    },
    /// The object of an update or a delete does not exist any more.
    Gone,
}
