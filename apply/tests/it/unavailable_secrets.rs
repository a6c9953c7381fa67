//! Secrets that an API shows once, and objects that are made of them, changed or replaced once nobody has
//! the secret any more.

use std::sync::Arc;

use engine::plan::input::Options;
use engine::schema::{Attribute, OnChange, Presence, SeenIn, TypeSchema};
use engine::value::Value;
use provider_port::Provider;

use crate::cloud::Fault;
use crate::one_time_secrets::{Shows, Vaults, attribute, vault};
use crate::world::{World, show};

/// Returns the type `app`: it has an optional password that no answer shows, and an update sends only what
/// changes.
fn app() -> TypeSchema {
    let login = crate::shapes::schema().types["login"].clone();
    let mut ty = TypeSchema { name: "app".into(), ..(*login).clone() };
    let text = || Attribute::new("string".parse().unwrap());
    let kind = Attribute { on_change: OnChange::Replace, ..text() };
    let password = ty.attributes.get_mut("password").unwrap();
    password.presence = Presence::Optional;
    ty.attributes.insert("note".into(), text());
    ty.attributes.insert("kind".into(), kind);
    ty
}

struct Run {
    world: World,
    provider: Arc<dyn Provider>,
}

impl Run {
    fn new(shows: Shows) -> Self {
        Self::of(shows, vault())
    }

    fn of(shows: Shows, vault: TypeSchema) -> Self {
        let mut world = World::new();
        let provider = Vaults::with(&mut world, shows, &[vault, app()]);
        Self { world, provider }
    }

    async fn apply_with(&self, spec: &str, options: &Options) -> Vec<String> {
        let providers = self.world.providers_with(self.provider.clone());
        let world = &self.world;
        let report = world.apply_through(&world.store, &providers, spec, options).await.unwrap();
        report.failures.into_iter().map(|failure| failure.message).collect()
    }

    async fn apply(&self, spec: &str) -> Vec<String> {
        self.apply_with(spec, &Options::default()).await
    }

    /// Returns a plan as text: its changes, its steps and its diagnostics.
    async fn plan(&self, spec: &str) -> String {
        let providers = self.world.providers_with(self.provider.clone());
        let options = Options::default();
        let (plan, said, sources) = self.world.plan_through(&providers, spec, &options).await;
        show(&plan, &said, &sources)
    }

    fn password(&self) -> Option<Value> {
        attribute(&self.world, "app", "password")
    }
}

fn replacing_the_vault() -> Options {
    Options { replace: vec!["vault.v".parse().unwrap()], ..Options::default() }
}

const SPEC: &str = "[resource.vault.v]\nname = \"v\"\n\
     [resource.app.w]\nname = \"w\"\npassword = \"${vault.v.token}\"\n";

const NOBODY: &str = "error:5: the value of `vault.v.token` is not available, and `password` cannot be sent without it\n";

/// The answer with the token was lost, so the app is not made. The next plan says that the token is not
/// available, and does not leave the password out; a replace of the vault is a way out.
#[tokio::test(start_paused = true)]
async fn what_no_answer_has_shown_is_not_left_out_by_the_next_plan() {
    let run = Run::new(Shows::Create);
    run.world.cloud.strike(0, Fault::LostAfter);
    assert_eq!(run.apply(SPEC).await.len(), 1);
    let with_output =
        format!("{SPEC}[output.t]\nsensitive = true\nvalue = \"${{vault.v.token}}\"\n");
    let text = run.plan(&with_output).await;
    assert!(text.ends_with(NOBODY), "{text}");
    assert!(run.world.cloud.names("app").is_empty());
    assert_eq!(run.apply_with(&with_output, &replacing_the_vault()).await, [""; 0]);
    assert_eq!(run.password(), Some(Value::string("token of vault-2")));
    assert_eq!(run.plan(&with_output).await, "");
}

/// The plan says that the token is not available, also if the password uses it through a local or in another
/// expression.
#[tokio::test(start_paused = true)]
async fn what_is_made_of_what_nobody_has_is_not_left_out() {
    for value in ["${local.t}", "p-${vault.v.token}", "${var.yes ? local.t : null}"] {
        let run = Run::new(Shows::Create);
        run.world.cloud.strike(0, Fault::LostAfter);
        let spec = SPEC.replace("${vault.v.token}", value);
        let spec = format!(
            "{spec}[local]\nt = \"${{vault.v.token}}\"\n\
             [variable.yes]\ntype = \"boolean\"\ndefault = true\n"
        );
        assert_eq!(run.apply(&spec).await.len(), 1, "{value}");
        let text = run.plan(&spec).await;
        assert!(text.ends_with(NOBODY), "{value}: {text}");
        let spec = spec.replace("default = true", "default = false");
        let text = run.plan(&spec).await;
        assert_eq!(text.contains("error"), !value.contains('?'), "{value}: {text}");
    }
}

/// An output uses a token that no answer shows. One run settles the output: the plan after it is empty.
#[tokio::test(start_paused = true)]
async fn an_output_of_what_nobody_has_settles() {
    let run = Run::new(Shows::Nothing);
    let spec = "[resource.vault.v]\nname = \"v\"\n\
                [output.t]\nsensitive = true\nvalue = \"${vault.v.token}\"\n";
    assert_eq!(run.apply(spec).await, [""; 0]);
    assert_eq!(run.plan(spec).await, "");
}

/// The schema says that no answer shows the token, so the first plan says that it is not available.
#[tokio::test(start_paused = true)]
async fn what_is_never_shown_is_no_source() {
    let mut vault = vault();
    vault.attributes.get_mut("token").unwrap().seen_in = SeenIn::Never;
    let run = Run::of(Shows::Nothing, vault);
    let text = run.plan(SPEC).await;
    assert!(text.ends_with(NOBODY), "{text}");
}

/// An update of another attribute does not need the secret, and leaves it alone.
#[tokio::test(start_paused = true)]
async fn what_has_a_secret_that_was_shown_once_can_be_changed() {
    let run = Run::new(Shows::Create);
    assert_eq!(run.apply(SPEC).await, [""; 0]);
    run.world.cloud.take_log();
    let noted = format!("{SPEC}note = \"n\"\n");
    assert_eq!(run.apply(&noted).await, [""; 0]);
    assert_eq!(run.world.cloud.take_log(), ["update app"]);
    assert_eq!(attribute(&run.world, "app", "note"), Some(Value::string("n")));
    assert_eq!(run.password(), Some(Value::string("token of vault-1")));
    assert_eq!(run.plan(&noted).await, "");
}

/// The first call of a create has sent the secret. The rest of the create, in the next run, does not need it.
#[tokio::test(start_paused = true)]
async fn what_was_made_with_a_secret_that_was_shown_once_gets_its_name_later() {
    let run = Run::new(Shows::Create);
    run.world.cloud.strike(3, Fault::Refused);
    assert_eq!(run.apply(SPEC).await.len(), 1);
    assert_eq!(run.apply(SPEC).await, [""; 0]);
    assert_eq!(run.world.cloud.names("app"), ["w"]);
    assert_eq!(run.plan(SPEC).await, "");
}

/// A replace is refused while the secret is not available. The old app is not deleted, because the new one
/// could not be made.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_again_is_not_replaced() {
    let mut run = Run::new(Shows::Create);
    assert_eq!(run.apply(SPEC).await, [""; 0]);
    let other = format!("{SPEC}kind = \"other\"\n");
    let text = run.plan(&other).await;
    assert!(text.ends_with(NOBODY), "{text}");
    // A run without a refresh learns that the token is missing before it deletes.
    run.world.looks = false;
    let said = run.apply(&other).await;
    let fingerprint = "`password` of the new object is not known: \
                       of `vault.v.token` only the fingerprint is known";
    assert_eq!(said, [fingerprint]);
    // An update of the vault does not show the token again.
    let more = other.replace("name = \"v\"", "name = \"v\"\nworkers = 2");
    assert_eq!(run.apply(&more).await, [fingerprint]);
    assert_eq!(run.world.cloud.names("app"), ["w"]);
    run.world.looks = true;
    assert_eq!(run.apply_with(&other, &replacing_the_vault()).await, [""; 0]);
    assert_eq!(run.password(), Some(Value::string("token of vault-3")));
}

/// A call that sends the whole unit needs the secret. A read may show the secret where a list does not.
#[tokio::test(start_paused = true)]
async fn a_whole_object_is_sent_with_its_secrets_or_not_at_all() {
    let spec = "[resource.vault.v]\nname = \"v\"\n\
                [resource.unit.u]\nname = \"u\"\nsecret = \"${vault.v.token}\"\n";
    for (shows, is_shown) in [(Shows::Create, false), (Shows::Read, true)] {
        let run = Run::new(shows);
        assert_eq!(run.apply(spec).await, [""; 0]);
        let changed = format!("{spec}image_id = \"i\"\n");
        let text = run.plan(&changed).await;
        assert_eq!(text.contains("error:"), !is_shown, "{shows:?}: {text}");
        if is_shown {
            assert_eq!(run.apply(&changed).await, [""; 0]);
            assert_eq!(run.plan(&changed).await, "");
        }
    }
}

/// The create of an app was refused in the run that had the token. No later plan makes the app without it.
#[tokio::test(start_paused = true)]
async fn what_was_refused_while_the_secret_was_known_is_no_plan() {
    let run = Run::new(Shows::Create);
    run.world.cloud.strike(2, Fault::Refused);
    assert_eq!(run.apply(SPEC).await.len(), 1);
    let text = run.plan(SPEC).await;
    assert!(text.ends_with(NOBODY), "{text}");
    assert_eq!(run.apply_with(SPEC, &replacing_the_vault()).await, [""; 0]);
    assert_eq!(run.plan(SPEC).await, "");
}

/// No answer shows the token of an imported vault, so the plan says that it is not available.
#[tokio::test(start_paused = true)]
async fn what_is_taken_over_has_no_secret_to_give() {
    let run = Run::new(Shows::Create);
    let named = [("name", Value::string("v")), ("workers", Value::Integer(0))];
    let id = run.world.cloud.put("vault", &named);
    let spec = format!("{SPEC}[[import]]\nto = \"vault.v\"\nid = \"{id}\"\n");
    let text = run.plan(&spec).await;
    assert!(text.ends_with(NOBODY), "{text}");
}
