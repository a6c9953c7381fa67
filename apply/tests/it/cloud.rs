//! A provider over objects in memory, with names that need not be unique, and faults on request.
//!
//! It interprets its own schema: a create makes an object under its one-time name with what the
//! phase sends, later phases change it. What it was asked to do is kept, so tests can count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use engine::address::Name;
use engine::digest::Digest;
use engine::expression::parse::{Dialect, expression, template};
use engine::journal::ProgramKind;
use engine::schema::{
    Attribute, Constraint, Identity, OnChange, Operation, Phase, Presence, Program, ProviderSchema,
    ReplaceOrder, Rule, RuleOn, Sends, TypeSchema,
};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

/// What goes wrong with a mutating call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not happen, and the answer proves it.
    Refused,
    /// It does not happen, and nobody knows.
    LostBefore,
    /// It happens, and nobody knows.
    LostAfter,
}

#[derive(Default)]
pub struct Shared {
    pub objects: BTreeMap<(Name, ObjectId), Attributes>,
    /// Every mutating call that had an effect: `create disk`, `update unit`…
    pub log: Vec<String>,
    /// What goes wrong with the n-th mutating call from now, counted from 0.
    pub faults: BTreeMap<u64, Fault>,
    pub calls: u64,
    next_id: u64,
}

/// The cloud; clones are handles to one.
#[derive(Clone)]
pub struct Cloud {
    pub shared: Arc<Mutex<Shared>>,
    schema: Arc<ProviderSchema>,
}

impl Cloud {
    pub fn new() -> Self {
        let types = [disk(), unit(), image()];
        let types = types.into_iter().map(|ty| (ty.name.clone(), Arc::new(ty))).collect();
        let schema = ProviderSchema { name: "cloud".into(), digest: Digest::of(b"cloud"), types };
        Self { shared: Arc::default(), schema: Arc::new(schema) }
    }

    /// Makes an object as a stranger would.
    pub fn put(&self, ty: &str, attributes: &[(&str, Value)]) -> ObjectId {
        let mut shared = self.shared.lock().unwrap();
        let id = shared.new_id(ty);
        let mut attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        attributes.insert("id".into(), Value::String(id.0.clone()));
        shared.objects.insert((ty.into(), id.clone()), attributes);
        id
    }

    /// The names of all live objects of a type, sorted.
    pub fn names(&self, ty: &str) -> Vec<String> {
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

    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().log)
    }

    fn object(&self, ty: &str, id: &ObjectId, attributes: &Attributes) -> Object {
        let mut attributes = attributes.clone();
        engine::plan::live::derive(
            &self.schema.types[ty],
            &mut attributes,
            &mut engine::value::Paths::none(),
        );
        Object { id: id.clone(), attributes }
    }
}

impl Shared {
    fn new_id(&mut self, ty: &str) -> ObjectId {
        self.next_id += 1;
        ObjectId(format!("{ty}-{}", self.next_id).into())
    }

    fn effect(&mut self, schema: &TypeSchema, call: &Call<'_>) -> Result<Option<ObjectId>, Error> {
        let phase = call.phase;
        let programs = match phase.kind {
            ProgramKind::Create => &schema.create,
            ProgramKind::Update => &schema.update,
            ProgramKind::Delete => &schema.delete,
        };
        let sends = &programs[phase.program].phases[phase.phase].sends;
        self.log.push(format!(
            "{} {}",
            programs[phase.program].phases[phase.phase].operation.word(),
            call.ty
        ));
        if phase.kind == ProgramKind::Create && phase.phase == 0 {
            let id = self.new_id(call.ty);
            let mut attributes = sent(schema, sends, call);
            attributes.insert("id".into(), Value::String(id.0.clone()));
            attributes.insert("name".into(), Value::String(call.nonce.unwrap().0.clone()));
            self.objects.insert((call.ty.into(), id.clone()), attributes);
            return Ok(Some(id));
        }
        let id = call.id.unwrap();
        let key = (Name::from(call.ty), id.clone());
        if phase.kind == ProgramKind::Delete && phase.is_last() {
            return match self.objects.remove(&key) {
                Some(_) => Ok(None),
                None => Err(Error::new(Kind::NotFound, "no such object")),
            };
        }
        let own = self.objects.get_mut(&key);
        let own = own.ok_or_else(|| Error::new(Kind::NotFound, "no such object"))?;
        if phase.kind == ProgramKind::Delete {
            own.insert("workers".into(), Value::Integer(0));
        } else {
            own.extend(sent(schema, sends, call));
        }
        Ok(Some(id.clone()))
    }
}

fn sent(schema: &TypeSchema, sends: &Sends, call: &Call<'_>) -> Attributes {
    call.desired
        .iter()
        .filter(|(name, _)| schema.attributes[*name].presence != Presence::Computed)
        .filter(|(name, _)| match sends {
            Sends::Changed => call.changed.contains(*name),
            other => other.carries(name),
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[async_trait]
impl Provider for Cloud {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.schema.clone()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        let shared = self.shared.lock().unwrap();
        let own = shared.objects.iter().filter(|((own, _), _)| &**own == ty);
        Ok(own.map(|((_, id), attributes)| self.object(ty, id, attributes)).collect())
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        let shared = self.shared.lock().unwrap();
        match shared.objects.get(&(ty.into(), id.clone())) {
            Some(attributes) => Ok(self.object(ty, id, attributes)),
            None => Err(Error::new(Kind::NotFound, format!("{ty} {id} does not exist"))),
        }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        let all = self.list(ty).await?;
        Ok(all
            .into_iter()
            .filter(|object| create.nonce.is_in(object.attributes["name"].as_str().unwrap()))
            .collect())
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let mut shared = self.shared.lock().unwrap();
        let number = shared.calls;
        shared.calls += 1;
        let fault = shared.faults.remove(&number);
        match fault {
            Some(Fault::Refused) => return Err(Error::new(Kind::Rejected, "refused")),
            Some(Fault::LostBefore) => return Err(Error::new(Kind::InDoubt, "cut")),
            _ => {}
        }
        let done = shared.effect(&self.schema.types[call.ty], call);
        if fault == Some(Fault::LostAfter) {
            return Err(Error::new(Kind::InDoubt, "cut"));
        }
        let object = done?
            .map(|id| self.object(call.ty, &id, &shared.objects[&(call.ty.into(), id.clone())]));
        Ok(Reply { object })
    }
}

fn attribute(ty: &str, presence: Presence) -> Attribute {
    Attribute { presence, ..Attribute::new(ty.parse().unwrap()) }
}

fn phase(operation: Operation, sends: Sends) -> Phase {
    Phase { operation, sends, waits_for: None }
}

fn these(names: &[&str]) -> Sends {
    Sends::These(names.iter().map(|name| Name::from(*name)).collect::<BTreeSet<_>>())
}

fn program(phases: Vec<Phase>) -> Vec<Program> {
    vec![Program { when: None, phases }]
}

fn base(name: &str, attributes: Vec<(&str, Attribute)>) -> TypeSchema {
    let mut attributes: BTreeMap<Name, Attribute> =
        attributes.into_iter().map(|(name, attribute)| (name.into(), attribute)).collect();
    attributes.insert("id".into(), attribute("string", Presence::Computed));
    attributes.insert("name".into(), attribute("string", Presence::Required));
    TypeSchema {
        name: name.into(),
        description: String::new(),
        attributes,
        create: Vec::new(),
        update: program(vec![phase(Operation::Update, Sends::Changed)]),
        delete: program(vec![phase(Operation::Delete, Sends::Nothing)]),
        identity: Identity::OneTimeName { attribute: "name".into() },
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: Some("name".into()),
        delete_effect: None,
        rules: Vec::new(),
        remote: true,
    }
}

/// A disk grows only, and moving it loses its data.
fn disk() -> TypeSchema {
    let size = Attribute {
        constraint: Constraint { min: Some(0.0), max: Some(4000.0), ..Constraint::default() },
        unit: Some("GB".to_owned()),
        ..attribute("integer", Presence::Required)
    };
    let zone = Attribute {
        on_change: OnChange::Replace,
        data_loss: true,
        ..attribute("string", Presence::Required)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["size", "zone"])),
            phase(Operation::Activate, these(&["name"])),
        ]),
        delete_effect: Some("its data is lost".to_owned()),
        rules: vec![Rule {
            on: RuleOn::Update,
            assert: expression("new.size >= old.size", Dialect::Spec).unwrap(),
            message: template(
                "disk size must increase: it is ${old.size} GB and cannot become ${new.size} GB",
                Dialect::Spec,
            )
            .unwrap(),
            help: Some(template("keep ${old.size} or more", Dialect::Spec).unwrap()),
            attribute: None,
        }],
        ..base("disk", vec![("size", size), ("zone", zone)])
    }
}

/// A unit uses a disk and an image, is made without workers, and drains before it is deleted.
fn unit() -> TypeSchema {
    let workers =
        Attribute { default: Some(Value::Integer(0)), ..attribute("integer", Presence::Optional) };
    let secret = Attribute { sensitive: true, ..attribute("string", Presence::Optional) };
    let url = Attribute {
        derived: Some(template("http://cloud/${id}", Dialect::Names).unwrap()),
        ..attribute("string", Presence::Computed)
    };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["disk_id", "image_id"])),
            phase(Operation::Activate, Sends::All),
        ]),
        update: program(vec![phase(Operation::Update, Sends::All)]),
        delete: program(vec![
            phase(Operation::Drain, these(&["workers"])),
            phase(Operation::Delete, Sends::Nothing),
        ]),
        ..base(
            "unit",
            vec![
                ("disk_id", attribute("string", Presence::Optional)),
                ("image_id", attribute("string", Presence::Optional)),
                ("workers", workers),
                ("secret", secret),
                ("url", url),
            ],
        )
    }
}

/// An image has a unique name, and a change of kind makes another one before the old one goes.
fn image() -> TypeSchema {
    let kind =
        Attribute { on_change: OnChange::Replace, ..attribute("string", Presence::Optional) };
    TypeSchema {
        create: program(vec![
            phase(Operation::Create, these(&["kind"])),
            phase(Operation::Activate, these(&["name"])),
        ]),
        replace: ReplaceOrder::CreateFirst,
        unique_name: true,
        ..base("image", vec![("kind", kind)])
    }
}
