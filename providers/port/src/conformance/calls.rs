//! The calls of the suite, and the checks of their answers.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::expression::Root;
use engine::expression::evaluate::{self, Scope};
use engine::journal::{PhaseRef, ProgramKind};
use engine::schema::{Identity, Program, SeenIn, TypeSchema};
use engine::state::{Nonce, ObjectId};
use engine::value::{Attributes, Datum, Value};

use super::{Fixture, Suite};
use crate::{Call, Error, Kind, Lookup, Object, Provider, Reply};

pub(super) async fn create(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    desired: &Attributes,
    nonce: &Nonce,
    made: &mut Option<Object>,
) -> Result<(), Failure> {
    let none = Attributes::new();
    let changed = desired.keys().cloned().collect();
    let about = Change { desired, live: &none, changed: &changed };
    let step = Step { kind: ProgramKind::Create, id: None, nonce: Some(nonce) };
    let object = match program(suite, schema, &step, &about, made).await? {
        Some(object) => object,
        None => unanswered(suite, schema, desired, nonce).await?,
    };
    suite.witness.made(&schema.name, &object)?;
    *made = Some(object);
    Ok(())
}

/// Returns the object of a create whose answer shows none.
async fn unanswered(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    desired: &Attributes,
    nonce: &Nonce,
) -> Result<Object, String> {
    let lookup = Lookup { nonce, desired: Some(desired) };
    let found = suite.provider.find(&schema.name, &lookup).await;
    let mut found = found.map_err(|error| complaint(suite, "find", &schema.name, &error))?;
    match (found.pop(), found.is_empty()) {
        (Some(object), true) => Ok(object),
        (None, _) => Err(format!("create of {} made nothing that can be found", schema.name)),
        (Some(_), false) => Err(format!("find of {} shows several", schema.name)),
    }
}

/// The call that a program is performed with.
pub(super) struct Step<'a> {
    pub(super) kind: ProgramKind,
    pub(super) id: Option<&'a ObjectId>,
    pub(super) nonce: Option<&'a Nonce>,
}

/// The wanted object, the live one, and the attributes in which they differ.
pub(super) struct Change<'a> {
    pub(super) desired: &'a Attributes,
    pub(super) live: &'a Attributes,
    pub(super) changed: &'a BTreeSet<Name>,
}

/// The reason that a program did not end as it should.
pub(super) struct Failure {
    pub(super) words: String,
    /// True if the API refused the call, and nothing happened.
    pub(super) is_refusal: bool,
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self { words, is_refusal: false }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.words
    }
}

/// Performs all phases of the program that applies. After the first phase of a create, the nonce must find
/// the object. `made` is the object that a create has made so far.
pub(super) async fn program(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    step: &Step<'_>,
    change: &Change<'_>,
    made: &mut Option<Object>,
) -> Result<Option<Object>, Failure> {
    let Change { desired, live, changed } = *change;
    let programs = schema.programs(step.kind);
    let judged = match step.kind {
        ProgramKind::Create => Judged { attributes: desired, old: None },
        ProgramKind::Update => Judged { attributes: desired, old: Some(live) },
        ProgramKind::Delete => Judged { attributes: live, old: Some(live) },
    };
    let index = choose(programs, &judged).ok_or_else(|| {
        format!("{} of {} has no program that applies", of_phase(step.kind, 0, 1), schema.name)
    })?;
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
        let is_refused = |error: &Error| phase == 0 && error.kind.made_nothing();
        if step.kind == ProgramKind::Create && reply.as_ref().is_err_and(is_refused) {
            suite.witness.refused(&schema.name)?;
        }
        let reply = reply.map_err(|error| Failure {
            words: complaint(suite, &of_phase(step.kind, phase, phases), &schema.name, &error),
            is_refusal: error.kind == Kind::Rejected,
        })?;
        let known = object.take();
        object = shown(schema, reply)?.map(|new| match known {
            Some(known) => merge(&known, &new),
            None => new,
        });
        if let (ProgramKind::Create, 0, Some(nonce), Some(object)) =
            (step.kind, phase, step.nonce, &object)
        {
            suite.witness.made(&schema.name, object)?;
            *made = Some(object.clone());
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

/// The scope of a `when`: the attributes of one object by name, null for a missing one, and `old`.
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

/// Checks that the nonce finds the object after the create's first phase, and only that object.
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

/// Lists and reads the object; both answers must show the wanted values in the schema's types.
pub(super) async fn observe(
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

/// Deletes the object, and checks that neither a read nor a list shows it.
pub(super) async fn end(
    suite: &Suite<'_>,
    fixture: &Fixture,
    object: &Object,
) -> Result<(), String> {
    let schema = type_schema(suite, &fixture.ty)?;
    let left = delete(suite, &schema, object).await?;
    if left.is_some() {
        return Err(format!("delete of {} answered an object", schema.name));
    }
    if !schema.remote {
        return suite.witness.gone(&schema.name, &object.id);
    }
    match suite.provider.read(&schema.name, &object.id).await {
        Err(error) if error.kind == Kind::NotFound => safe(suite, &error)?,
        other => {
            return Err(other_end(suite, &format!("read of a deleted {}", schema.name), other));
        }
    }
    let listed = suite.provider.list(&schema.name).await;
    let listed = listed.map_err(|error| complaint(suite, "list", &schema.name, &error))?;
    if listed.iter().any(|listed| listed.id == object.id) {
        return Err(format!("list shows a deleted {}", schema.name));
    }
    suite.witness.gone(&schema.name, &object.id)?;
    again(suite, &schema, &object.id, &object.attributes).await
}

pub(super) async fn delete(
    suite: &Suite<'_>,
    schema: &TypeSchema,
    object: &Object,
) -> Result<Option<Object>, String> {
    let (none, changed) = (Attributes::new(), BTreeSet::new());
    let about = Change { desired: &none, live: &object.attributes, changed: &changed };
    let step = Step { kind: ProgramKind::Delete, id: Some(&object.id), nonce: None };
    Ok(program(suite, schema, &step, &about, &mut None).await?)
}

/// Deletes an object that an earlier run made. Does nothing if it is gone.
pub async fn clean_up(provider: &dyn Provider, ty: &Name, id: &ObjectId) -> Result<(), String> {
    let suite = Suite::new(provider);
    let schema = type_schema(&suite, ty)?;
    match provider.read(ty, id).await {
        Err(error) if error.kind == Kind::NotFound => Ok(()),
        Err(error) => Err(format!("read of {ty} failed: {error}")),
        Ok(object) => delete(&suite, &schema, &object).await.map(|_| ()),
    }
}

/// Checks that a second delete is an error of kind `NotFound`. The caller decides if that is believed.
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
        other => Err(other_end(suite, &format!("a second delete of {}", schema.name), other)),
    }
}

/// Checks that a missing object is not found, and that a wrong key is recognised. In an id of several parts,
/// only the last part is changed.
pub(super) async fn refusals(
    suite: &Suite<'_>,
    fixture: &Fixture,
    made: Option<&Object>,
) -> Result<(), String> {
    let schema = type_schema(suite, &fixture.ty)?;
    let parts = made.and_then(|object| object.id.0.rsplit_once('|'));
    let above = parts.map_or(String::new(), |(above, _)| format!("{above}|"));
    let unknown = ObjectId(format!("{above}nobody-has-this-id").into());
    match suite.provider.read(&schema.name, &unknown).await {
        Err(error) if error.kind == Kind::NotFound => safe(suite, &error)?,
        other => {
            return Err(other_end(suite, &format!("read of an unknown {}", schema.name), other));
        }
    }
    let Some(stranger) = suite.wrong_key else { return Ok(()) };
    match stranger.list(&schema.name).await {
        Err(error) if error.kind == Kind::Unauthenticated => safe(suite, &error),
        other => Err(other_end(suite, &format!("list of {} with a wrong key", schema.name), other)),
    }
}

pub(super) fn type_schema(
    suite: &Suite<'_>,
    ty: &Name,
) -> Result<std::sync::Arc<TypeSchema>, String> {
    let schema = suite.provider.schema();
    schema.types.get(ty).cloned().ok_or_else(|| format!("there is no resource type `{ty}`"))
}

/// Returns a nonce for the test: as long as a real one, and the same in every run with this seed.
pub(super) fn nonce(suite: &Suite<'_>, ty: &Name, index: usize) -> Nonce {
    let mut bytes = [u8::try_from(index % 256).unwrap_or_default(); 16];
    for (byte, letter) in bytes.iter_mut().skip(1).zip(suite.seed.into_iter().chain(ty.bytes())) {
        *byte = letter;
    }
    Nonce::from_random(bytes)
}

/// Returns the wanted attributes in the schema's types, with defaults for missing ones.
pub(super) fn completed(schema: &TypeSchema, wanted: Attributes) -> Result<Attributes, String> {
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
    let derived = schema.attributes.iter().filter_map(|(name, attribute)| {
        let derived = attribute.derived.as_ref()?;
        Some((name.clone(), evaluate::evaluate(derived, &Given(&all)).ok()?.value))
    });
    let derived: Vec<_> = derived.collect();
    all.extend(derived);
    Ok(all)
}

/// A scope of attributes by name; a missing one is null.
struct Given<'a>(&'a Attributes);

impl Scope for Given<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let value = if let Root::Named(name) = root { self.0.get(name) } else { None };
        value.map(|value| value.clone().into()).ok_or_else(|| format!("{root:?} is not given"))
    }

    fn resource(&self, block: &engine::address::Block, _: Option<&str>) -> Result<Datum, String> {
        Err(format!("{block} means nothing here"))
    }
}

/// Returns the object of a reply, after checking that its attributes have the schema's types.
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

pub(super) fn merge(known: &Object, new: &Object) -> Object {
    let mut attributes = known.attributes.clone();
    attributes.extend(new.attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
    Object { id: new.id.clone(), attributes }
}

fn complaint(suite: &Suite<'_>, call: &str, ty: &str, error: &Error) -> String {
    match safe(suite, error) {
        Ok(()) => format!("{call} of {ty} failed: {error} ({})", error.kind.words()),
        Err(leak) => leak,
    }
}

/// Returns the complaint about a call that did not fail in the way that it should have.
fn other_end<T>(suite: &Suite<'_>, call: &str, end: Result<T, Error>) -> String {
    let Err(error) = end else { return format!("{call} did not fail") };
    match safe(suite, &error) {
        Ok(()) => format!("{call} failed otherwise: {error} ({})", error.kind.words()),
        Err(leak) => leak,
    }
}

/// Returns the name of a phase, such as `phase 2 of create`; of a single phase, that of its program.
fn of_phase(kind: ProgramKind, phase: usize, phases: usize) -> String {
    let word = match kind {
        ProgramKind::Create => "create",
        ProgramKind::Update => "update",
        ProgramKind::Delete => "delete",
    };
    if phases > 1 { format!("phase {} of {word}", phase + 1) } else { word.to_owned() }
}

/// Checks that no text of an error contains a secret.
fn safe(suite: &Suite<'_>, error: &Error) -> Result<(), String> {
    let texts = format!("{error} {error:?} {:?}", error.help);
    match suite.secrets.iter().find(|secret| texts.contains(secret.as_str())) {
        Some(_) => Err("an error shows a secret".to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_words() {
        assert_eq!(of_phase(ProgramKind::Create, 0, 1), "create");
        assert_eq!(of_phase(ProgramKind::Update, 1, 2), "phase 2 of update");
    }
}
