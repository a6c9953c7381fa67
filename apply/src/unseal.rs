//! Values that a plan has as fingerprints and the state still has in clear: they became secrets after the
//! state was written. A call that sends such a value, or a part of the run that shows it, needs it in clear.

use engine::address::{Address, Name};
use engine::digest::SealKey;
use engine::plan::facts::prior::stored_attributes;
use engine::plan::{Change, agree};
use engine::schema::TypeSchema;
use engine::state::{ObjectId, Snapshot};
use engine::value::{Attributes, Value};

/// Returns the attributes of an object of an address as the state has them.
pub(crate) fn stored_object(
    snapshot: &Snapshot,
    address: &Address,
    id: &ObjectId,
    schema: &TypeSchema,
) -> Option<Attributes> {
    let object = snapshot.entries.get(address)?.object(id)?;
    stored_attributes(&object.attributes, schema).ok()
}

/// The attributes of an object in the state, used to replace the fingerprints in a plan.
pub(crate) struct Unsealer {
    stored: Attributes,
    key: SealKey,
}

impl Unsealer {
    /// Returns an unsealer with the stored attributes of the object of a change.
    pub(crate) fn of(change: &Change, snapshot: &Snapshot, schema: &TypeSchema) -> Self {
        let of = |id: &ObjectId| stored_object(snapshot, &change.address, id, schema);
        Self::with(change.object.as_ref().and_then(of).unwrap_or_default(), snapshot)
    }

    /// Returns an unsealer with these stored attributes of an object.
    pub(crate) fn with(stored: Attributes, snapshot: &Snapshot) -> Self {
        Self { stored, key: snapshot.seal_key.clone() }
    }

    /// Returns a plan's value of an attribute, in clear where the state has the same.
    pub(crate) fn attribute(&self, name: &Name, planned: &Value) -> Value {
        let stored = self.stored.get(name).filter(|_| planned.holds_sealed());
        let same = stored.filter(|stored| agree(stored, planned, &self.key));
        same.unwrap_or(planned).clone()
    }

    /// Returns the value of an attribute before the change, in clear if the state has the same.
    pub(crate) fn before(&self, change: &Change, name: &Name) -> Option<Value> {
        let before = change.before.as_ref()?.get(name)?;
        Some(self.attribute(name, before))
    }

    /// Returns all attributes of an object, in clear where the state has the same.
    pub(crate) fn object(&self, planned: &Attributes) -> Attributes {
        let opened = |(name, value): (&Name, &Value)| (name.clone(), self.attribute(name, value));
        planned.iter().map(opened).collect()
    }
}
