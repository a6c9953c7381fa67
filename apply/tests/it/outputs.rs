//! Outputs that contain secrets, and the values that the state keeps of them.

use std::sync::Arc;

use engine::plan::input::Options;
use engine::plan::{Action, Plan};
use engine::value::Value;
use provider_port::Provider;

use crate::one_time_secrets::{Shows, Vaults, vault};
use crate::world::World;

/// A spec with a secret from a variable, and a vault, whose token the API shows once.
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

    /// Returns the value that the state has for the only output.
    async fn kept(&self) -> Value {
        self.world.state().await.outputs["o"].value.value().unwrap()
    }

    /// Returns the action that a plan has for the only output.
    async fn action(&self, spec: &str) -> Action {
        self.plan(spec).await.outputs["o"].action
    }
}

fn with_output(value: &str) -> String {
    format!("{SPEC}[output.o]\nvalue = '{value}'\nsensitive = true\n")
}

/// The plan after an apply is empty, whether the output came with its object or later. The state has a
/// fingerprint of the secret.
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

/// The plan of an output that stays holds no secret, because the apply does not need it.
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

/// An output was a plain text, and becomes a text around a secret. The state has the new text, sealed.
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

/// A run replaces the vault, so its token changes, and the text around the token with it.
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

/// A saved plan does not change an output. It leaves the output as another run has changed or removed it.
#[tokio::test(start_paused = true)]
async fn an_output_that_stays_is_not_written_by_a_saved_plan() {
    let mut run = Run::new();
    let variable = SPEC.split_once("[resource").unwrap().0;
    let output = "[output.o]\nvalue = '${var.word}'\nsensitive = true\n";
    let spec = |n: u8| format!("{variable}[resource.value.n]\ninput = {n}\n{output}");
    run.apply(&spec(1), &Options::default()).await;
    let saved = run.plan(&spec(2)).await;
    assert_eq!(saved.outputs["o"].action, Action::NoOp);
    run.world.variables.insert("word".to_owned(), "swordfish".to_owned());
    run.apply(&spec(1), &Options::default()).await;
    let kept = run.kept().await;
    run.world.apply_saved(&saved).await.unwrap();
    assert!(kept.same(&run.kept().await));
    run.apply(&spec(2), &Options::default()).await;
    assert!(kept.same(&run.kept().await));
    let idle = run.plan(&spec(2)).await;
    assert!(idle.is_empty());
    run.apply(variable, &Options::default()).await;
    // The saved plan may be refused or do nothing: the removed output does not come back.
    drop(run.world.apply_saved(&idle).await);
    assert!(run.world.state().await.outputs.is_empty());
}
