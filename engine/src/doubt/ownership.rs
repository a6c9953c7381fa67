//! The owner of an object that a look shows: the address that stands for it, or the create whose one-time name
//! it has. An API may give an id again, and a person may name the wrong one.

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
    /// This address stands for it.
    Holder(&'a Address),
    /// It has the one-time name of a create for this address.
    Maker(&'a Address),
}

/// Returns the owner of an object that a look for a call showed, unless it is the call's own. What a change of
/// an object shows is its own: it may have any name.
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

/// Returns an address that stands for an object which is not the call's own. Of a create it may be the
/// create's own address, with an object that is to be replaced or was put aside.
pub fn holder<'a>(snapshot: &'a Snapshot, started: &Started, id: &ObjectId) -> Option<&'a Address> {
    let ty = &started.address.block.ty;
    let makes = started.makes_its_object();
    snapshot.owners(&started.provider, ty, id).find(|owner| makes || **owner != started.address)
}

/// Returns the address for whose create the name of an object was drawn, if that is not the call's own:
/// another address, or, of a delete, its own address with a create in doubt.
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
    // What an address has may have a name that was drawn for the address and is watched.
    let watched = watched.map(|own| &own.address).filter(is_other);
    let in_doubt = snapshot
        .named_in_doubt(provider, ty, name)
        .filter(|address| started.ends_its_object() || is_other(address));
    in_doubt.chain(watched).next()
}

/// Returns true if an object has the name that the state knows of it. A one-time name that was drawn for
/// another address may be its own: the address has moved since.
fn has_known_name(call: CallInDoubt<'_>, shown: Shown<'_>, snapshot: &Snapshot) -> bool {
    let known = call.known(snapshot);
    let name = call.schema.name_attribute.as_ref();
    name.is_some_and(|name| match (known.get(name), shown.attributes.get(name)) {
        // A secret name is known by its fingerprint.
        (Some(known), Some(shown)) => agree(known, shown, call.key),
        (known, shown) => known.is_none() && shown.is_none(),
    })
}

/// Returns true if a create made an object with the id that an object of its own address had: that one is gone,
/// for no two objects have one id at once. A call that is under way about it has to end first.
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

/// Returns true if an object has the name that was drawn for a create, which nothing bore before.
fn has_its_nonce(call: CallInDoubt<'_>, attributes: &Attributes) -> bool {
    let Identity::OneTimeName { attribute } = &call.schema.identity else { return false };
    let Some(nonce) = &call.started.nonce else { return false };
    match attributes.get(attribute) {
        Some(Value::String(name)) => nonce.is(name),
        // A secret name is known by its fingerprint.
        Some(Value::Sealed(name)) => nonce.is_behind(name, call.key),
        _ => false,
    }
}
