//! Whose an object is: the address that stands for it, and the create whose one-time name it bears.
//! An API may give an id again, and a person may name the wrong one.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::journal::{Record, Resolution, Started};
use engine::schema::{Identity, TypeSchema};
use engine::state::{ObjectId, Snapshot};
use engine::value::Value;
use provider_port::{Error, Kind, Object};

use crate::lookup::known_in_doubt;

/// Another address than that of a call which stands for an object.
pub(crate) fn other_owner<'a>(
    snapshot: &'a Snapshot,
    started: &Started,
    id: &ObjectId,
) -> Option<&'a Address> {
    let ty = &started.address.block.ty;
    snapshot.owners(&started.provider, ty, id).find(|owner| **owner != started.address)
}

/// Another address than that of a call, for whose create the name was drawn that an object bears.
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
    let drawn_for = snapshot.named_in_doubt(provider, ty, name);
    drawn_for.chain(watched.map(|own| &own.address)).find(|address| **address != started.address)
}

/// Whether the id of what a call deletes is another object's by now: its own is gone then, for no
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

/// Whether an object bears the name that the state knows of it. A one-time name that was drawn for
/// another address may be its own: the address has moved since.
fn shows_what_is_known(
    snapshot: &Snapshot,
    started: &Started,
    schema: &TypeSchema,
    object: &Object,
) -> bool {
    let known = known_in_doubt(snapshot, started, schema);
    let name = schema.name_attribute.as_ref();
    name.is_some_and(|name| known.get(name) == object.attributes.get(name))
}

/// Whether a delete of an address's object is under way, or went out and was not seen to happen.
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

/// Leaves out the creates whose object another address stands for and goes on to: what they made
/// cannot be told before that address has let go of it.
pub(crate) fn leave_out_claimed(snapshot: &Snapshot, records: &mut Vec<Record>) {
    // What goes makes room for what is found, so it comes first; else the order does not matter.
    records.sort_by_key(|record| !is_gone(record));
    let gone: BTreeSet<(&Address, &ObjectId)> = records
        .iter()
        .filter(|record| is_gone(record))
        .filter_map(|record| started_of(snapshot, record))
        .filter_map(|started| Some((&started.address, started.object.as_ref()?)))
        .collect();
    let is_free = |record: &Record| {
        let Record::Resolved { resolution: Resolution::Found { object }, .. } = record else {
            return true;
        };
        let Some(started) = started_of(snapshot, record) else { return true };
        let ty = &started.address.block.ty;
        let mut owners = snapshot.owners(&started.provider, ty, &object.id);
        started.object.is_some() || owners.all(|owner| gone.contains(&(owner, &object.id)))
    };
    records.retain(is_free);
}

fn is_gone(record: &Record) -> bool {
    matches!(record, Record::Resolved { resolution: Resolution::Gone, .. })
}

fn started_of<'a>(snapshot: &'a Snapshot, record: &Record) -> Option<&'a Started> {
    let Record::Resolved { call, .. } = record else { return None };
    snapshot.pending.get(call).map(|pending| &pending.started)
}
