//! Refresh: lists the live objects, in a number of calls that does not depend on the number of objects.
//!
//! An object that a list does not show counts as gone only if a read does not find it either, and that lasts.
//! If many objects are gone at once, a person is asked. All answers are sealed before other code sees them,
//! wherever a secret stands in them.

pub(crate) mod look_ups;
mod vanished;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::digest::SealKey;
use engine::plan::facts::prior::stored_attributes;
use engine::plan::input::{Leftover, Observations, Observed};
use engine::plan::{agree, is_stable};
use engine::schema::{Presence, SeenIn, Sends, TypeSchema};
use engine::state::{Nonce, Object, ObjectId, Snapshot, Which};
use engine::stored::{KnownSecrets, SecretScanner};
use engine::value::{Attributes, Path, Paths, Value};
use futures_util::{StreamExt, TryStreamExt, stream};
use provider_port::{Error, Kind, Provider};

use crate::read::read_object;
use crate::{ApplyError, Providers};

/// The number of lists and reads that run at once. Providers limit their own calls further.
pub(crate) const AT_ONCE: usize = 16;

/// The largest number of objects that are read one by one because a list differs from the state; and the
/// largest number that are read one by one because a secret of theirs has not been shown.
const CONFIRMED_MAX: usize = 16;

/// A provider instance and one of its types.
pub(crate) type Key = (Name, Name);

/// The live objects, by id.
pub(crate) type Listed = BTreeMap<ObjectId, provider_port::Object>;

/// The types to list beside those of the state.
#[derive(Debug, Default)]
pub struct TypesToList {
    /// The types whose names are listed so that a plan can warn of names that are taken.
    pub types: BTreeSet<Key>,
    /// The types that data blocks look up.
    pub looked_up: BTreeSet<Key>,
}

/// Reads every object that the state names, and lists the `wanted` types. Fails if too many objects are gone
/// at once.
pub async fn observe(
    snapshot: &Snapshot,
    providers: &Providers,
    wanted: &TypesToList,
    secrets: &KnownSecrets,
) -> Result<Observations, ApplyError> {
    let (observations, question) =
        observe_chosen(snapshot, providers, wanted, secrets, &|_| true).await?;
    question.map_or(Ok(observations), Err)
}

/// Reads every object that the state names, for a plan about the chosen addresses only. If too many objects
/// of those are gone at once, that question comes beside the observations. If too many of all objects are
/// gone, the others count as not looked at. So does each of the others that cannot be read.
pub async fn observe_chosen(
    snapshot: &Snapshot,
    providers: &Providers,
    wanted: &TypesToList,
    secrets: &KnownSecrets,
    is_chosen: &(dyn Fn(&Address) -> bool + Sync),
) -> Result<(Observations, Option<ApplyError>), ApplyError> {
    let lists = list_all(snapshot, providers, wanted).await?;
    let known = known_objects(snapshot, providers);
    let sealer = SecretScanner::new(&snapshot.seal_key, secrets);
    let mut observations = Observations::default();
    let mut to_read = Vec::new();
    let (mut drifted, mut untold) = (Vec::new(), Vec::new());
    for known in &known {
        let listed = lists.get(&known.key).and_then(|list| list.get(&known.object.id));
        match listed {
            Some(live) if !needs_read(known) => {
                let seen = seal(known, live, sealer);
                if has_drifted(known, &seen, &snapshot.seal_key) {
                    drifted.push(known);
                } else if lacks_a_secret(known, &seen) {
                    untold.push(known);
                }
                observations.objects.insert(known.place(), Observed::Live(seen));
            }
            _ => to_read.push(known),
        }
    }
    // A list may lag behind a recent write, or show less than a read does. A few differences are read again,
    // one by one. Many differences are real, and the number of calls must not grow with them.
    for few in [drifted, untold] {
        if few.len() <= CONFIRMED_MAX {
            to_read.extend(few);
        }
    }
    let look = Look { providers, sealer, is_chosen };
    let read = read_all(&to_read, &look).await?;
    observations.objects.extend(read);
    vanished::look_again(&known, &look, &mut observations).await?;
    find_unowned(snapshot, providers, &lists, sealer, &mut observations);
    observations.listed = look_ups::sealed(&lists, &wanted.looked_up, providers, sealer);
    let (chosen, others): (Vec<_>, Vec<_>) =
        known.iter().partition(|known| is_chosen(known.address));
    let question = ask_about_vanished(&observations, &chosen, snapshot);
    if question.is_none()
        && ask_about_vanished(&observations, &known.iter().collect::<Vec<_>>(), snapshot).is_some()
    {
        for other in others {
            observations.objects.remove(&other.place());
        }
    }
    Ok((observations, question))
}

/// Reads the objects that are to be taken over, and adds them to the observations. Each import is an address,
/// the provider instance that manages the object, and an id.
pub async fn observe_imports(
    snapshot: &Snapshot,
    providers: &Providers,
    imports: &[(&Address, Name, ObjectId)],
    secrets: &KnownSecrets,
    observations: &mut Observations,
) -> Result<(), ApplyError> {
    let sealer = SecretScanner::new(&snapshot.seal_key, secrets);
    let mut open = Vec::new();
    for (address, instance, id) in imports {
        let key = (Name::clone(instance), address.block.ty.clone());
        let Some(schema) = schema(providers, &key).filter(|schema| schema.remote) else { continue };
        let entry = snapshot.entries.get(address);
        let is_free = entry.is_none_or(|entry| entry.current.is_none());
        // The only object of a type can be taken over again whenever the state does not have it.
        let is_alone = schema.singleton.as_ref() == Some(id);
        if is_free && (is_alone || !snapshot.has_taken_over(address, id)) {
            open.push((*address, id, key, schema));
        }
    }
    let seen: Vec<_> = stream::iter(open)
        .map(|(address, id, key, schema)| async move {
            let provider: &Arc<dyn Provider> = &providers[&key.0];
            let seen = match provider.read(&key.1, id).await {
                // An answer that shows another object says nothing about this one.
                Ok(live) if live.id != *id => Observed::Gone,
                Ok(live) => Observed::Live(sealer.seal(&live.attributes, &schema.sensitive(), &[])),
                Err(error) if error.kind == Kind::NotFound => Observed::Gone,
                Err(error) => return Err(unreadable(&key.1, error)),
            };
            Ok(((address.clone(), id.clone()), seen))
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    observations.objects.extend(seen);
    Ok(())
}

/// Returns true if a managed attribute differs from what the state has.
fn has_drifted(known: &Known<'_>, seen: &Attributes, key: &SealKey) -> bool {
    let Ok(stored) = stored_attributes(&known.object.attributes, &known.schema) else {
        return false;
    };
    known.object.managed.iter().any(|name| {
        let pair = seen.get(name).zip(stored.get(name));
        is_stable(&known.schema, name) && pair.is_some_and(|(seen, was)| !agree(seen, was, key))
    })
}

/// Returns true if the API makes a secret for the object that no answer has shown so far.
fn lacks_a_secret(known: &Known<'_>, seen: &Attributes) -> bool {
    let Value::Map(stored) = &known.object.attributes.json else { return false };
    known.schema.attributes.iter().any(|(name, attribute)| {
        let is_told = attribute.presence == Presence::Computed && attribute.derived.is_none();
        let may_show = attribute.seen_in != SeenIn::Never;
        attribute.sensitive
            && is_told
            && may_show
            && !seen.contains_key(name)
            && !stored.contains_key(name)
    })
}

/// An object of the state, with its address, type and schema.
struct Known<'a> {
    address: &'a Address,
    object: &'a Object,
    key: Key,
    schema: Arc<TypeSchema>,
}

impl Known<'_> {
    fn place(&self) -> (Address, ObjectId) {
        (self.address.clone(), self.object.id.clone())
    }
}

fn schema(providers: &Providers, (instance, ty): &Key) -> Option<Arc<TypeSchema>> {
    providers.get(instance)?.schema().types.get(ty).cloned()
}

fn known_objects<'a>(snapshot: &'a Snapshot, providers: &Providers) -> Vec<Known<'a>> {
    let mut known = Vec::new();
    let mut schemas: BTreeMap<Key, Option<Arc<TypeSchema>>> = BTreeMap::new();
    for (address, entry) in &snapshot.entries {
        let key = (entry.provider.clone(), address.block.ty.clone());
        let found = schemas.entry(key.clone()).or_insert_with(|| schema(providers, &key));
        let Some(schema) = found.as_ref().filter(|schema| schema.remote) else { continue };
        for object in entry.current.iter().chain(&entry.deposed) {
            known.push(Known { address, object, key: key.clone(), schema: schema.clone() });
        }
    }
    known
}

async fn list_all(
    snapshot: &Snapshot,
    providers: &Providers,
    wanted: &TypesToList,
) -> Result<BTreeMap<Key, Listed>, ApplyError> {
    let mut keys = wanted.types.clone();
    keys.extend(wanted.looked_up.iter().cloned());
    keys.extend(snapshot.watched.iter().map(|w| (w.provider.clone(), w.ty.clone())));
    for (address, entry) in &snapshot.entries {
        let key = (entry.provider.clone(), address.block.ty.clone());
        if !keys.contains(&key) {
            keys.insert(key);
        }
    }
    keys.retain(|key| schema(providers, key).is_some_and(|schema| schema.remote));
    list_types(keys, providers).await
}

/// Lists the objects of some types.
pub(crate) async fn list_types(
    keys: BTreeSet<Key>,
    providers: &Providers,
) -> Result<BTreeMap<Key, Listed>, ApplyError> {
    stream::iter(keys)
        .map(|key| async move {
            let provider: &Arc<dyn Provider> = &providers[&key.0];
            let objects = provider.list(&key.1).await.map_err(|error| unreadable(&key.1, error))?;
            // An object that is listed twice is one object.
            let listed = objects.into_iter().map(|object| (object.id.clone(), object)).collect();
            Ok((key, listed))
        })
        // The results come in order, so that of several failures always the same one is reported.
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// Returns the error of a failed list or read of a type.
pub(crate) fn unreadable(ty: &Name, source: provider_port::Error) -> ApplyError {
    ApplyError::Refresh { ty: ty.to_string(), source }
}

/// Returns true if lists do not show an attribute that is needed: one that the spec manages, one that an
/// update sends along unchanged because the API takes whole objects, or one on whose value calls are
/// conditional.
fn needs_read(known: &Known<'_>) -> bool {
    let Known { object, schema, .. } = known;
    let mut unlisted = schema.attributes.iter().filter(|(_, it)| it.seen_in == SeenIn::Read);
    unlisted.any(|(name, attribute)| {
        let is_sent_along = attribute.presence != Presence::Computed && sends_all(schema);
        object.managed.contains(name) || is_sent_along || attribute.conditional
    })
}

/// Returns true if an update of the type sends whole objects.
fn sends_all(schema: &TypeSchema) -> bool {
    let mut phases = schema.update.iter().flat_map(|program| &program.phases);
    phases.any(|phase| phase.sends == Sends::All)
}

/// The means to read objects one by one, and the addresses whose objects must be readable.
struct Look<'a> {
    providers: &'a Providers,
    sealer: SecretScanner<'a>,
    is_chosen: &'a (dyn Fn(&Address) -> bool + Sync),
}

/// Reads each object. Leaves out an object that cannot be read and whose address is not chosen.
async fn read_all(
    known: &[&Known<'_>],
    look: &Look<'_>,
) -> Result<Vec<((Address, ObjectId), Observed)>, ApplyError> {
    let read = stream::iter(known)
        .map(|known| async move {
            match read_one(known, look).await {
                Ok(seen) => Ok(Some((known.place(), seen))),
                Err(_) if !(look.is_chosen)(known.address) => Ok(None),
                Err(source) => {
                    Err(ApplyError::Unread { address: Box::new(known.address.clone()), source })
                }
            }
        })
        .buffered(AT_ONCE);
    read.try_filter_map(|seen| async { Ok(seen) }).try_collect().await
}

async fn read_one(known: &Known<'_>, look: &Look<'_>) -> Result<Observed, Error> {
    let provider: &Arc<dyn Provider> = &look.providers[&known.key.0];
    match read_object(&**provider, &known.key.1, &known.object.id).await {
        Ok(live) => Ok(Observed::Live(seal(known, &live, look.sealer))),
        Err(error) if error.kind == Kind::NotFound => Ok(Observed::Gone),
        Err(error) => Err(error),
    }
}

fn seal(known: &Known<'_>, live: &provider_port::Object, sealer: SecretScanner<'_>) -> Attributes {
    let Known { object, schema, .. } = known;
    let sensitive = sensitive(schema, &object.sensitive);
    // Most objects hold nothing sealed. Their stored attributes are not needed here.
    let has_sealed = !object.attributes.sealed.is_empty();
    let recorded = has_sealed.then(|| stored_attributes(&object.attributes, schema).ok()).flatten();
    let recorded: Vec<&Attributes> = recorded.iter().collect();
    let mut attributes = sealer.seal(&live.attributes, &sensitive, &recorded);
    // An attribute that the API never shows, by its descriptor, is not believed if an answer has it.
    attributes.retain(|name, _| !known.schema.is_hidden(name));
    attributes
}

/// Returns the sensitive places of an object: those that the schema declares, and those that the state
/// recorded.
pub(crate) fn sensitive(schema: &TypeSchema, recorded: &Paths) -> Paths {
    let mut paths = schema.sensitive();
    paths.extend_below(&Path::root(), recorded);
    paths
}

/// Returns an error if more than three objects, and more than a fifth of all, are gone at once: a person must
/// decide then. Objects for which Plumb sent a delete do not count, however late they disappear.
fn ask_about_vanished(
    observations: &Observations,
    known: &[&Known<'_>],
    snapshot: &Snapshot,
) -> Option<ApplyError> {
    let gone = |known: &&&Known<'_>| {
        let seen = observations.objects.get(&known.place());
        seen == Some(&Observed::Gone) && !is_deleted_by_us(known, snapshot)
    };
    let gone: Vec<_> = known.iter().filter(gone).map(|known| known.address.clone()).collect();
    (gone.len() > (known.len() / 5).max(3)).then(|| ApplyError::Vanished {
        gone: gone.len(),
        all: known.len(),
        addresses: gone,
    })
}

/// Returns true if Plumb sent a delete for the object that finished or is in doubt.
fn is_deleted_by_us(known: &Known<'_>, snapshot: &Snapshot) -> bool {
    known.object.delete_sent_ms.is_some()
        || snapshot.pending.values().any(|pending| {
            let started = &pending.started;
            started.ends_its_object()
                && started.object.as_ref() == Some(&known.object.id)
                && (&started.provider, &started.address.block.ty) == (&known.key.0, &known.key.1)
        })
}

/// Finds the listed objects that are not in the state: leftovers of this state by their nonce, all others by
/// name.
fn find_unowned(
    snapshot: &Snapshot,
    providers: &Providers,
    lists: &BTreeMap<Key, Listed>,
    sealer: SecretScanner<'_>,
    observations: &mut Observations,
) {
    // Types without an API are not listed, and a large state may have no other types.
    if lists.values().all(Listed::is_empty) {
        return;
    }
    let owned: BTreeSet<Which<'_>> = snapshot.objects().map(|(_, which)| which).collect();
    for (key, listed) in lists {
        let Some(schema) = schema(providers, key) else { continue };
        let Some(name_attribute) = &schema.name_attribute else { continue };
        let is_owned = |id: &ObjectId| owned.contains(&Which::new(&key.0, &key.1, id));
        for object in listed.values().filter(|object| !is_owned(&object.id)) {
            let Some(Value::String(name)) = object.attributes.get(name_attribute) else {
                continue;
            };
            // This check is cheap and comes first: most names are no nonces.
            let mut watched = snapshot.watched.iter().filter(|_| Nonce::is_likely(name));
            let watched = watched.find(|watched| {
                (&watched.provider, &watched.ty) == (&key.0, &key.1)
                    && watched.nonce.is(name)
                    && !watched.let_go.contains(&object.id)
            });
            if let Some(watched) = watched {
                // The leftover was made with the same secrets as the object that it is a twin of.
                let sensitive = sensitive(&schema, &watched.sensitive);
                observations.leftovers.push(Leftover {
                    nonce: watched.nonce.clone(),
                    id: object.id.clone(),
                    attributes: sealer.seal(&object.attributes, &sensitive, &[]),
                });
            } else {
                let place = (key.0.clone(), key.1.clone(), name.clone());
                observations.strangers.entry(place).or_default().push(object.id.clone());
            }
        }
    }
}
