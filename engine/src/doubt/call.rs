//! A call in doubt, the attributes that it sent, and the object that a look-up shows.

use std::collections::BTreeSet;

use crate::address::Name;
use crate::digest::SealKey;
use crate::journal::Started;
use crate::plan::agree;
use crate::plan::facts::prior::stored_attributes;
use crate::schema::{Identity, PhaseRef, TypeSchema};
use crate::sorted::Set;
use crate::state::{ObjectId, Snapshot};
use crate::value::{Attributes, Value};

/// A call in doubt.
#[derive(Clone, Copy)]
pub struct CallInDoubt<'a> {
    /// The record of its intent.
    pub started: &'a Started,
    /// The schema of the object's type.
    pub schema: &'a TypeSchema,
    /// The attributes that the call sent; none outside the run that sent them.
    pub sent: Option<Sent<'a>>,
    /// True if the API accepted the call. Its object may show late, so an absence proves nothing.
    pub accepted: bool,
    /// True if the call went to another account than the one that is looked at.
    pub elsewhere: bool,
    /// The key for fingerprints of secrets.
    pub key: &'a SealKey,
}

/// The attributes of a call.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// All attributes, in clear.
    pub desired: &'a Attributes,
    /// The attributes that the call changes.
    pub changed: &'a BTreeSet<Name>,
    /// The attributes that may differ, by the spec's `ignore_changes`.
    pub ignored: &'a Set<Name>,
}

/// An object as a look-up showed it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// Its id.
    pub id: &'a ObjectId,
    /// Its attributes, in clear.
    pub attributes: &'a Attributes,
}

impl CallInDoubt<'_> {
    /// Returns true if the object that a look-up for a create finds may be an older one with the same name or
    /// id.
    pub fn may_be_another(&self) -> bool {
        let Started { name, nonce, .. } = self.started;
        let is_drawn = || nonce.as_ref().is_some_and(|nonce| name.as_ref() == Some(&nonce.0));
        self.started.makes_its_object()
            && match self.schema.identity {
                Identity::UniqueName { .. } => true,
                Identity::ClientId { .. } => !is_drawn(),
                _ => false,
            }
    }

    /// Returns true if the call creates its object under a name that was drawn only for it.
    pub fn has_one_time_name(&self) -> bool {
        self.started.makes_its_object()
            && matches!(self.schema.identity, Identity::OneTimeName { .. })
    }

    /// Returns the attributes of the call's object that are known although its outcome is not. They are those
    /// of the state, without the ones that the call was to change and that no answer shows. Those are sent
    /// again.
    pub fn known(&self, snapshot: &Snapshot) -> Attributes {
        let Self { started, schema, .. } = self;
        let entry = snapshot.entries.get(&started.address);
        let object = started.object.as_ref().and_then(|id| entry?.object(id));
        let mut known = object
            .filter(|_| !started.makes_its_object())
            .and_then(|object| stored_attributes(&object.attributes, schema).ok())
            .unwrap_or_default();
        known.retain(|name, _| !started.unshown.contains(name));
        known
    }
}

impl Sent<'_> {
    /// Returns the attributes to which the phase of a call gives another value than the known one, and which
    /// no answer shows.
    pub fn unshown(
        &self,
        schema: &TypeSchema,
        phase: PhaseRef,
        known: &Attributes,
        key: &SealKey,
    ) -> Set<Name> {
        let is_unshown = |(name, wanted): &(&Name, &Value)| {
            schema.is_hidden(name)
                && schema.sends(phase, name, self.changed)
                && !agree(wanted, known.get(*name).unwrap_or(&Value::Null), key)
        };
        self.desired.iter().filter(is_unshown).map(|(name, _)| name.clone()).collect()
    }
}
