//! Small specs with very large values, which are planned in a moment or refused with their place, and values
//! outside their list.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::schema::OneOf;

use crate::cloud::Cloud;
use crate::world::{DISK, World};

const SECRET: &str = "[variable.key]\ntype = \"string\"\nsensitive = true\ndefault = \"k\"\n";

/// Returns a spec with a chain of locals and a resource that has the last one. `first` is the first local,
/// and `next` makes the expression of a local from the name of the local before it.
fn chain(first: &str, count: usize, next: &dyn Fn(&str) -> String) -> String {
    let mut spec = format!("{SECRET}[local]\nl0 = '{first}'\n");
    for number in 1..=count {
        let before = format!("local.l{}", number - 1);
        let _ = writeln!(spec, "l{number} = '{}'", next(&before));
    }
    let _ = write!(spec, "[resource.value.a]\ninput = '${{local.l{count}}}'\n");
    spec
}

/// The engine computes each local of a long chain once, and not again for each local that refers to it.
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

/// Returns a spec whose local `l14` is a text of one mebibyte, which all users share.
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
    // Less than half of the instances can be planned.
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

/// The run checks the list of known values right before the call, as the plan does. `allow_unknown` permits
/// other values in both.
#[tokio::test(start_paused = true)]
async fn what_is_outside_its_list_is_not_sent() {
    let mut world = World::new();
    let mut schema = (*world.cloud.schema).clone();
    let mut image = (*schema.types["image"]).clone();
    let one_of = OneOf { values: vec!["thin".into()], separator: None, exclusion: None };
    image.attributes.get_mut("kind").unwrap().constraint.one_of = Some(one_of);
    schema.types.insert("image".into(), Arc::new(image));
    world.cloud.schema = Arc::new(schema);
    let spec = format!("{DISK}[resource.image.i]\nname = \"i\"\nkind = \"${{disk.d.id}}\"\n");
    let report = world.apply(&spec).await.unwrap();
    let message = "kind is \"disk-1\", which is not one of the 1 known values";
    assert_eq!(report.failures[0].message, message);
    assert!(world.cloud.names("image").is_empty());
    let open = format!("{spec}lifecycle = {{ allow_unknown = [\"kind\"] }}\n");
    let cloud = Cloud { schema: world.cloud.schema.clone(), ..Cloud::new() };
    let world = World { cloud, ..World::new() };
    assert!(world.apply(&open).await.unwrap().failures.is_empty());
    assert_eq!(world.cloud.names("image"), ["i"]);
}
