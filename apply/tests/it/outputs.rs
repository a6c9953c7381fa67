//! Outputs of secrets: what the state keeps of them, whichever run made the objects.

use std::sync::Arc;

use engine::plan::input::{Options, Target};
use engine::plan::{Action, Plan};
use engine::value::Value;
use provider_port::Provider;

use crate::once::{Shows, Vaults, vault};
use crate::world::World;

/// A secret that users give, and one that an API shows once.
const SPEC: &str = r#"
[variable.word]
type = "string"
sensitive = true

[resource.value.x]
input = { word = "${var.word}", n = 1 }

[resource.vault.v]
name = "v"
"#;

struct Run {
    world: World,
    provider: Arc<dyn Provider>,
}

impl Run {
    fn new() -> Self {
        let mut world = World::new();
        world.variables.insert("word".to_owned(), "hunter2".to_owned());
        let provider = Vaults::with(&mut world, Shows::Create, &[vault()]);
        Self { world, provider }
    }

    async fn apply(&self, spec: &str, options: &Options) {
        let providers = self.world.providers_with(self.provider.clone());
        let world = &self.world;
        let report = world.apply_through(&world.store, &providers, spec, options).await.unwrap();
        assert!(report.failures.is_empty(), "{:?}", report.failures);
    }

    async fn plan(&self, spec: &str) -> Plan {
        let providers = self.world.providers_with(self.provider.clone());
        self.world.plan_through(&providers, spec, &Options::default()).await.0
    }

    /// What the state has of the only output.
    async fn kept(&self) -> Value {
        self.world.state().await.outputs["o"].value.value().unwrap()
    }

    /// What a plan does about the only output.
    async fn action(&self, spec: &str) -> Action {
        self.plan(spec).await.outputs["o"].action
    }
}

fn with_output(value: &str) -> String {
    format!("{SPEC}[output.o]\nvalue = '{value}'\nsensitive = true\n")
}

/// The plan after an apply is empty, whether the output came with its object or later, and the state
/// keeps a fingerprint.
#[tokio::test(start_paused = true)]
async fn an_output_of_a_secret_settles_at_once() {
    for value in [
        "${value.x.output.word}",
        "${value.x.output}",
        "p-${value.x.output.word}",
        "${vault.v.token}",
        "p-${vault.v.token}",
        "${{ a = \"p-${vault.v.token}\", b = vault.v.id }}",
        "${{ a = vault.v.token, b = vault.v.id }}",
        "${vault.v}",
    ] {
        let spec = with_output(value);
        for is_first in [true, false] {
            let run = Run::new();
            if !is_first {
                run.apply(SPEC, &Options::default()).await;
                assert_eq!(run.action(&spec).await, Action::Create, "{value}");
            }
            run.apply(&spec, &Options::default()).await;
            assert!(run.kept().await.holds_sealed(), "{value} {is_first}");
            assert_eq!(run.action(&spec).await, Action::NoOp, "{value} {is_first}");
        }
    }
}

/// One that stays needs nothing at apply that would have to stand in a plan file.
#[tokio::test(start_paused = true)]
async fn an_output_that_stays_holds_nothing() {
    let run = Run::new();
    let spec = with_output("${{ a = \"word\", b = sensitive(vault.v.id) }}");
    assert!(run.plan(&spec).await.outputs["o"].secret.is_some());
    run.apply(&spec, &Options::default()).await;
    let kept = run.kept().await;
    let plan = run.plan(&spec).await;
    assert_eq!((plan.outputs["o"].action, &plan.outputs["o"].secret), (Action::NoOp, &None));
    run.apply(&spec, &Options::default()).await;
    assert!(kept.same(&run.kept().await));
}

/// What was open before is not kept in the place of a secret.
#[tokio::test(start_paused = true)]
async fn an_output_that_becomes_a_text_around_a_secret_is_sealed() {
    let run = Run::new();
    let open = with_output("open");
    run.apply(open.trim_end_matches("sensitive = true\n"), &Options::default()).await;
    assert_eq!(run.kept().await, Value::string("open"));
    let spec = with_output("p-${vault.v.token}");
    assert_eq!(run.action(&spec).await, Action::Update);
    run.apply(&spec, &Options::default()).await;
    assert!(run.kept().await.holds_sealed());
    assert_eq!(run.action(&spec).await, Action::NoOp);
}

/// A run that draws the secret anew knows what is made of it.
#[tokio::test(start_paused = true)]
async fn a_text_around_a_secret_changes_with_it() {
    let run = Run::new();
    let spec = with_output("p-${vault.v.token}");
    run.apply(&spec, &Options::default()).await;
    let before = run.kept().await;
    let anew = Options { replace: vec!["vault.v".parse().unwrap()], ..Options::default() };
    run.apply(&spec, &anew).await;
    assert!(!before.same(&run.kept().await));
    assert_eq!(run.action(&spec).await, Action::NoOp);
}

/// What is left out of a plan is there whatever the spec says of it, so what is told of it stays.
#[tokio::test(start_paused = true)]
async fn an_output_of_what_is_left_out_keeps_its_value() {
    let mut run = Run::new();
    run.world.variables.clear();
    let spec = |rest: &str| {
        format!(
            "[resource.value.d]\ninput = \"x\"\n{rest}[resource.value.e]\ninput = \"y\"\n\
             [output.o]\nvalue = '${{value.d == null ? \"gone\" : \"there\"}}'\n"
        )
    };
    run.apply(&spec(""), &Options::default()).await;
    assert_eq!(run.kept().await, Value::string("there"));
    let disabled = spec("lifecycle = { enabled = false }\n");
    let of = |text: &str| vec![Target::Block(text.parse().unwrap())];
    let excludes = Options { excludes: of("value.d"), ..Options::default() };
    let targets = Options { targets: of("value.e"), ..Options::default() };
    for options in [excludes, targets] {
        run.apply(&disabled, &options).await;
        assert_eq!(run.kept().await, Value::string("there"));
    }
    run.apply(&disabled, &Options::default()).await;
    assert_eq!(run.kept().await, Value::string("gone"));
}
