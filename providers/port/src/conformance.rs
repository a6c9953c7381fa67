//! The contract of every provider, as a suite that each of them runs in its tests.
//!
//! It walks objects of every given type through their life as `apply` would: create phase by phase,
//! find by nonce, list, read, update, delete, and checks each answer against the schema. It is no
//! test of the API behind the provider, and it needs one that is safe to write to.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::expression::Root;
use engine::expression::evaluate::{self, Scope};
use engine::journal::{PhaseRef, ProgramKind};
use engine::schema::{Identity, Program, SeenIn, TypeSchema};
use engine::state::{Nonce, ObjectId};
use engine::value::{Attributes, Datum, Value};

use crate::{Call, Error, Kind, Lookup, Object, Provider, Reply};

/// The objects that were made so far, by resource type: what later fixtures may refer to.
pub type Made = BTreeMap<Name, Object>;

type Wanted = Box<dyn Fn(&Made) -> Attributes + Send + Sync>;

/// The way to try one resource type.
pub struct Fixture {
    ty: Name,
    create: Wanted,
    change: Wanted,
}

impl Fixture {
    /// A type with the attributes of the create, and those that the update changes.
    pub fn new(ty: &str, create: Attributes, change: Attributes) -> Self {
        Self::depending(ty, move |_| create.clone(), move |_| change.clone())
    }

    /// The same where attributes refer to objects of earlier fixtures.
    pub fn depending(
        ty: &str,
        create: impl Fn(&Made) -> Attributes + Send + Sync + 'static,
        change: impl Fn(&Made) -> Attributes + Send + Sync + 'static,
    ) -> Self {
        Self { ty: ty.into(), create: Box::new(create), change: Box::new(change) }
    }
}

/// The parts that the suite runs on.
pub struct Suite<'a> {
    provider: &'a dyn Provider,
    wrong_key: Option<&'a dyn Provider>,
    secrets: Vec<String>,
    fixtures: Vec<Fixture>,
}

impl<'a> Suite<'a> {
    /// A suite without fixtures.
    pub fn new(provider: &'a dyn Provider) -> Self {
        Self { provider, wrong_key: None, secrets: Vec::new(), fixtures: Vec::new() }
    }

    /// Adds a fixture; objects are made in this order and deleted in the opposite one.
    #[must_use]
    pub fn with(mut self, fixture: Fixture) -> Self {
        self.fixtures.push(fixture);
        self
    }

    /// The same provider with a key that the API does not know.
    #[must_use]
    pub fn wrong_key(mut self, provider: &'a dyn Provider) -> Self {
        self.wrong_key = Some(provider);
        self
    }

    /// A text that no error may show, such as the key.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }
}

/// Runs the suite; the error says what the provider did wrong, in which call.
pub async fn run(suite: &Suite<'_>) -> Result<(), String> {
    let mut made = Made::new();
    for (index, fixture) in suite.fixtures.iter().enumerate() {
        let object = live(suite, fixture, index, &made).await?;
        made.insert(fixture.ty.clone(), object);
    }
    for fixture in suite.fixtures.iter().rev() {
        end(suite, fixture, &made).await?;
    }
    for fixture in &suite.fixtures {
        refusals(suite, fixture).await?;
    }
    Ok(())
}

/// Creates, finds, lists, reads and updates one object.
async fn live(
    suite: &Suite<'_>,
    fixture: &Fixture,
    index: usize,
    made: &Made,
) -> Result<Object, String> {
    let schema = type_schema(suite, &fixture.ty)?;
    let nonce = nonce(&fixture.ty, index);
    let mut desired = completed(&schema, (fixture.create)(made))?;
    let created = create(suite, &schema, &desired, &nonce).await?;
    let mut object = observe(suite, &schema, &created, &desired).await?;
    let change = (fixture.change)(made);
    if change.is_empty() {
        return Ok(object);
    }
    let changed: BTreeSet<Name> = change.keys().cloned().collect();
    desired = object.attributes.clone();
    desired.extend(completed(&schema, change)?);
    let step = Step { kind: ProgramKind::Update, id: Some(&object.id), nonce: None };
    let updated = program(suite, &schema, &step, &desired, &object.attributes, &changed).await?;
    let updated = updated.unwrap_or_else(|| object.clone());
    if updated.id != object.id {
        return Err(format!("update of {} answered another id", schema.name));
    }
    let wanted = desired.iter().filter(|(name, _)| changed.contains(*name));
    let wanted = wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
    let merged = merge(&object, &updated);
    object = observe(suite, &schema, &merged, &wanted).await?;
    Ok(object)
}

async fn create(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    desired: &Attributes,
    nonce: &Nonce,
) -> Result<Object, String> {
    let none = Attributes::new();
    let all = desired.keys().cloned().collect();
    let step = Step { kind: ProgramKind::Create, id: None, nonce: Some(nonce) };
    let object = program(suite, schema, &step, desired, &none, &all).await?;
    object.ok_or_else(|| format!("create of {} answered no object", schema.name))
}

/// The call that a program is performed with.
struct Step<'a> {
    kind: ProgramKind,
    id: Option<&'a ObjectId>,
    nonce: Option<&'a Nonce>,
}

/// Performs all phases of the program that applies; after the first phase of a create, the object
/// must be found by its nonce.
async fn program(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    step: &Step<'_>,
    desired: &Attributes,
    live: &Attributes,
    changed: &BTreeSet<Name>,
) -> Result<Option<Object>, String> {
    let programs = schema.programs(step.kind);
    let judged = match step.kind {
        ProgramKind::Create => Judged { attributes: desired, old: None },
        ProgramKind::Update => Judged { attributes: desired, old: Some(live) },
        ProgramKind::Delete => Judged { attributes: live, old: Some(live) },
    };
    let index = choose(programs, &judged)
        .ok_or_else(|| format!("{:?} of {} has no program that applies", step.kind, schema.name))?;
    let phases = programs[index].phases.len();
    let mut object: Option<Object> = None;
    for phase in 0..phases {
        let id = object.as_ref().map(|object| object.id.clone()).or_else(|| step.id.cloned());
        let seen = object.as_ref().map_or(live, |object| &object.attributes).clone();
        let call = Call {
            ty: &schema.name,
            phase: PhaseRef::new(step.kind, index, phase, phases),
            id: id.as_ref(),
            nonce: step.nonce,
            desired,
            live: id.as_ref().map(|_| &seen),
            changed,
            secrets: &crate::Secrets::default(),
            permit: &crate::Always,
            progress: &|_| {},
        };
        let reply = suite.provider.perform(&call).await;
        let reply = reply.map_err(|error| {
            complaint(suite, &format!("{:?} phase {phase}", step.kind), &schema.name, &error)
        })?;
        let known = object.take();
        object = shown(schema, reply)?.map(|new| match known {
            Some(known) => merge(&known, &new),
            None => new,
        });
        if let (ProgramKind::Create, 0, Some(nonce), Some(object)) =
            (step.kind, phase, step.nonce, &object)
        {
            found(suite, schema, nonce, desired, &object.id).await?;
        }
    }
    Ok(object)
}

fn choose(programs: &[Program], judged: &Judged<'_>) -> Option<usize> {
    programs.iter().position(|program| match &program.when {
        None => true,
        Some(when) => {
            evaluate::evaluate(when, judged).is_ok_and(|datum| datum.value == Value::Bool(true))
        }
    })
}

/// The objects that a `when` sees: the attributes of one by name, null where one is not there, and `old`.
struct Judged<'a> {
    attributes: &'a Attributes,
    old: Option<&'a Attributes>,
}

impl Scope for Judged<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Named(name) if &**name == "old" => {
                Ok(self.old.map_or(Value::Null, |old| Value::map(old.clone())).into())
            }
            Root::Named(name) => {
                Ok(self.attributes.get(name).cloned().unwrap_or(Value::Null).into())
            }
            other => Err(format!("{other:?} means nothing here")),
        }
    }

    fn resource(&self, block: &engine::address::Block, _: Option<&str>) -> Result<Datum, String> {
        Err(format!("{block} means nothing here"))
    }
}

/// After the create's first phase, the nonce leads to the object: to it alone.
async fn found(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    nonce: &Nonce,
    desired: &Attributes,
    id: &ObjectId,
) -> Result<(), String> {
    let by_nonce = matches!(
        schema.identity,
        Identity::OneTimeName { .. } | Identity::ClientId { .. } | Identity::UniqueName { .. }
    );
    if !schema.remote || !by_nonce {
        return Ok(());
    }
    let lookup = Lookup { nonce, desired: Some(desired) };
    let found = suite.provider.find(&schema.name, &lookup).await;
    let found = found.map_err(|error| complaint(suite, "find", &schema.name, &error))?;
    let ids: Vec<_> = found.iter().map(|object| &object.id).collect();
    if ids != [id] {
        let name = &schema.name;
        return Err(format!("find of {name} after its create: {ids:?} instead of {id:?}"));
    }
    Ok(())
}

/// Lists and reads the object; both must show the wanted values in the schema's types.
async fn observe(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    object: &Object,
    wanted: &Attributes,
) -> Result<Object, String> {
    if !schema.remote {
        compare(schema, "the answer", object, wanted, &[SeenIn::List, SeenIn::Read])?;
        return Ok(object.clone());
    }
    let listed = suite.provider.list(&schema.name).await;
    let listed = listed.map_err(|error| complaint(suite, "list", &schema.name, &error))?;
    let mut ours = listed.into_iter().filter(|listed| listed.id == object.id);
    let (Some(listed), None) = (ours.next(), ours.next()) else {
        return Err(format!("list of {} does not show {} once", schema.name, object.id));
    };
    typed(schema, &listed)?;
    compare(schema, "list", &listed, wanted, &[SeenIn::List])?;
    let read = suite.provider.read(&schema.name, &object.id).await;
    let read = read.map_err(|error| complaint(suite, "read", &schema.name, &error))?;
    typed(schema, &read)?;
    compare(schema, "read", &read, wanted, &[SeenIn::List, SeenIn::Read])?;
    if read.id != object.id {
        return Err(format!("read of {} answered another object", schema.name));
    }
    Ok(merge(object, &read))
}

fn compare(
    schema: &TypeSchema,
    call: &str,
    object: &Object,
    wanted: &Attributes,
    seen: &[SeenIn],
) -> Result<(), String> {
    for (name, value) in wanted {
        let Some(attribute) = schema.attributes.get(name) else {
            return Err(format!("{} has no attribute `{name}`", schema.name));
        };
        if !seen.contains(&attribute.seen_in) {
            continue;
        }
        let shown = object.attributes.get(name).unwrap_or(&Value::Null);
        if !shown.same(value) {
            return Err(format!("{call} of {} shows another `{name}`", schema.name));
        }
    }
    Ok(())
}

/// Deletes the object: then it is neither read nor listed.
async fn end(suite: &Suite<'_>, fixture: &Fixture, made: &Made) -> Result<(), String> {
    let schema = type_schema(suite, &fixture.ty)?;
    let object = &made[&fixture.ty];
    let none = Attributes::new();
    let step = Step { kind: ProgramKind::Delete, id: Some(&object.id), nonce: None };
    let left = program(suite, &schema, &step, &none, &object.attributes, &BTreeSet::new()).await?;
    if left.is_some() {
        return Err(format!("delete of {} answered an object", schema.name));
    }
    if !schema.remote {
        return Ok(());
    }
    match suite.provider.read(&schema.name, &object.id).await {
        Err(error) if error.kind == Kind::NotFound => safe(suite, &error)?,
        other => return Err(format!("read of a deleted {} gave {other:?}", schema.name)),
    }
    let listed = suite.provider.list(&schema.name).await;
    let listed = listed.map_err(|error| complaint(suite, "list", &schema.name, &error))?;
    if listed.iter().any(|listed| listed.id == object.id) {
        return Err(format!("list shows a deleted {}", schema.name));
    }
    again(suite, &schema, &object.id, &object.attributes).await
}

/// A delete of what is gone has nothing to do, and says so. Whether it may be believed, who asks knows.
async fn again(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    id: &ObjectId,
    live: &Attributes,
) -> Result<(), String> {
    let program = choose(&schema.delete, &Judged { attributes: live, old: Some(live) });
    let program = program.ok_or_else(|| format!("no delete of {} applies", schema.name))?;
    let phases = schema.delete[program].phases.len();
    let call = Call {
        ty: &schema.name,
        phase: PhaseRef::new(ProgramKind::Delete, program, phases - 1, phases),
        id: Some(id),
        nonce: None,
        desired: &Attributes::new(),
        live: Some(live),
        changed: &BTreeSet::new(),
        secrets: &crate::Secrets::default(),
        permit: &crate::Always,
        progress: &|_| {},
    };
    match suite.provider.perform(&call).await {
        Err(error) if error.kind == Kind::NotFound => safe(suite, &error),
        other => Err(format!("a second delete of {} gave {other:?}", schema.name)),
    }
}

/// A missing object is not found, and a wrong key is recognised.
async fn refusals(suite: &Suite<'_>, fixture: &Fixture) -> Result<(), String> {
    let schema = type_schema(suite, &fixture.ty)?;
    let unknown = ObjectId("nobody-has-this-id".into());
    match suite.provider.read(&schema.name, &unknown).await {
        Err(error) if error.kind == Kind::NotFound => safe(suite, &error)?,
        other => return Err(format!("read of an unknown {} gave {other:?}", schema.name)),
    }
    let Some(stranger) = suite.wrong_key else { return Ok(()) };
    match stranger.list(&schema.name).await {
        Err(error) if error.kind == Kind::Unauthenticated => safe(suite, &error),
        other => Err(format!("list of {} with a wrong key gave {other:?}", schema.name)),
    }
}

fn type_schema(suite: &Suite<'_>, ty: &Name) -> Result<std::sync::Arc<TypeSchema>, String> {
    let schema = suite.provider.schema();
    schema.types.get(ty).cloned().ok_or_else(|| format!("there is no resource type `{ty}`"))
}

/// A nonce for the test: as long as a real one, and the same in every run.
fn nonce(ty: &Name, index: usize) -> Nonce {
    let mut bytes = [u8::try_from(index % 256).unwrap_or_default(); 16];
    for (byte, letter) in bytes.iter_mut().skip(1).zip(ty.bytes()) {
        *byte = letter;
    }
    Nonce::from_random(bytes)
}

/// The wanted attributes in the schema's types, with the defaults for what is left out.
fn completed(schema: &TypeSchema, wanted: Attributes) -> Result<Attributes, String> {
    let mut all = Attributes::new();
    for (name, value) in wanted {
        let Some(attribute) = schema.attributes.get(&name) else {
            return Err(format!("{} has no attribute `{name}`", schema.name));
        };
        let value = value.convert(&attribute.ty);
        let value = value.map_err(|misfit| format!("{}.{name}: {misfit}", schema.name))?;
        all.insert(name, value);
    }
    for (name, attribute) in &schema.attributes {
        if let (Some(default), false) = (&attribute.default, all.contains_key(name)) {
            all.insert(name.clone(), default.clone());
        }
    }
    Ok(all)
}

/// The object of a reply, once its attributes have the schema's types.
fn shown(schema: &TypeSchema, reply: Reply) -> Result<Option<Object>, String> {
    if let Some(object) = &reply.object {
        typed(schema, object)?;
    }
    Ok(reply.object)
}

fn typed(schema: &TypeSchema, object: &Object) -> Result<(), String> {
    for (name, value) in &object.attributes {
        let Some(attribute) = schema.attributes.get(name) else {
            return Err(format!("an answer shows `{name}`, which {} does not have", schema.name));
        };
        let converted = value.convert(&attribute.ty);
        let converted = converted.map_err(|misfit| format!("{}.{name}: {misfit}", schema.name))?;
        if converted != *value {
            return Err(format!("{}.{name} is not in the schema's type", schema.name));
        }
    }
    Ok(())
}

fn merge(known: &Object, new: &Object) -> Object {
    let mut attributes = known.attributes.clone();
    attributes.extend(new.attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
    Object { id: new.id.clone(), attributes }
}

fn complaint(suite: &Suite<'_>, call: &str, ty: &str, error: &Error) -> String {
    match safe(suite, error) {
        Ok(()) => format!("{call} of {ty} failed: {error} ({:?})", error.kind),
        Err(leak) => leak,
    }
}

/// No text of an error holds a secret.
fn safe(suite: &Suite<'_>, error: &Error) -> Result<(), String> {
    let texts = format!("{error} {error:?} {:?}", error.help);
    match suite.secrets.iter().find(|secret| texts.contains(secret.as_str())) {
        Some(_) => Err("an error shows a secret".to_owned()),
        None => Ok(()),
    }
}
