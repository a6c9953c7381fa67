//! Whose an object is: the address that stands for it, and the create whose one-time name it bears.
//! An API may give an id again, and a person may name the wrong one.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::address::Address;
use engine::digest::SealKey;
use engine::journal::{Record, Resolution, Started};
use engine::plan::agree;
use engine::schema::{Identity, TypeSchema};
use engine::state::{ObjectId, Snapshot};
use engine::value::{Attributes, Value};
use provider_port::{Error, Kind, Object};

use crate::doubt::lookup::known_in_doubt;

/// An address which stands for an object that is not what a call is about: of a create that may be its own,
/// with what it is to replace or has put aside.
pub(crate) fn other_owner<'a>(
    snapshot: &'a Snapshot,
    started: &Started,
    id: &ObjectId,
) -> Option<&'a Address> {
    let ty = &started.address.block.ty;
    let makes = started.makes_its_object();
    snapshot.owners(&started.provider, ty, id).find(|owner| makes || **owner != started.address)
}

/// Returns true if an object bears the name that was drawn for a create, which nothing bore before. A name that is a
/// secret may be known by its fingerprint.
fn bears_its_nonce(
    (schema, started): (&TypeSchema, &Started),
    attributes: &Attributes,
    key: &SealKey,
) -> bool {
    let Identity::OneTimeName { attribute } = &schema.identity else { return false };
    let Some(nonce) = &started.nonce else { return false };
    match attributes.get(attribute) {
        Some(Value::String(name)) => nonce.is(name),
        Some(Value::Sealed(name)) => nonce.is_behind(name, key),
        _ => false,
    }
}

/// Returns true if what a create made has the id that an object of its own address had: that one is gone, for no id
/// is two objects' at once. What is under way of it has to end first.
pub(crate) fn succeeds_its_own(
    snapshot: &Snapshot,
    (schema, started): (&TypeSchema, &Started),
    id: &ObjectId,
    attributes: &Attributes,
) -> bool {
    let entry = snapshot.entries.get(&started.address);
    let is_own =
        entry.is_some_and(|entry| entry.provider == started.provider && entry.object(id).is_some());
    let is_about =
        |other: &Started| other.address == started.address && other.object.as_ref() == Some(id);
    is_own
        && bears_its_nonce((schema, started), attributes, &snapshot.seal_key)
        && !snapshot.pending.values().any(|pending| is_about(&pending.started))
}

/// For whose create the name was drawn that an object bears, if that is not the call's own: another address's,
/// or, of a delete, one of its own address that is in doubt.
pub(crate) fn named_for<'a>(
    snapshot: &'a Snapshot,
    started: &Started,
    schema: &TypeSchema,
    object: &Object,
) -> Option<&'a Address> {
    let Identity::OneTimeName { attribute } = &schema.identity else { return None };
    let Some(Value::String(name)) = object.attributes.get(attribute) else { return None };
    let (provider, ty) = (&started.provider, &started.address.block.ty);
    let watched = snapshot.watched.iter().filter(|own| {
        own.provider == *provider && own.address.block.ty == *ty && own.nonce.is(name)
    });
    let is_other = |address: &&Address| **address != started.address;
    // What an address has may bear a name that was drawn for the address and is watched.
    let watched = watched.map(|own| &own.address).filter(is_other);
    let in_doubt = snapshot
        .named_in_doubt(provider, ty, name)
        .filter(|address| started.ends_its_object() || is_other(address));
    in_doubt.chain(watched).next()
}

/// Returns true if the id of what a call deletes is another object's by now: its own is gone then, for no
/// id is two objects' at once.
pub(crate) fn is_given_again(
    snapshot: &Snapshot,
    started: &Started,
    schema: &TypeSchema,
    object: &Object,
) -> bool {
    let is_new = || !shows_what_is_known(snapshot, started, schema, object);
    started.ends_its_object()
        && (other_owner(snapshot, started, &object.id).is_some()
            || (named_for(snapshot, started, schema, object).is_some() && is_new()))
}

/// Returns true if an object bears the name that the state knows of it. A one-time name that was drawn for
/// another address may be its own: the address has moved since.
fn shows_what_is_known(
    snapshot: &Snapshot,
    started: &Started,
    schema: &TypeSchema,
    object: &Object,
) -> bool {
    let known = known_in_doubt(snapshot, started, schema);
    let name = schema.name_attribute.as_ref();
    name.is_some_and(|name| match (known.get(name), object.attributes.get(name)) {
        // One that is a secret is known by its fingerprint.
        (Some(known), Some(shown)) => agree(known, shown, &snapshot.seal_key),
        (known, shown) => known.is_none() && shown.is_none(),
    })
}

/// Returns true if a delete of an address's object is under way, or went out and was not seen to happen.
pub(crate) fn is_going(snapshot: &Snapshot, owner: &Address, id: &ObjectId) -> bool {
    let object = snapshot.entries.get(owner).and_then(|entry| entry.object(id));
    object.is_some_and(|object| object.delete_sent_ms.is_some())
        || snapshot.pending.values().any(|pending| pending.started.ends(owner, id))
}

/// Why what bears a create's own name is not taken for what it made.
pub(crate) fn claimed(owner: &Address, id: &ObjectId) -> Error {
    let why = format!("it made {id}, and {owner} stands for that object");
    Error::new(Kind::InDoubt, why)
}

/// The objects that are gone because what a create of their own address made has their ids.
pub(crate) fn succeeded(
    snapshot: &Snapshot,
    records: &[Record],
    schema_of: &dyn Fn(&Started) -> Option<Arc<TypeSchema>>,
) -> Vec<Record> {
    let gone = records.iter().filter_map(|record| {
        let Record::Resolved { resolution: Resolution::Found { object }, .. } = record else {
            return None;
        };
        let started = started_of(snapshot, record).filter(|it| it.makes_its_object())?;
        let (schema, value) = (schema_of(started)?, object.attributes.value().ok()?);
        let attributes = value.as_map()?;
        succeeds_its_own(snapshot, (&schema, started), &object.id, attributes).then(|| {
            Record::Vanished { address: started.address.clone(), object: object.id.clone() }
        })
    });
    gone.collect()
}

/// Leaves out the creates whose object another address stands for and goes on to: what they made
/// cannot be told before that address has let go of it.
pub(crate) fn leave_out_claimed(snapshot: &Snapshot, records: &mut Vec<Record>) {
    // What goes makes room for what is found, so it comes first; else the order does not matter.
    records.sort_by_key(|record| !is_gone(record));
    let gone: BTreeSet<(&Address, &ObjectId)> =
        records.iter().filter_map(|record| gone_by(snapshot, record)).collect();
    let is_free = |record: &Record| {
        let Record::Resolved { resolution: Resolution::Found { object }, .. } = record else {
            return true;
        };
        let Some(started) = started_of(snapshot, record) else { return true };
        let ty = &started.address.block.ty;
        let mut owners = snapshot.owners(&started.provider, ty, &object.id);
        started.object.is_some() || owners.all(|owner| gone.contains(&(owner, &object.id)))
    };
    let is_kept: Vec<bool> = records.iter().map(is_free).collect();
    let mut is_kept = is_kept.into_iter();
    records.retain(|_| is_kept.next().unwrap_or(true));
}

/// The object that is gone by a record.
fn gone_by<'a>(snapshot: &'a Snapshot, record: &'a Record) -> Option<(&'a Address, &'a ObjectId)> {
    match record {
        Record::Vanished { address, object } => Some((address, object)),
        _ if is_gone(record) => {
            let started = started_of(snapshot, record)?;
            Some((&started.address, started.object.as_ref()?))
        }
        _ => None,
    }
}

fn is_gone(record: &Record) -> bool {
    matches!(
        record,
        Record::Resolved { resolution: Resolution::Gone, .. } | Record::Vanished { .. }
    )
}

fn started_of<'a>(snapshot: &'a Snapshot, record: &Record) -> Option<&'a Started> {
    let Record::Resolved { call, .. } = record else { return None };
    snapshot.pending.get(call).map(|pending| &pending.started)
}
