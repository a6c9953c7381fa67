//! What is protected stays, and nothing is deleted that something which stays still uses.

use engine::plan::input::{Mode, Options};

use crate::world::{World, show};

fn destroying() -> Options {
    Options { mode: Mode::Destroy, ..Options::default() }
}

async fn text_with(world: &World, spec: &str, options: &Options) -> String {
    let (plan, diagnostics, sources) = world.plan_with(spec, options).await;
    show(&plan, &diagnostics, &sources)
}

const KEYED: &str = r#"
[resource.value.v]
for_each = { eu = "prod", us = "dev" }
input = "${each.key}"
lifecycle = { prevent_destroy = '${each.value == "prod"}' }
"#;

#[tokio::test(start_paused = true)]
async fn a_protection_reads_the_value_of_its_own_key() {
    let world = World::new();
    world.apply(KEYED).await.unwrap();
    let text = text_with(&world, KEYED, &destroying()).await;
    assert!(text.contains(r#"error:5: value.v["eu"] is protected"#), "{text}");
    assert!(!text.contains(r#"value.v["us"] is protected"#), "{text}");

    let spec = KEYED.replace("\"prod\", us = \"dev\"", "{ p = true }, us = { p = false }");
    let spec = spec.replace("each.value == \"prod\"", "each.value.p");
    let text = text_with(&world, &spec, &destroying()).await;
    assert!(text.contains(r#"error:5: value.v["eu"] is protected"#), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_disabled_instance_is_protected_by_its_own_value() {
    let world = World::new();
    world.apply(KEYED).await.unwrap();
    let spec = KEYED.replace("{ prevent", "{ enabled = false, prevent");
    let text = world.plan_text(&spec).await;
    assert!(text.contains(r#"error:5: value.v["eu"] is protected"#), "{text}");
    assert!(!text.contains(r#"value.v["us"] is protected"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_a_gone_key_would_say_is_not_guessed() {
    let world = World::new();
    world.apply(KEYED).await.unwrap();
    let without = KEYED.replace("eu = \"prod\", ", "");
    let text = world.plan_text(&without).await;
    assert!(text.contains(r#"error:5: whether value.v["eu"] may go is not known"#), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");

    // The key alone says it.
    let by_key = without.replace("each.value == \"prod\"", "each.key == \"eu\"");
    let text = world.plan_text(&by_key).await;
    assert!(text.contains(r#"error:5: value.v["eu"] is protected"#), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");

    // So does what does not need the value.
    let open = without.replace("each.value == \"prod\"", "false && each.value == \"prod\"");
    let text = world.plan_text(&open).await;
    assert!(text.contains(r#"delete value.v["eu"]"#), "{text}");
    assert!(!text.contains("error"), "{text}");

    let retained = without.replace("prevent_destroy", "retain");
    let text = world.plan_text(&retained).await;
    assert!(text.contains(r#"forget value.v["eu"]"#), "{text}");
    assert!(text.contains(r#"error:5: whether value.v["eu"] may go is not known"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_retained_key_is_forgotten_in_a_destroy_and_the_others_go() {
    let world = World::new();
    let spec = KEYED.replace("prevent_destroy", "retain");
    world.apply(&spec).await.unwrap();
    let text = text_with(&world, &spec, &destroying()).await;
    assert!(text.contains(r#"forget value.v["eu"]"#), "{text}");
    assert!(text.contains(r#"delete value.v["us"]"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_protection_that_reads_another_resource_is_read_in_a_destroy() {
    let world = World::new();
    let spec = r#"
[resource.value.flag]
input = { protect = true }

[resource.value.v]
input = "kept"
lifecycle = { prevent_destroy = '${value.flag.output.protect}' }
"#;
    world.apply(spec).await.unwrap();
    let text = text_with(&world, spec, &destroying()).await;
    assert!(text.contains("error:7: value.v is protected"), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");

    let open = spec.replace("protect = true", "protect = false");
    world.apply(&open).await.unwrap();
    let report = world.destroy(&open).await.unwrap();
    assert!(report.failures.is_empty());
}
