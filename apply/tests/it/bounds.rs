//! Small specs that make much: planned in a moment, or refused with where it is.

use std::fmt::Write as _;

use crate::world::World;

const SECRET: &str = "[variable.key]\ntype = \"string\"\nsensitive = true\ndefault = \"k\"\n";

/// Locals that follow from one another, the first of them given, and a resource that has the last.
fn chain(first: &str, count: usize, next: &dyn Fn(&str) -> String) -> String {
    let mut spec = format!("{SECRET}[local]\nl0 = '{first}'\n");
    for number in 1..=count {
        let before = format!("local.l{}", number - 1);
        let _ = writeln!(spec, "l{number} = '{}'", next(&before));
    }
    let _ = write!(spec, "[resource.value.a]\ninput = '${{local.l{count}}}'\n");
    spec
}

/// Each was computed anew for each that refers to it, and again for each of those.
#[tokio::test(start_paused = true)]
async fn a_long_chain_of_sensitive_locals_is_planned() {
    let world = World::new();
    for longer in ["", "x"] {
        let next = |before: &str| format!("${{{before}}}{longer}");
        let text = world.plan_text(&chain("${var.key}", 5_000, &next)).await;
        assert!(text.starts_with("create value.a"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_doubles_from_local_to_local_is_refused() {
    let world = World::new();
    let double = |before: &str| format!("${{substr(\"${{{before}}}${{{before}}}\", 0, 1)}}");
    let text = world.plan_text(&chain("${var.key}", 64, &double)).await;
    assert!(text.contains("error:"), "{text}");
}

/// A text of a mebibyte, which all share, as local `l14`.
fn mebibyte() -> String {
    let double = |before: &str| format!("${{{before}}}${{{before}}}");
    let spec = chain(&"x".repeat(64), 14, &double);
    spec.split("[resource").next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn resources_that_hold_too_much_together_are_refused_at_the_largest() {
    let world = World::new();
    let mut spec = mebibyte();
    spec += "keys = '${[for n in range(1400) : tostring(n)]}'\n";
    spec += "[resource.value.small]\ninput = 1\n";
    let header = spec.lines().count() + 1;
    spec += "[resource.value.large]\nfor_each = '${local.keys}'\ninput = '${local.l14}'\n";
    let (_, diagnostics, _) = world.plan(&spec).await;
    let text = world.plan_text(&spec).await;
    let said = "the plan would hold more than 20 million values";
    assert_eq!(text, format!("error:{header}: {said}\n"));
    let found = diagnostics.iter().find(|found| found.summary == said).unwrap();
    assert_eq!(found.label.as_deref(), Some("most of them are in value.large"));
    // Half of it is a plan.
    let text = world.plan_text(&spec.replace("range(1400)", "range(600)")).await;
    assert!(text.starts_with("create value.large"), "{}", &text[..100]);
}

#[tokio::test(start_paused = true)]
async fn locals_that_hold_too_much_together_are_refused_at_the_largest() {
    let world = World::new();
    let mut spec = mebibyte();
    spec += "keys = '${[for n in range(1400) : local.l14]}'\n";
    spec += "[resource.value.a]\ninput = '${length(local.keys)}'\n";
    let (_, diagnostics, _) = world.plan(&spec).await;
    let found = diagnostics.iter().next().unwrap();
    assert_eq!(found.summary, "the plan would hold more than 20 million values");
    assert_eq!(found.label.as_deref(), Some("most of them are in local.keys"));
}
