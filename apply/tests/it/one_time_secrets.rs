//! Secrets that an API shows once or in a read only, and secrets that an API wants again in a delete.

use std::sync::Arc;
use std::time::Duration;

use apply::session::Session;
use async_trait::async_trait;
use engine::address::Name;
use engine::journal::Record;
use engine::schema::{
    Attribute, Operation, Presence, Program, ProviderSchema, SeenIn, Sends, TypeSchema,
};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

use crate::cloud::Cloud;
use crate::world::{World, converges, holder};

/// The cloud with another type: a vault, for which the server draws a token and a host in the create.
pub(crate) struct Vaults {
    cloud: Cloud,
    schema: Arc<ProviderSchema>,
    /// The answers that show the token and the host.
    shows: Shows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Only the answer to the create shows the token and the host.
    Create,
    /// Only a read shows them.
    Read,
    /// No answer shows them.
    Nothing,
    /// Every answer shows them as null.
    Null,
}

pub(crate) fn vault() -> TypeSchema {
    let unit = crate::shapes::schema().types["unit"].clone();
    let mut ty = TypeSchema { name: "vault".into(), ..(*unit).clone() };
    let told =
        Attribute { presence: Presence::Computed, ..Attribute::new("string".parse().unwrap()) };
    let hidden =
        Attribute { seen_in: SeenIn::Never, sensitive: true, ..unit.attributes["secret"].clone() };
    ty.attributes.insert("host".into(), told.clone());
    ty.attributes.insert("token".into(), Attribute { sensitive: true, ..told });
    ty.attributes.insert("hidden".into(), hidden);
    let drain = crate::shapes::phase;
    ty.update =
        vec![Program { when: None, phases: vec![drain(Operation::Update, Sends::Changed)] }];
    ty.delete = vec![Program {
        when: None,
        phases: vec![drain(Operation::Drain, Sends::All), drain(Operation::Delete, Sends::Nothing)],
    }];
    ty
}

impl Vaults {
    fn beside(world: &mut World, shows: Shows) -> Arc<dyn Provider> {
        Self::with(world, shows, &[vault()])
    }

    /// Adds types to the cloud of a world, a vault among them, and returns the provider that has them.
    pub(crate) fn with(world: &mut World, shows: Shows, types: &[TypeSchema]) -> Arc<dyn Provider> {
        let mut schema = (*world.cloud.schema).clone();
        let types = types.iter().map(|ty| (ty.name.clone(), Arc::new(ty.clone())));
        schema.types.extend(types);
        world.cloud.schema = Arc::new(schema.clone());
        Arc::new(Self { cloud: world.cloud.clone(), schema: Arc::new(schema), shows })
    }

    fn shown(&self, mut object: Object, there: bool) -> Object {
        for name in ["token", "host"] {
            let drawn = match self.shows {
                Shows::Null => Value::Null,
                _ if there => Value::string(format!("{name} of {}", object.id)),
                _ => continue,
            };
            object.attributes.insert(name.into(), drawn);
        }
        object
    }
}

#[async_trait]
impl Provider for Vaults {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.schema.clone()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        let listed = self.cloud.list(ty).await?;
        if ty != "vault" {
            return Ok(listed);
        }
        Ok(listed.into_iter().map(|object| self.shown(object, false)).collect())
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        let object = self.cloud.read(ty, id).await?;
        if ty == "vault" { Ok(self.shown(object, self.shows == Shows::Read)) } else { Ok(object) }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.cloud.find(ty, create).await
    }

    /// Performs a call. The drain of a vault sends the whole vault, so a delete is rejected if it has a
    /// fingerprint in the place of a secret.
    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        if call.ty == "vault" && matches!(call.phase.kind, engine::journal::ProgramKind::Delete) {
            let live = call.live.into_iter().flat_map(Attributes::values);
            if live.chain(call.desired.values()).any(Value::holds_sealed) {
                return Err(Error::new(Kind::Rejected, "it is a fingerprint"));
            }
            let secret = call.desired.get("secret").and_then(Value::as_str);
            let mut shared = self.cloud.shared.lock().unwrap();
            shared.log.push(format!("{secret:?}"));
        }
        let mut reply = self.cloud.perform(call).await?;
        if call.ty == "vault" {
            let there = self.shows == Shows::Create && call.phase.makes();
            reply.object = reply.object.map(|object| self.shown(object, there));
        }
        Ok(reply)
    }
}

async fn apply(world: &World, provider: &Arc<dyn Provider>, spec: &str) -> Vec<String> {
    let providers = world.providers_with(provider.clone());
    let options = engine::plan::input::Options::default();
    let report = world.apply_through(&world.store, &providers, spec, &options).await.unwrap();
    report.failures.into_iter().map(|failure| failure.message).collect()
}

pub(crate) fn attribute(world: &World, ty: &str, name: &str) -> Option<Value> {
    let shared = world.cloud.shared.lock().unwrap();
    let found = shared.objects.iter().find(|((own, _), _)| &**own == ty);
    found.and_then(|(_, object)| object.get(&Name::from(name)).cloned())
}

const VAULT: &str = "[variable.pw]\ntype = \"string\"\nsensitive = true\n\
     [resource.vault.v]\nname = \"v\"\nsecret = \"${var.pw}\"\nhidden = \"${var.pw}\"\n";

/// The answer to the activation does not show the token. The run still has it from the create, or reads it.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_shown_once_is_there_for_the_whole_run() {
    for shows in [Shows::Create, Shows::Read] {
        let mut world = World::new();
        let provider = Vaults::beside(&mut world, shows);
        let spec = "[resource.vault.v]\nname = \"v\"\n\
                    [resource.unit.u]\nname = \"u\"\nsecret = \"${vault.v.token}\"\n";
        assert_eq!(apply(&world, &provider, spec).await, [""; 0]);
        let token = Value::string("token of vault-1");
        assert_eq!(attribute(&world, "unit", "secret"), Some(token), "{shows:?}");
    }
}

/// The plan says that an attribute is known after apply, and no answer shows it. The step that needs it
/// fails, and does not send null.
#[tokio::test(start_paused = true)]
async fn what_no_answer_shows_is_not_null() {
    let spec = "[resource.vault.v]\nname = \"v\"\n\
                [resource.unit.u]\nname = \"u\"\nimage_id = \"${vault.v.host}\"\n";
    for (shows, failures, image) in [
        (Shows::Create, 0, Some(Value::string("host of vault-1"))),
        (Shows::Read, 0, Some(Value::string("host of vault-1"))),
        (Shows::Null, 0, Some(Value::Null)),
        (Shows::Nothing, 1, None),
    ] {
        let mut world = World::new();
        let provider = Vaults::beside(&mut world, shows);
        let failed = apply(&world, &provider, spec).await;
        assert_eq!(failed.len(), failures, "{shows:?}: {failed:?}");
        assert_eq!(attribute(&world, "unit", "image_id"), image, "{shows:?}");
    }
}

/// An output of an attribute that no answer shows is null, and the run does not fail.
#[tokio::test(start_paused = true)]
async fn an_output_of_what_no_answer_shows_is_null() {
    let mut world = World::new();
    let provider = Vaults::beside(&mut world, Shows::Nothing);
    let spec = "[resource.vault.v]\nname = \"v\"\n\
                [output.host]\nvalue = \"${vault.v.host}\"\n[output.name]\nvalue = \"${vault.v.name}\"\n";
    assert_eq!(apply(&world, &provider, spec).await, [""; 0]);
    let outputs = world.report.lock().unwrap().outputs.clone();
    let names: Vec<_> = outputs.iter().map(|(name, (value, _))| (&**name, value)).collect();
    assert_eq!(names, [("host", &Value::Null), ("name", &Value::string("v"))]);
}

/// The state has only fingerprints of the secrets that a drain sends. The run drains and deletes the vault
/// all the same.
#[tokio::test(start_paused = true)]
async fn what_has_secrets_is_drained_and_deleted() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());
    let provider = Vaults::beside(&mut world, Shows::Nothing);
    assert_eq!(apply(&world, &provider, VAULT).await, [""; 0]);
    world.cloud.take_log();
    let rest = "[variable.pw]\ntype = \"string\"\nsensitive = true\n";
    assert_eq!(apply(&world, &provider, rest).await, [""; 0]);
    let log = world.cloud.take_log();
    assert_eq!(log, ["Some(\"hunter2\")", "drain vault", "None", "delete vault"]);
    let state = serde_json::to_string(&world.state().await).unwrap();
    assert!(!state.contains("hunter2"), "{state}");
}

/// Nobody knows the value of an attribute that a drain left out. If the vault stays after all, an update
/// sends the attribute again.
#[tokio::test(start_paused = true)]
async fn what_a_drain_left_out_is_sent_again() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());
    let provider = Vaults::beside(&mut world, Shows::Nothing);
    assert_eq!(apply(&world, &provider, VAULT).await, [""; 0]);
    world.cloud.strike(1, crate::cloud::Fault::Refused);
    let rest = "[variable.pw]\ntype = \"string\"\nsensitive = true\n";
    assert_eq!(apply(&world, &provider, rest).await, ["refused: in the words of the server"]);
    let text = world.plan_text(VAULT).await;
    assert!(text.contains("update vault.v [hidden"), "{text}");
    converges(&world, VAULT).await;
}

/// Returns the changes of a plan, a line for each.
async fn planned(world: &World, spec: &str) -> Vec<String> {
    let (plan, ..) = world.plan(spec).await;
    let changes = plan.changes.iter().filter(|it| it.action != engine::plan::Action::NoOp);
    let changes = changes.map(|it| {
        let causes: Vec<&str> = it.causes.iter().map(|cause| &*cause.attribute).collect();
        format!("{:?} {} {}", it.action, it.address, causes.join(" ")).trim_end().to_lowercase()
    });
    changes.collect()
}

/// Moves an object to another address, as `plumb state mv` does.
async fn move_to(world: &World, from: &str, to: &str) {
    let opened = Session::open(&world.store, &holder(), Duration::ZERO, &world.host, None).await;
    let mut session = opened.unwrap();
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    session.record(Record::Moved { from, to }).unwrap();
    session.close().await.unwrap();
}

/// Only the run that made the vault knows a text that contains its token. Later plans take the text for
/// unchanged while the values that it is made of, and its expression, stay the same.
#[tokio::test(start_paused = true)]
async fn what_is_made_of_a_token_is_as_it_was_while_what_it_is_made_of_is() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());
    let provider = Vaults::beside(&mut world, Shows::Create);
    let spec = "[variable.pw]\ntype = \"string\"\nsensitive = true\n\
        [local]\nurl = \"//${vault.v.name}:${vault.v.token}@${vault.v.host}/${var.pw}\"\n\
        [resource.vault.v]\nname = \"v\"\n\
        [resource.unit.u]\nname = \"u\"\nsecret = \"${upper(local.url)}\"\nworkers = 1\n\
        [resource.vault.w]\nname = \"w\"\nhidden = \"x${vault.v.token}\"\n";
    assert_eq!(apply(&world, &provider, spec).await, [""; 0]);
    let made = Value::string("//V:TOKEN OF VAULT-1@HOST OF VAULT-1/HUNTER2");
    assert_eq!(attribute(&world, "unit", "secret"), Some(made.clone()));
    assert_eq!(planned(&world, spec).await, [""; 0]);
    let state = serde_json::to_string(&world.state().await).unwrap();
    assert!(!state.to_lowercase().contains("token of"), "{state}");

    // Another address of the vault does not change the text.
    move_to(&world, "vault.v", "vault.other").await;
    assert_eq!(planned(&world, &spec.replace("vault.v", "vault.other")).await, [""; 0]);
    move_to(&world, "vault.other", "vault.v").await;

    // An update that sends only what changes does not need the text; an update that sends all does.
    let more = spec.replace("name = \"w\"", "name = \"w\"\nworkers = 2");
    assert_eq!(planned(&world, &more).await, ["update vault.w workers"]);
    assert_eq!(apply(&world, &provider, &more).await, [""; 0]);
    assert_eq!(planned(&world, &more).await, [""; 0]);
    assert_eq!(
        apply(&world, &provider, &spec.replace("\"w\"", "\"w\"\nworkers = 0")).await,
        [""; 0]
    );
    let whole = spec.replace("workers = 1", "workers = 2");
    let (_, refused, _) = world.plan(&whole).await;
    assert!(
        format!("{refused:?}").contains("the value of `vault.v.token` is not available"),
        "{refused:?}"
    );

    // The text changes if one of its values or its expression does.
    for (from, to) in [("/${var.pw}", "/"), ("upper", "lower"), ("//", "/")] {
        let other = spec.replace(from, to);
        assert_eq!(planned(&world, &other).await, ["update unit.u secret"], "{to}");
    }
    world.variables.insert("pw".to_owned(), "hunter3".to_owned());
    assert_eq!(planned(&world, spec).await, ["update unit.u secret"]);
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());

    // Somebody gave the unit another secret.
    let change = |to: Value| {
        let mut shared = world.cloud.shared.lock().unwrap();
        let (_, unit) = shared.objects.iter_mut().find(|((ty, _), _)| &**ty == "unit").unwrap();
        unit.insert("secret".into(), to);
    };
    change(Value::string("other"));
    assert_eq!(planned(&world, spec).await, ["update unit.u secret"]);
    change(made);
    assert_eq!(planned(&world, spec).await, [""; 0]);
}
