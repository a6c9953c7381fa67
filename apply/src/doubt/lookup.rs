//! Looking up what a call in doubt did: the only way a doubt ends without a person.
//!
//! Presence is proof at once, of what has a name that was drawn for it alone. An absence is believed
//! after it has lasted for the provider's settle time, because a list may be behind; and so is the
//! presence of what has a name that another object may have had a moment ago, and what an object shows
//! that was to change or to go: a read may be behind as well, and show what was there before, which may be
//! what is wanted again. Where a name is all that tells, a run that lost its
//! place may send its create a little later: that is waited for, too, as nothing finds a late one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::address::{Address, Name};
use engine::digest::{Fingerprint, SealKey};
use engine::doubt::{CallInDoubt, Shown, create_mismatch};
use engine::journal::{Seen, Started};
use engine::schema::{Identity, TypeSchema};
use engine::state::{ObjectId, Snapshot};
use engine::stored::{SecretScanner, Stored, seal_attributes};
use engine::types::Type;
use engine::value::{Attributes, Value};
use provider_port::{Error, Kind, Lookup, Object, Provider, SENT_AFTER_PERMIT};
use tokio::time::Instant;

use crate::read::read_object;
use crate::refresh::sensitive;
use crate::timing::SEND_WITHIN;

/// The time after a run had its place for the last time in which a request of it may leave.
const LEAVES_WITHIN: Duration = SEND_WITHIN.saturating_add(SENT_AFTER_PERMIT);

/// For how long a run waits for what an API accepted, and after which pause it looks again.
const SHOWS_WITHIN: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The result of a look.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// The object is there.
    There(Object),
    /// It is not there, and this is believed.
    Absent,
    /// It cannot be told, with the reason.
    Unknown(Error),
}

/// A call that is looked up.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The call.
    pub(crate) call: CallInDoubt<'a>,
    /// The objects that it cannot have made: see [`taken`].
    pub(crate) taken: &'a BTreeSet<ObjectId>,
    /// True if what it does may show only later, as whoever sent it may have done so a moment ago.
    pub(crate) unsettled: bool,
}

/// Returns an object that a provider showed as evidence.
pub(crate) fn shown(object: &Object) -> Shown<'_> {
    Shown { id: &object.id, attributes: &object.attributes }
}

/// The objects that addresses stand for already, where a lost create is found by what others may
/// have, too: a name or a key that is not drawn for it alone.
pub(crate) fn taken(
    snapshot: &Snapshot,
    schema: &TypeSchema,
    started: &Started,
) -> BTreeSet<ObjectId> {
    if !started.makes_its_object() || matches!(schema.identity, Identity::OneTimeName { .. }) {
        return BTreeSet::new();
    }
    let ty = &started.address.block.ty;
    let same = snapshot
        .entries
        .iter()
        .filter(|(address, entry)| address.block.ty == *ty && entry.provider == started.provider);
    let objects = same.flat_map(|(_, entry)| entry.current.iter().chain(&entry.deposed));
    objects.map(|object| object.id.clone()).collect()
}

/// The fingerprint of the account that a provider acts for, if it has one.
pub(crate) fn account_of(provider: &dyn Provider, snapshot: &Snapshot) -> Option<Fingerprint> {
    provider.account().map(|account| Fingerprint::of_digest(&account, &snapshot.seal_key))
}

/// Returns the error about a create that was accepted and does not show.
pub(crate) fn promised() -> Error {
    Error::new(Kind::InDoubt, "the API accepted it, and nothing shows that it made anything so far")
}

/// Returns the error about a create whose object another address stands for.
pub(crate) fn claimed(owner: &Address, id: &ObjectId) -> Error {
    let why = format!("it made {id}, and {owner} stands for that object");
    Error::new(Kind::InDoubt, why)
}

/// Looks up one call, and again while the API accepted it and its object does not show what was sent.
pub(crate) async fn wait_until_shown(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Found {
    let began = Instant::now();
    loop {
        let found = look_up(provider, wanted).await;
        let is_to_come = match &found {
            Found::There(object) => !create_mismatch(wanted.call, &object.attributes).is_empty(),
            Found::Absent => true,
            Found::Unknown(_) => false,
        };
        if !(wanted.call.accepted && is_to_come) || began.elapsed() >= SHOWS_WITHIN {
            return found;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Looks up one call until what is seen is believed.
pub(crate) async fn look_up(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Found {
    let first = once(provider, wanted).await;
    let is_known = match &first {
        Found::There(_) => wanted.call.started.makes_its_object() && !wanted.call.may_be_another(),
        Found::Absent => false,
        Found::Unknown(_) => true,
    };
    if is_known {
        return first;
    }
    tokio::time::sleep(settles_in(provider, wanted)).await;
    once(provider, wanted).await
}

/// Returns the time for which a sight must last to be believed.
pub(crate) fn settles_in(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Duration {
    // One that was driven out may have sent it after its place was taken.
    let leaves_in = if wanted.unsettled && wanted.call.may_be_another() {
        LEAVES_WITHIN
    } else {
        Duration::ZERO
    };
    provider.settle() + leaves_in
}

async fn once(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Found {
    let started = wanted.call.started;
    match &started.object {
        Some(id) => read(provider, &started.address.block.ty, id).await,
        None => find(provider, wanted).await,
    }
}

async fn read(provider: &Arc<dyn Provider>, ty: &str, id: &ObjectId) -> Found {
    match read_object(&**provider, ty, id).await {
        Ok(object) => Found::There(object),
        Err(error) if error.kind == Kind::NotFound => Found::Absent,
        Err(error) => Found::Unknown(error),
    }
}

async fn find(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Found {
    let CallInDoubt { schema, started, key, .. } = wanted.call;
    let desired = wanted.call.sent.map(|sent| sent.desired);
    let Some(nonce) = &started.nonce else {
        return Found::Unknown(Error::new(Kind::InDoubt, "the create has no nonce"));
    };
    if schema.identity == Identity::Ask {
        let why = "nothing tells which object this create made";
        return Found::Unknown(Error::new(Kind::InDoubt, why));
    }
    let ty = &started.address.block.ty;
    let secret = schema.identity.chosen_attribute().zip(started.secret_name.as_ref());
    let found = if let Some((attribute, name)) = secret.filter(|_| desired.is_none()) {
        provider.list(ty).await.map(|mut listed| {
            listed.retain(|object| is_named(object, attribute, name, key));
            listed
        })
    } else {
        let named = named(schema, started);
        provider.find(ty, &Lookup { nonce, desired: desired.or(named.as_ref()) }).await
    };
    match found {
        Ok(objects) => the_one(objects, wanted),
        Err(error) => Found::Unknown(error),
    }
}

/// Returns the attributes of a create's object that its record tells.
fn named(schema: &TypeSchema, started: &Started) -> Option<Attributes> {
    let (at, name) = (schema.identity.chosen_attribute()?, started.name.as_ref()?);
    let ty = schema.attributes.get(at).map(|attribute| &attribute.ty);
    Some(Attributes::from([(at.clone(), name_as(name, ty))]))
}

/// A name as records have it, which is a text, as an object has it.
fn name_as(name: &Name, ty: Option<&Type>) -> Value {
    let number = name.parse().ok().filter(|_| matches!(ty, Some(Type::Integer | Type::Number)));
    number.map_or_else(|| Value::String(name.clone()), Value::Integer)
}

/// Returns true if an object has a name that is known by its fingerprint.
fn is_named(object: &Object, attribute: &Name, name: &Fingerprint, key: &SealKey) -> bool {
    let own = object.attributes.get(attribute).filter(|own| !own.is_null());
    own.is_some_and(|own| Fingerprint::of(own, key) == *name)
}

/// Returns the one of the objects that were found which a create made.
fn the_one(objects: Vec<Object>, wanted: Wanted<'_>) -> Found {
    let free = objects.into_iter().filter(|object| !wanted.taken.contains(&object.id));
    let mut free: Vec<Object> = free.collect();
    free.sort_by(|a, b| a.id.cmp(&b.id));
    // What was asked for then is all that is alike of these: a stranger's may be among them.
    if wanted.call.schema.identity == Identity::IdempotencyKey && free.len() > 1 {
        let why = "what it is looked for by shows several objects, and nothing tells which it made";
        return Found::Unknown(Error::new(Kind::InDoubt, why));
    }
    // A server that executed one request twice made several: the lowest id is taken by every
    // run alike, and the others surface as leftovers.
    free.into_iter().next().map_or(Found::Absent, Found::There)
}

/// An object as the journal keeps it: sealed, with what is known of attributes that the answer
/// did not show. The secrets of what was sent, where that is still known, may stand anywhere in it,
/// and so may those of the state.
pub(crate) fn seen(
    object: &Object,
    known: &Attributes,
    call: CallInDoubt<'_>,
    sealer: SecretScanner<'_>,
) -> Seen {
    let sensitive = sensitive(call.schema, &call.started.sensitive);
    let answered = match call.sent.map(|sent| sent.desired) {
        None => sealer.seal(&object.attributes, &sensitive, &[known]),
        // What was recorded before is no measure for what was to become of it.
        Some(sent) if sensitive.is_empty() => {
            sealer.seal(&object.attributes, &sensitive, &[sent, known])
        }
        Some(sent) => {
            let secrets = sealer.secrets().with(sent, &sensitive);
            let sent = seal_attributes(sent, &sensitive, sealer.key());
            let sealer = SecretScanner::new(sealer.key(), &secrets);
            sealer.seal(&object.attributes, &sensitive, &[&sent, known])
        }
    };
    let attributes = engine::plan::facts::prior::overlay(known, &answered);
    Seen { id: object.id.clone(), attributes: Stored::of_sealed(&Value::map(attributes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_as_what_it_is() {
        assert_eq!(name_as(&"443".into(), Some(&Type::Integer)), Value::Integer(443));
        assert_eq!(name_as(&"443".into(), Some(&Type::String)), Value::string("443"));
        assert_eq!(name_as(&"x".into(), Some(&Type::Number)), Value::string("x"));
    }
}
