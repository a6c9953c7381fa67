//! A provider over objects in memory, with names that need not be unique, and faults on request.
//!
//! The provider interprets its own schema: a create makes an object under its one-time name with the
//! attributes that the phase sends, and later phases change the object. A log keeps every mutating call
//! that had an effect, so tests can count the calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::address::Name;
use engine::digest::Digest;
use engine::journal::{PhaseRef, ProgramKind};
use engine::schema::{Identity, Phase, ProviderSchema, SeenIn, Sends, TypeSchema, Unset};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

use crate::shapes;

/// The server's own words in the error of a call that it refuses, or that is lost before its effect.
pub(crate) const SAID: &str = "in the words of the server";

/// A fault of a mutating call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call has no effect, and the answer says so.
    Refused,
    /// The call has no effect, and no answer arrives.
    LostBefore,
    /// The call has its effect, and no answer arrives.
    LostAfter,
    /// The call is executed twice, and the answer of the first execution arrives.
    Doubled,
    /// The call is executed twice, and no answer arrives.
    DoubledAndLost,
    /// The call has its effect, and the answer is the refusal of a second execution: the name exists already.
    DoubledAndRefused,
    /// The call has its effect, and its wait ends without the awaited result.
    StillWaiting,
    /// The call has its effect, and the answer shows no object.
    Bare,
    /// A create is accepted, and its object appears after this number of seconds. The answer shows no object.
    Promised(u64),
    /// The call is held back for this number of seconds, asks for its permit again, and then has its effect.
    Throttled(u64),
    /// The call has its effect, and then the provider panics.
    Panic,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) objects: BTreeMap<(Name, ObjectId), Attributes>,
    /// Every mutating call that had an effect: `create disk`, `update unit`…
    pub(crate) log: Vec<String>,
    /// The faults of mutating calls, by the number of the call. `calls` counts the calls from 0.
    pub(crate) faults: BTreeMap<u64, Fault>,
    pub(crate) calls: u64,
    /// The number of coming reads that fail.
    pub(crate) reads_fail: u64,
    /// The seconds that each of the next answers to a read takes. An answer shows the object as it was when
    /// the read began.
    pub(crate) reads_take: VecDeque<u64>,
    /// The number of coming searches for the object of a create that fail.
    pub(crate) finds_fail: u64,
    /// The text whose digest identifies the account.
    pub(crate) key: String,
    next_id: u64,
    /// True if ids are numbers that count from one for each type.
    pub(crate) counts_by_type: bool,
    /// The settle time of the API.
    pub(crate) settle: Duration,
    /// True if the provider refuses to send any secret to the place of its API.
    pub(crate) is_foreign: bool,
}

/// The cloud; clones are handles to one.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) shared: Arc<Mutex<Shared>>,
    pub(crate) schema: Arc<ProviderSchema>,
    /// Changes the attributes that the cloud shows of an object, as an API that adds or replaces values does.
    pub(crate) makes: fn(&mut Attributes),
}

impl Cloud {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), schema: Arc::new(shapes::schema()), makes: |_| {} }
    }

    /// Changes the schema of a type.
    pub(crate) fn change_type(&mut self, ty: &str, change: impl FnOnce(&mut TypeSchema)) {
        let mut schema = (*self.schema).clone();
        change(Arc::make_mut(schema.types.get_mut(ty).unwrap()));
        self.schema = Arc::new(schema);
    }

    /// Makes an object that no state knows, as a stranger would, and returns its id.
    pub(crate) fn put(&self, ty: &str, attributes: &[(&str, Value)]) -> ObjectId {
        let mut shared = self.shared.lock().unwrap();
        let id = shared.new_id(ty);
        let mut attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        attributes.insert("id".into(), Value::String(id.0.clone()));
        shared.objects.insert((ty.into(), id.clone()), attributes);
        id
    }

    /// Returns the names of all live objects of a type, sorted.
    pub(crate) fn names(&self, ty: &str) -> Vec<String> {
        let shared = self.shared.lock().unwrap();
        let mut names: Vec<String> = shared
            .objects
            .iter()
            .filter(|((own, _), _)| &**own == ty)
            .map(|(_, attributes)| attributes["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Sets the fault of one mutating call: 0 for `after` is the next call, 1 is the one after it.
    pub(crate) fn strike(&self, after: u64, fault: Fault) {
        let mut shared = self.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(after, fault);
    }

    /// Makes the next `count` reads fail.
    pub(crate) fn fail_reads(&self, count: u64) {
        self.shared.lock().unwrap().reads_fail = count;
    }

    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().log)
    }

    /// Returns the answer of a read.
    fn shown(&self, shared: &mut Shared, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        if shared.reads_fail > 0 {
            shared.reads_fail -= 1;
            return Err(Error::new(Kind::InDoubt, "cut"));
        }
        match shared.objects.get(&(ty.into(), id.clone())) {
            Some(attributes) => Ok(self.object(ty, id, attributes)),
            None => Err(Error::new(Kind::NotFound, format!("{ty} {id} does not exist"))),
        }
    }

    fn object(&self, ty: &str, id: &ObjectId, attributes: &Attributes) -> Object {
        let schema = &self.schema.types[ty];
        let mut attributes = attributes.clone();
        attributes.retain(|name, _| schema.attributes[name].seen_in != SeenIn::Never);
        (self.makes)(&mut attributes);
        engine::plan::facts::prior::derive(
            schema,
            &mut attributes,
            &mut engine::value::Paths::none(),
        );
        Object { id: id.clone(), attributes }
    }
}

/// Returns the id that the client chose, or None if the API chooses the ids of this type. A create under
/// the id of an existing object overwrites that object, as a PUT does.
fn chosen_id(schema: &TypeSchema, call: &Call<'_>) -> Option<ObjectId> {
    let Identity::ClientId { attribute } = &schema.identity else { return None };
    call.desired.get(attribute).and_then(Value::as_str).map(|id| ObjectId(id.into()))
}

impl Shared {
    fn new_id(&mut self, ty: &str) -> ObjectId {
        self.next_id += 1;
        if self.counts_by_type {
            let ids = self.objects.keys().filter(|(own, _)| **own == *ty).map(|(_, id)| id);
            let last = ids.filter_map(|id| id.0.parse::<u64>().ok()).max().unwrap_or(0);
            return ObjectId((last + 1).to_string().into());
        }
        ObjectId(format!("{ty}-{}", self.next_id).into())
    }

    fn effect(&mut self, schema: &TypeSchema, call: &Call<'_>) -> Result<Option<ObjectId>, Error> {
        let phase = call.phase;
        if !phase.calls() {
            return Ok(call.id.cloned());
        }
        let model = schema.phase(phase).unwrap();
        let sends = &model.sends;
        if phase.makes() {
            self.refuse_conflict(schema, model, call)?;
            let id = chosen_id(schema, call).unwrap_or_else(|| self.new_id(call.ty));
            let mut attributes = shapes::sent(schema, model, call);
            attributes.insert("id".into(), Value::String(id.0.clone()));
            if !attributes.contains_key("name") {
                attributes.insert("name".into(), Value::String(call.nonce.unwrap().0.clone()));
            }
            self.objects.insert((call.ty.into(), id.clone()), attributes);
            self.note(model, call);
            return Ok(Some(id));
        }
        let id = call.id.unwrap();
        let key = (Name::from(call.ty), id.clone());
        self.refuse_conflict(schema, model, call)?;
        if phase.kind == ProgramKind::Delete && phase.is_last() {
            let workers = self.objects.get(&key).and_then(|own| own.get("workers"));
            if matches!(workers, Some(Value::Integer(1..))) {
                return Err(Error::new(Kind::Rejected, "it has workers"));
            }
            return match self.objects.remove(&key) {
                Some(_) => {
                    self.note(model, call);
                    Ok(None)
                }
                None => Err(Error::new(Kind::NotFound, "no such object")),
            };
        }
        let own = self.objects.get_mut(&key);
        let own = own.ok_or_else(|| Error::new(Kind::NotFound, "no such object"))?;
        if phase.kind == ProgramKind::Delete {
            let stops = if sends.is_anything() { "workers" } else { "starts" };
            own.insert(stops.into(), Value::Integer(0));
        } else if sends.is_anything() {
            let resets = |attribute: &&Name| {
                let unset = &schema.attributes[*attribute].unset;
                *sends == Sends::All && *unset == Some(Unset::Absent)
            };
            let reset = schema.attributes.keys().filter(resets);
            own.extend(reset.map(|name| (name.clone(), Value::string("the default"))));
            own.extend(shapes::sent(schema, model, call));
        } else {
            let starts = own.get("starts").and_then(Value::as_integer).unwrap_or(0);
            own.insert("starts".into(), Value::Integer(starts + 1));
        }
        self.note(model, call);
        Ok(Some(id.clone()))
    }

    fn note(&mut self, phase: &Phase, call: &Call<'_>) {
        self.log.push(format!("{} {}", phase.operation.word(), call.ty));
    }

    /// Refuses a call that would give a unique name to a second object, and the delete of an image that
    /// another object uses.
    fn refuse_conflict(
        &self,
        schema: &TypeSchema,
        model: &Phase,
        call: &Call<'_>,
    ) -> Result<(), Error> {
        let own = call.id;
        if let Some(id) = own.filter(|_| call.phase.kind == ProgramKind::Delete) {
            let uses = |object: &Attributes| {
                object.get("image_id").and_then(Value::as_str) == Some(&*id.0)
            };
            let in_use = call.ty == "image" && self.objects.values().any(uses);
            let refusal = Error::new(Kind::Rejected, "it is in use");
            return if in_use { Err(refusal) } else { Ok(()) };
        }
        let name = shapes::sent(schema, model, call).remove("name");
        let taken = self.objects.iter().any(|((ty, other), object)| {
            **ty == *call.ty && Some(other) != own && object.get("name") == name.as_ref()
        });
        let refusal = Error::new(Kind::Rejected, "the name is taken");
        if schema.unique_name && name.is_some() && taken { Err(refusal) } else { Ok(()) }
    }
}

#[async_trait]
impl Provider for Cloud {
    fn account(&self) -> Option<Digest> {
        Some(Digest::of(self.shared.lock().unwrap().key.as_bytes()))
    }

    fn may_carry(&self, _: &str, _: PhaseRef, secret: &Name) -> Result<(), Error> {
        if self.shared.lock().unwrap().is_foreign {
            return Err(Error::new(Kind::Rejected, format!("`{secret}` is not sent there")));
        }
        Ok(())
    }

    fn settle(&self) -> Duration {
        self.shared.lock().unwrap().settle
    }

    fn schema(&self) -> Arc<ProviderSchema> {
        self.schema.clone()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        let shared = self.shared.lock().unwrap();
        let own = shared.objects.iter().filter(|((own, _), _)| &**own == ty);
        let shown = |((_, id), attributes): (&(Name, ObjectId), &Attributes)| {
            let mut object = self.object(ty, id, attributes);
            let attributes = &self.schema.types[ty].attributes;
            object.attributes.retain(|name, _| attributes[name].seen_in != SeenIn::Read);
            object
        };
        Ok(own.map(shown).collect())
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        let (shown, takes) = {
            let mut shared = self.shared.lock().unwrap();
            let shown = self.shown(&mut shared, ty, id);
            (shown, shared.reads_take.pop_front().unwrap_or(0))
        };
        tokio::time::sleep(Duration::from_secs(takes)).await;
        shown
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        {
            let mut shared = self.shared.lock().unwrap();
            if shared.finds_fail > 0 {
                shared.finds_fail -= 1;
                return Err(Error::new(Kind::InDoubt, "cut"));
            }
        }
        let all = self.list(ty).await?;
        if let Some(attribute) = self.schema.types[ty].identity.chosen_attribute() {
            let wanted = create.desired.and_then(|desired| desired.get(attribute)).cloned();
            let bears = |object: &Object| object.attributes.get(attribute) == wanted.as_ref();
            return Ok(all.into_iter().filter(bears).collect());
        }
        Ok(all
            .into_iter()
            .filter(|object| create.nonce.is(object.attributes["name"].as_str().unwrap()))
            .collect())
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let fault = {
            let mut shared = self.shared.lock().unwrap();
            let number = shared.calls;
            shared.calls += 1;
            shared.faults.remove(&number)
        };
        if let Some(Fault::Throttled(seconds)) = fault {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            call.permit.ask().await?;
        }
        let mut shared = self.shared.lock().unwrap();
        match fault {
            Some(Fault::Refused) => return Err(Error::new(Kind::Rejected, "refused").said(SAID)),
            Some(Fault::LostBefore) => return Err(Error::new(Kind::InDoubt, "cut").said(SAID)),
            _ => {}
        }
        let before = shared.objects.clone();
        let done = shared.effect(&self.schema.types[call.ty], call);
        if matches!(fault, Some(Fault::Doubled | Fault::DoubledAndLost)) {
            // The answer of the second execution is lost.
            drop(shared.effect(&self.schema.types[call.ty], call));
        }
        match fault {
            Some(Fault::LostAfter | Fault::DoubledAndLost) => {
                return Err(Error::new(Kind::InDoubt, "cut"));
            }
            Some(Fault::DoubledAndRefused) => {
                return Err(Error::new(Kind::Rejected, "its name exists already"));
            }
            Some(Fault::StillWaiting) => {
                return Err(Error::new(Kind::StillWaiting, "it is not ready"));
            }
            Some(Fault::Bare) => return Ok(Reply { object: None }),
            Some(Fault::Promised(after)) => {
                let id = done?.unwrap();
                let key = (Name::from(call.ty), id);
                let made = shared.objects.remove(&key).unwrap();
                // An object that existed before keeps its old attributes until then.
                shared
                    .objects
                    .extend(before.get_key_value(&key).map(|(k, v)| (k.clone(), v.clone())));
                let later = self.shared.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(after)).await;
                    later.lock().unwrap().objects.insert(key, made);
                });
                return Ok(Reply { object: None });
            }
            Some(Fault::Panic) => {
                // The lock is released before the panic, which would poison it.
                drop(shared);
                panic!("canary-panic: a mistake of the provider");
            }
            _ => {}
        }
        let object = done?
            .map(|id| self.object(call.ty, &id, &shared.objects[&(call.ty.into(), id.clone())]));
        Ok(Reply { object })
    }
}
