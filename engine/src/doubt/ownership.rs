//! The owner of an object that a look-up shows: the address that stands for the object, or the create whose
//! one-time name the object has. An API may give an id to a second object, and a person may name the wrong
//! one.

use super::call::{CallInDoubt, Shown};
use crate::address::Address;
use crate::journal::Started;
use crate::plan::agree;
use crate::schema::Identity;
use crate::state::{ObjectId, Snapshot};
use crate::value::{Attributes, Value};

/// The owner of an object that is not the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The address that stands for the object.
    Holder(&'a Address),
    /// The address whose create drew the one-time name of the object.
    Maker(&'a Address),
}

/// Returns the owner of an object that a look-up for a call showed; none if it is the call's own object. A
/// call that changes an object has found its own by the id, whatever name that has.
pub fn other_owner<'a>(
    call: CallInDoubt<'_>,
    shown: Shown<'_>,
    snapshot: &'a Snapshot,
) -> Option<Owner<'a>> {
    let started = call.started;
    if !started.makes_its_object() && !started.ends_its_object() {
        return None;
    }
    if let Some(holder) = holder(snapshot, started, shown.id) {
        return Some(Owner::Holder(holder));
    }
    let maker = maker(call, shown.attributes, snapshot)?;
    let is_other = started.makes_its_object() || !has_known_name(call, shown, snapshot);
    is_other.then_some(Owner::Maker(maker))
}

/// Returns an address that stands for an object which is not the call's own. For a create this may be the
/// create's own address, with an object that is to be replaced or was put aside.
pub fn holder<'a>(snapshot: &'a Snapshot, started: &Started, id: &ObjectId) -> Option<&'a Address> {
    let ty = &started.address.block.ty;
    let makes = started.makes_its_object();
    snapshot.owners(&started.provider, ty, id).find(|owner| makes || **owner != started.address)
}

/// Returns the address for whose create the name of an object was drawn, if that is not the call's own
/// address. For a delete it may be the call's own address, with a create in doubt.
fn maker<'a>(
    call: CallInDoubt<'_>,
    shown: &Attributes,
    snapshot: &'a Snapshot,
) -> Option<&'a Address> {
    let Identity::OneTimeName { attribute } = &call.schema.identity else { return None };
    let Some(Value::String(name)) = shown.get(attribute) else { return None };
    let started = call.started;
    let (provider, ty) = (&started.provider, &started.address.block.ty);
    let watched = snapshot.watched.iter().filter(|own| {
        own.provider == *provider && own.address.block.ty == *ty && own.nonce.is(name)
    });
    let is_other = |address: &&Address| **address != started.address;
    // An object of the call's own address may have a watched name that was drawn for this address.
    let watched = watched.map(|own| &own.address).filter(is_other);
    let in_doubt = snapshot
        .named_in_doubt(provider, ty, name)
        .filter(|address| started.ends_its_object() || is_other(address));
    in_doubt.chain(watched).next()
}

/// Returns true if an object has the name that the state knows. The object may own a one-time name that was
/// drawn for another address: the address has moved since.
fn has_known_name(call: CallInDoubt<'_>, shown: Shown<'_>, snapshot: &Snapshot) -> bool {
    let known = call.known(snapshot);
    let name = call.schema.name_attribute.as_ref();
    name.is_some_and(|name| match (known.get(name), shown.attributes.get(name)) {
        // A secret name is compared by its fingerprint.
        (Some(known), Some(shown)) => agree(known, shown, call.key),
        (known, shown) => known.is_none() && shown.is_none(),
    })
}

/// Returns true if a create made an object with the id of an earlier object of its own address. The earlier
/// object is gone then, because no two objects have one id at the same time. A call on the earlier object
/// that is under way has to end first.
pub fn supersedes_own(call: CallInDoubt<'_>, made: Shown<'_>, snapshot: &Snapshot) -> bool {
    let started = call.started;
    let entry = snapshot.entries.get(&started.address);
    let is_own = entry
        .is_some_and(|entry| entry.provider == started.provider && entry.object(made.id).is_some());
    let is_about = |other: &Started| {
        other.address == started.address && other.object.as_ref() == Some(made.id)
    };
    is_own
        && has_its_nonce(call, made.attributes)
        && !snapshot.pending.values().any(|pending| is_about(&pending.started))
}

/// Returns true if an object has the name that was drawn for a create.
fn has_its_nonce(call: CallInDoubt<'_>, attributes: &Attributes) -> bool {
    let Identity::OneTimeName { attribute } = &call.schema.identity else { return false };
    let Some(nonce) = &call.started.nonce else { return false };
    match attributes.get(attribute) {
        Some(Value::String(name)) => nonce.is(name),
        // A secret name is compared by its fingerprint.
        Some(Value::Sealed(name)) => nonce.is_behind(name, call.key),
        _ => false,
    }
}
