//! The look-up of a call in doubt: the only way in which a doubt ends without a person.
//!
//! An object with a one-time name proves at once that its create made it. These sights are believed only
//! after they have lasted for the provider's settle time, because a list or a read may lag behind: that an
//! object is absent; that an object is present under a name which another object may have had a moment ago;
//! and what an object shows after a call that changes or deletes it, as the read may show the time before the
//! call. If only a name tells the object, the look-up also waits because a run that lost its lock may send
//! its create a little later, and nothing would find that object afterwards.

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

/// The time after a run last had its lock, within which a request of that run may still leave.
const LEAVES_WITHIN: Duration = SEND_WITHIN.saturating_add(SENT_AFTER_PERMIT);

/// The time for which a run waits until an object shows what the API accepted, and the pause between two
/// looks.
const SHOWS_WITHIN: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// The object is there.
    There(Object),
    /// The object is not there: its absence has lasted for the settle time.
    Absent,
    /// Nobody can tell, for the given reason.
    Unknown(Error),
}

/// A call that is looked up.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The call in doubt.
    pub(crate) call: CallInDoubt<'a>,
    /// The objects that the call cannot have made: see [`taken`].
    pub(crate) taken: &'a BTreeSet<ObjectId>,
    /// True if the effect of the call may show later, because its request may have been sent a moment ago.
    pub(crate) unsettled: bool,
}

/// Returns an object that a provider showed as evidence.
pub(crate) fn shown(object: &Object) -> Shown<'_> {
    Shown { id: &object.id, attributes: &object.attributes }
}

/// Returns the objects that addresses stand for already, and that a create therefore did not make. Returns
/// none if the create has a one-time name, which proves its object by itself.
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

/// Looks up one call, and repeats that while the API accepted the call and the object does not show what was
/// sent.
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

/// Looks up one call, a second time after the settle time if the first look proves nothing.
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

/// Returns the time for which a result must last to be believed.
pub(crate) fn settles_in(provider: &Arc<dyn Provider>, wanted: Wanted<'_>) -> Duration {
    // A run that lost its lock may have sent the request after another run took the lock.
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

/// Returns the attributes of a create's object that the record of the create tells.
fn named(schema: &TypeSchema, started: &Started) -> Option<Attributes> {
    let (at, name) = (schema.identity.chosen_attribute()?, started.name.as_ref()?);
    let ty = schema.attributes.get(at).map(|attribute| &attribute.ty);
    Some(Attributes::from([(at.clone(), name_as(name, ty))]))
}

/// Converts a name from the text in a record to the value that an object has: an integer or a string.
fn name_as(name: &Name, ty: Option<&Type>) -> Value {
    let number = name.parse().ok().filter(|_| matches!(ty, Some(Type::Integer | Type::Number)));
    number.map_or_else(|| Value::String(name.clone()), Value::Integer)
}

/// Returns true if an object has a name of which only the fingerprint is known.
fn is_named(object: &Object, attribute: &Name, name: &Fingerprint, key: &SealKey) -> bool {
    let own = object.attributes.get(attribute).filter(|own| !own.is_null());
    own.is_some_and(|own| Fingerprint::of(own, key) == *name)
}

/// Returns which of the found objects a create made.
fn the_one(objects: Vec<Object>, wanted: Wanted<'_>) -> Found {
    let free = objects.into_iter().filter(|object| !wanted.taken.contains(&object.id));
    let mut free: Vec<Object> = free.collect();
    free.sort_by(|a, b| a.id.cmp(&b.id));
    // These objects have in common only what was asked for, so objects that others made may be among them.
    if wanted.call.schema.identity == Identity::IdempotencyKey && free.len() > 1 {
        let why = "what it is looked for by shows several objects, and nothing tells which it made";
        return Found::Unknown(Error::new(Kind::InDoubt, why));
    }
    // A server that executed one request twice made several objects. Every run takes the one with the lowest
    // id, and the others show up as leftovers.
    free.into_iter().next().map_or(Found::Absent, Found::There)
}

/// Returns an object as the journal keeps it: sealed, and with the known values of attributes that the answer
/// did not show. The secrets of the request, if they are still known, and those of the state are sealed
/// wherever the object repeats them.
pub(crate) fn seen(
    object: &Object,
    known: &Attributes,
    call: CallInDoubt<'_>,
    sealer: SecretScanner<'_>,
) -> Seen {
    let sensitive = sensitive(call.schema, &call.started.sensitive);
    let answered = match call.sent.map(|sent| sent.desired) {
        None => sealer.seal(&object.attributes, &sensitive, &[known]),
        // The values that were recorded before do not say what the object was to become.
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
