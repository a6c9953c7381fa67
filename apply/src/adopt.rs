//! Adoption: lists the live objects that no state knows, and takes many of them over at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::adopt::Found;
use engine::config::{Config, ImportConfig, ImportedObject};
use engine::diagnostics::{Diagnostic, Diagnostics};
use engine::digest::Digest;
use engine::journal::Record;
use engine::plan::Plan;
use engine::plan::input::{Options, Target};
use engine::schema::{Presence, SeenIn, TypeSchema};
use engine::state::{Nonce, ObjectId, Snapshot, Which};
use engine::value::Value;
use futures_util::{StreamExt, TryStreamExt, stream};
use provider_port::{Kind, Object};

use crate::planning::{Request, make};
use crate::read::read_object;
use crate::refresh::{AT_ONCE, Key, list_types, unreadable};
use crate::session::Session;
use crate::{ApplyError, Providers};

/// Lists the live objects of the wanted types that neither the state nor an import of the spec knows. Leaves
/// out objects that a create in doubt may have made.
pub async fn unknown_objects(
    snapshot: &Snapshot,
    providers: &Providers,
    config: &Config,
    is_wanted: &(dyn Fn(&Name) -> bool + Sync),
) -> Result<Vec<Found>, ApplyError> {
    let mut keys: BTreeSet<Key> = BTreeSet::new();
    for (instance, provider) in providers {
        let schema = provider.schema();
        let types = schema.types.values();
        let remote = types.filter(|ty| ty.remote && !ty.data_only && is_wanted(&ty.name));
        keys.extend(remote.map(|ty| (instance.clone(), ty.name.clone())));
    }
    let lists = list_types(keys, providers).await?;
    let known = Known::new(snapshot, providers, config);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (key, listed) in lists {
        let Some(schema) = schema(providers, &key) else { continue };
        for object in listed.into_values() {
            // Two instances of one account show the same objects.
            let place = (known.account(&key.0), key.1.clone(), object.id.clone());
            if !known.has(&key, &schema, &object) && seen.insert(place) {
                found.push((key.clone(), object));
            }
        }
    }
    let read = stream::iter(found).map(|(key, object)| whole(providers, key, object));
    let read: Vec<Option<Found>> = read.buffered(AT_ONCE).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}

fn schema(providers: &Providers, (instance, ty): &Key) -> Option<Arc<TypeSchema>> {
    providers.get(instance)?.schema().types.get(ty).cloned()
}

/// Returns an object with the attributes that lists do not show; `None` if the object is gone by now.
async fn whole(
    providers: &Providers,
    key: Key,
    listed: Object,
) -> Result<Option<Found>, ApplyError> {
    let Some(schema) = schema(providers, &key) else { return Ok(None) };
    let is_unlisted = schema.attributes.values().any(|attribute| {
        attribute.seen_in == SeenIn::Read && attribute.presence != Presence::Computed
    });
    let object = if is_unlisted {
        match read_object(&*providers[&key.0], &key.1, &listed.id).await {
            Ok(object) => object,
            Err(error) if error.kind == Kind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&key.1, error)),
        }
    } else {
        listed
    };
    let Object { id, attributes } = object;
    let shown = attributes.into_iter().filter(|(name, _)| !schema.is_hidden(name)).collect();
    Ok(Some(Found { provider: key.0, ty: key.1, id, attributes: shown }))
}

/// The objects that the state or an import of the spec knows.
struct Known<'a> {
    snapshot: &'a Snapshot,
    accounts: BTreeMap<&'a Name, Option<Digest>>,
    /// The known objects, by account, type and id.
    places: BTreeSet<(Account, Name, ObjectId)>,
    /// The objects that imports find by name, by account, type and name.
    names: BTreeSet<(Account, Name, Name)>,
}

/// The account of a provider instance, or the instance itself if it has no account.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Account {
    Of(Digest),
    Instance(Name),
}

impl<'a> Known<'a> {
    fn new(snapshot: &'a Snapshot, providers: &'a Providers, config: &Config) -> Self {
        let accounts =
            providers.iter().map(|(name, provider)| (name, provider.account())).collect();
        let mut known =
            Self { snapshot, accounts, places: BTreeSet::new(), names: BTreeSet::new() };
        let mut places = BTreeSet::new();
        for (_, Which { provider, ty, id }) in snapshot.objects() {
            places.insert((known.account(provider), ty.clone(), id.clone()));
        }
        for (address, import) in &config.imports {
            if let Some(resource) = config.resources.get(&address.block) {
                let account = known.account(&resource.provider.of(address));
                let ty = address.block.ty.clone();
                match &import.object {
                    ImportedObject::Id(id) => drop(places.insert((account, ty, id.clone()))),
                    ImportedObject::Named(name) => {
                        known.names.insert((account, ty, name.clone()));
                    }
                }
            }
        }
        known.places = places;
        known
    }

    fn account(&self, instance: &Name) -> Account {
        match self.accounts.get(instance) {
            Some(Some(account)) => Account::Of(account.clone()),
            _ => Account::Instance(instance.clone()),
        }
    }

    fn has(&self, (instance, ty): &Key, schema: &TypeSchema, object: &Object) -> bool {
        let place = (self.account(instance), ty.clone(), object.id.clone());
        self.places.contains(&place)
            || self.is_named(instance, ty, schema, object)
            || self.is_of_a_create(instance, ty, schema, object)
    }

    /// Returns true if an import of the spec means the object by its name.
    fn is_named(&self, instance: &Name, ty: &Name, schema: &TypeSchema, object: &Object) -> bool {
        let name = schema.name_attribute.as_ref().and_then(|name| object.attributes.get(name));
        let Some(Value::String(name)) = name else { return false };
        !self.names.is_empty()
            && self.names.contains(&(self.account(instance), ty.clone(), name.clone()))
    }

    /// Returns true if an object bears a one-time name that a create of this state was given.
    fn is_of_a_create(
        &self,
        instance: &Name,
        ty: &Name,
        schema: &TypeSchema,
        object: &Object,
    ) -> bool {
        let Some(attribute) = &schema.name_attribute else { return false };
        let Some(Value::String(name)) = object.attributes.get(attribute) else { return false };
        let mut watched = self.snapshot.watched.iter().filter(|_| Nonce::is_likely(name));
        watched.any(|it| (&it.provider, &it.ty) == (instance, ty) && it.nonce.is(name))
            || self.snapshot.named_in_doubt(instance, ty, name).next().is_some()
    }
}

/// Plans to take objects over, each as an address of the spec, and nothing else. The plan may not be carried
/// out if the diagnostics have errors.
pub async fn plan(
    snapshot: &Snapshot,
    request: &Request<'_>,
    imports: &BTreeMap<Address, ObjectId>,
) -> Result<(Plan, Diagnostics), ApplyError> {
    let config = Config { imports: imports_of(imports), ..request.config.clone() };
    let targets = imports.keys().map(|address| Target::Instance(address.clone())).collect();
    let options = Options { targets, ..Options::default() };
    let request = Request { config: &config, options: &options, refresh: true, ..*request };
    // An import that did its work is not planned again. Here the user asks for the object by its id, so it
    // is.
    let mut snapshot = snapshot.clone();
    for address in imports.keys() {
        snapshot.taken_over.remove(address);
    }
    let (plan, mut found) = make(&snapshot, &request).await?;
    let taken: BTreeSet<&Address> = records(&plan, imports).filter_map(address_of).collect();
    if !found.has_errors() {
        for address in imports.keys().filter(|address| !taken.contains(address)) {
            found.push(Diagnostic::error(format!(
                "{address} cannot be taken over now: it is in the state, disabled, or in doubt"
            )));
        }
    }
    Ok((plan, found))
}

/// Takes the objects of a plan over, all of them in one write to the journal.
pub async fn take_over(
    session: &mut Session,
    plan: &Plan,
    imports: &BTreeMap<Address, ObjectId>,
) -> Result<(), ApplyError> {
    for record in records(plan, imports) {
        session.record(record.clone())?;
    }
    session.flush().await
}

/// Returns the imports of objects, as a spec would have them.
fn imports_of(imports: &BTreeMap<Address, ObjectId>) -> BTreeMap<Address, ImportConfig> {
    let import = |(address, id): (&Address, &ObjectId)| {
        let object = ImportedObject::Id(id.clone());
        (address.clone(), ImportConfig { object, span: None, of_type: false })
    };
    imports.iter().map(import).collect()
}

/// Returns the records of a plan that take objects over.
fn records<'p>(
    plan: &'p Plan,
    imports: &BTreeMap<Address, ObjectId>,
) -> impl Iterator<Item = &'p Record> {
    plan.seen.iter().filter(|record| address_of(record).is_some_and(|it| imports.contains_key(it)))
}

/// Returns the address as which a record takes an object over.
fn address_of(record: &Record) -> Option<&Address> {
    match record {
        Record::Adopted { address, deposed: false, .. } => Some(address),
        _ => None,
    }
}
