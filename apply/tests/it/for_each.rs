//! References to a whole block with `for_each` whose instances have secrets.

use std::sync::Arc;

use engine::plan::Action;
use engine::plan::input::Options;
use engine::value::Value;
use provider_port::Provider;

use crate::one_time_secrets::{Shows, Vaults, attribute, vault};
use crate::world::{World, show};

const VARIABLE: &str = "[variable.pw]\ntype = \"string\"\nsensitive = true\n";

/// Logins whose passwords are made of a variable, so a spec always has them.
const LOGINS: &str = r#"
[resource.login.l]
for_each = ["a", "b"]
name = "${each.key}"
password = "${each.key}-${var.pw}"
"#;

const VAULTS: &str = "[resource.vault.v]\nfor_each = [\"a\"]\nname = \"${each.key}\"\n";

/// Expressions for the secret of a unit: each uses the passwords of all logins. An update sends the whole
/// unit, so each change needs all passwords.
const WAYS: [&str; 7] = [
    "${join(\",\", values(login.l)[*].password)}",
    "${jsonencode(login.l)}",
    "${jsonencode(values(login.l))}",
    "${jsonencode(merge(login.l, {}))}",
    "${jsonencode(zipmap(keys(login.l), values(login.l)[*].password))}",
    "${jsonencode([for l in values(login.l) : l.password])}",
    "${jsonencode({ for key, l in login.l : key => l.password })}",
];

fn unit(secret: &str) -> String {
    format!("[resource.unit.u]\nname = 'u'\nworkers = 1\nsecret = '{secret}'\n")
}

fn output(value: &str) -> String {
    format!("[output.o]\nvalue = '{value}'\nsensitive = true\n")
}

struct Run {
    world: World,
    provider: Arc<dyn Provider>,
}

impl Run {
    fn new(shows: Shows) -> Self {
        let mut world = World::new();
        world.variables.insert("pw".to_owned(), "hunter2".to_owned());
        let provider = Vaults::with(&mut world, shows, &[vault()]);
        Self { world, provider }
    }

    async fn apply(&self, spec: &str) -> Vec<String> {
        let providers = self.world.providers_with(self.provider.clone());
        let (world, options) = (&self.world, Options::default());
        let spec = format!("{VARIABLE}{spec}");
        let report = world.apply_through(&world.store, &providers, &spec, &options).await.unwrap();
        report.failures.into_iter().map(|failure| failure.message).collect()
    }

    /// Applies a spec without failures, and returns the text of the plan after it.
    async fn settle(&self, spec: &str) -> String {
        assert_eq!(self.apply(spec).await, [""; 0], "{spec}");
        self.plan(spec).await
    }

    async fn plan(&self, spec: &str) -> String {
        let providers = self.world.providers_with(self.provider.clone());
        let options = Options::default();
        let spec = format!("{VARIABLE}{spec}");
        let (plan, said, sources) = self.world.plan_through(&providers, &spec, &options).await;
        let mut text = show(&plan, &said, &sources);
        let outputs = plan.outputs.iter().filter(|(_, output)| output.action != Action::NoOp);
        text.extend(outputs.map(|(name, it)| format!("{} output.{name}\n", it.action.word())));
        text
    }

    /// Returns the secret of the live unit, or an empty text if there is none.
    fn secret(&self) -> String {
        let secret = attribute(&self.world, "unit", "secret");
        secret.and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_uses_all_of_a_block_is_made_and_changed_later() {
    for way in WAYS {
        let run = Run::new(Shows::Create);
        assert_eq!(run.settle(LOGINS).await, "");
        let spec = format!("{LOGINS}{}", unit(way));
        assert_eq!(run.settle(&spec).await, "", "{way}");
        let both = |run: &Run| ["a-hunter2", "b-hunter2"].map(|it| run.secret().contains(it));
        assert_eq!(both(&run), [true; 2], "{way}: {}", run.secret());

        let other = spec.replace("workers = 1", "workers = 2");
        assert_eq!(run.settle(&other).await, "", "{way}");
        assert_eq!(both(&run), [true; 2], "{way}: {}", run.secret());

        // The run makes one more login, and the logins before it stay as they are.
        let more = other.replace("\"b\"]", "\"b\", \"c\"]");
        assert_eq!(run.settle(&more).await, "", "{way}");
        assert_eq!(both(&run), [true; 2], "{way}: {}", run.secret());
        assert!(run.secret().contains("c-hunter2"), "{way}: {}", run.secret());

        // The run deletes one login.
        let fewer = more.replace("\"a\", ", "").replace("workers = 2", "workers = 3");
        assert_eq!(run.settle(&fewer).await, "", "{way}");
        assert_eq!(both(&run), [false, true], "{way}: {}", run.secret());
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_plan_of_what_uses_all_of_a_block_is_applied() {
    for way in WAYS {
        let run = Run::new(Shows::Create);
        assert_eq!(run.settle(LOGINS).await, "");
        let spec = format!("{LOGINS}{}{}", unit(way), output("${login.l}"));
        let spec = spec.replace("\"b\"]", "\"b\", \"c\"]");
        let (plan, ..) = run.world.plan(&format!("{VARIABLE}{spec}")).await;
        run.world.apply_saved(&plan).await.unwrap();
        let all = ["a-hunter2", "b-hunter2", "c-hunter2"].map(|it| run.secret().contains(it));
        assert_eq!(all, [true; 3], "{way}: {}", run.secret());
        assert_eq!(run.plan(&spec).await, "", "{way}");
    }
}

/// Only a read shows the tokens, so the run reads each vault.
#[tokio::test(start_paused = true)]
async fn what_a_read_shows_of_all_is_read() {
    let run = Run::new(Shows::Read);
    let vaults = VAULTS.replace("\"a\"", "\"a\", \"b\"");
    assert_eq!(run.settle(&vaults).await, "");
    let spec = format!("{vaults}{}", unit("${join(\",\", values(vault.v)[*].token)}"));
    assert_eq!(run.apply(&spec).await, [""; 0]);
    assert_eq!(run.secret(), "token of vault-1,token of vault-2");
}

/// An earlier run was the only one that was shown the token. The plan says that its value is not available.
#[tokio::test(start_paused = true)]
async fn what_nobody_has_of_an_instance_is_said_while_planning() {
    for way in ["${join(\",\", values(vault.v)[*].token)}", "${jsonencode(vault.v)}"] {
        let run = Run::new(Shows::Create);
        assert_eq!(run.settle(VAULTS).await, "");
        let spec = format!("{VAULTS}{}", unit(way));
        let text = run.plan(&spec).await;
        let nobody = "the value of `vault.v[\"a\"].token` is not available, and `secret` cannot be sent without it";
        assert!(text.contains(nobody), "{way}: {text}");
    }
}

/// A run without a refresh fails because it does not have the token, and its message names the instance.
#[tokio::test(start_paused = true)]
async fn what_nobody_has_is_named_by_its_instance() {
    for way in ["${join(\",\", values(vault.v)[*].token)}", "${jsonencode(vault.v)}"] {
        let mut run = Run::new(Shows::Create);
        assert_eq!(run.settle(VAULTS).await, "");
        run.world.looks = false;
        let said = run.apply(&format!("{VAULTS}{}", unit(way))).await;
        let expected = "`secret` is not known: \
                        of `vault.v[\"a\"].token` only the fingerprint is known";
        assert_eq!(said, [expected], "{way}");
    }
}

/// An output of all instances is settled by one run, although an earlier run made some of the instances:
/// the plan after it is empty.
#[tokio::test(start_paused = true)]
async fn an_output_of_all_of_a_block_settles_at_once() {
    let ignoring = LOGINS.to_owned() + "lifecycle = { ignore_changes = [\"password\"] }\n";
    for (block, whole) in [(LOGINS, "login.l"), (&*ignoring, "login.l"), (VAULTS, "vault.v")] {
        for value in [format!("${{{whole}}}"), format!("${{jsonencode(values({whole}))}}")] {
            let run = Run::new(Shows::Create);
            let spec = format!("{block}{}", output(&value));
            assert_eq!(run.settle(&spec).await, "", "{value}");
            let before = run.world.state().await.outputs["o"].value.value().unwrap();
            let more = spec.replace("\"a\"", "\"a\", \"n\"");
            assert_eq!(run.settle(&more).await, "", "{block}{value}");
            let kept: Value = run.world.state().await.outputs["o"].value.value().unwrap();
            assert!(kept.holds_sealed(), "{block}{value}");
            assert!(block != LOGINS || !kept.same(&before), "{block}{value}");
            let state = serde_json::to_string(&run.world.state().await).unwrap();
            assert!(!state.contains("hunter2") && !state.contains("token of"), "{state}");
        }
    }
}
