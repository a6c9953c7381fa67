//! `replace_triggered_by`: the changes that trigger a replace, its order, and replaces that stay due until
//! they are done.

use engine::plan::Plan;
use engine::plan::input::{Options, Target};
use state::Store as _;

use crate::cloud::Fault;
use crate::world::World;

/// Returns a spec with a value, a value made from it, an image, and a unit that is replaced if `trigger`
/// changes.
fn spec(n: u8, trigger: &str) -> String {
    format!(
        r#"
[resource.value.base]
input = {n}

[resource.value.rel]
input = "${{value.base.output}}"

[resource.image.i]
name = "i-{n}"

[resource.unit.u]
name = "u"
lifecycle = {{ replace_triggered_by = ["${{{trigger}}}"] }}
"#
    )
}

fn replaces(plan: &Plan) -> bool {
    plan.change(&"unit.u".parse().unwrap()).unwrap().action.word() == "replace"
}

async fn plan(world: &World, spec: &str) -> Plan {
    let (plan, diagnostics, _) = world.plan(spec).await;
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    plan
}

#[tokio::test(start_paused = true)]
async fn what_is_derived_fires_when_it_changes() {
    for (trigger, fires) in [
        ("value.base", true),
        ("value.base.output", true),
        ("value.rel.output", true),
        ("value.rel.id", false),
        ("image.i", true),
        ("image.i.name", true),
        ("image.i.kind", false),
    ] {
        let world = World::new();
        world.apply(&spec(1, trigger)).await.unwrap();
        assert!(plan(&world, &spec(1, trigger)).await.is_empty(), "{trigger}");
        let next = plan(&world, &spec(2, trigger)).await;
        assert_eq!(replaces(&next), fires, "{trigger}");
        let report = world.apply(&spec(2, trigger)).await.unwrap();
        assert!(report.failures.is_empty(), "{trigger}: {report:?}");
        assert!(plan(&world, &spec(2, trigger)).await.is_empty(), "{trigger}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replace_comes_after_what_fires_it() {
    let world = World::new();
    world.apply(&spec(1, "image.i")).await.unwrap();
    let text = world.plan_text(&spec(2, "image.i")).await;
    assert!(text.contains("s0 = update image.i (image-1)\n"), "{text}");
    assert!(text.contains("create unit.u after s0, "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_failed_is_planned_again() {
    for trigger in ["image.i", "image.i.name", "value.rel.output"] {
        let world = World::new();
        world.apply(&spec(1, trigger)).await.unwrap();
        // The update of the image succeeds, and the drain of the unit is refused.
        world.cloud.strike(1, Fault::Refused);
        let report = world.apply(&spec(2, trigger)).await.unwrap();
        let failed: Vec<String> = report.failures.iter().map(|f| f.address.to_string()).collect();
        assert_eq!(failed, ["unit.u"], "{trigger}");
        world.cloud.shared.lock().unwrap().faults.clear();
        let next = plan(&world, &spec(2, trigger)).await;
        assert!(replaces(&next), "{trigger}: {next:?}");
        world.apply(&spec(2, trigger)).await.unwrap();
        assert!(plan(&world, &spec(2, trigger)).await.is_empty(), "{trigger}");
        let loaded = world.store.load().await.unwrap();
        let folded = apply::session::fold(loaded, &world.host).unwrap();
        let kept = folded.snapshot.entries.values().flat_map(|entry| &entry.current);
        assert!(kept.map(|object| object.made_with.len()).all(|n| n == 0), "{trigger}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_was_left_out_is_planned_later() {
    let trigger = "value.base.output";
    let world = World::new();
    world.apply(&spec(1, trigger)).await.unwrap();
    let options = Options {
        targets: vec![Target::Block("value.base".parse().unwrap())],
        ..Options::default()
    };
    world.apply_with(&spec(2, trigger), &options).await.unwrap();
    assert!(replaces(&plan(&world, &spec(2, trigger)).await));
    // A change that is taken back needs no replace any more, in this plan or after it.
    assert!(!replaces(&plan(&world, &spec(1, trigger)).await));
    world.apply_with(&spec(1, trigger), &options).await.unwrap();
    assert!(!replaces(&plan(&world, &spec(1, trigger)).await));
    assert!(replaces(&plan(&world, &spec(3, trigger)).await));
}

#[tokio::test(start_paused = true)]
async fn outputs_of_what_a_plan_leaves_out_keep_their_last_value() {
    let world = World::new();
    let spec = format!("{}[output.url]\nvalue = \"${{unit.u.url}}\"\n", spec(1, "value.base"));
    let options = Options {
        targets: vec![Target::Block("value.base".parse().unwrap())],
        ..Options::default()
    };
    let (plan, ..) = world.plan_with(&spec, &options).await;
    assert!(plan.outputs.is_empty(), "{:?}", plan.outputs);
    world.apply_with(&spec, &options).await.unwrap();
    let (plan, ..) = world.plan_with(&spec, &options).await;
    assert!(plan.is_empty());
    let report = world.apply(&spec).await.unwrap();
    assert_eq!(report.outputs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_ignored_is_no_drift() {
    let world = World::new();
    let spec = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n\
                lifecycle = { ignore_changes = [\"size\"] }\n";
    world.apply(spec).await.unwrap();
    for attributes in world.cloud.shared.lock().unwrap().objects.values_mut() {
        attributes.insert("size".into(), engine::value::Value::Integer(7));
    }
    let plan = plan(&world, spec).await;
    assert!(plan.is_empty() && plan.drift.is_empty(), "{:?}", plan.drift);
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_sensitive_is_sent() {
    for secret in [
        r#"'${sensitive("hunter2")}'"#,
        r"'${sensitive(var.plain)}'",
        r#"'${var.s}${sensitive("2")}'"#,
        r"'${local.l}'",
    ] {
        let mut world = World::new();
        world.variables.insert("s".to_owned(), "hunter".to_owned());
        let spec = format!(
            "[variable.s]\ntype = \"string\"\nsensitive = true\n\
             [variable.plain]\ntype = \"string\"\ndefault = \"hunter2\"\n\
             [local]\nl = '${{sensitive(\"hunter2\")}}'\n\
             [resource.unit.u]\nname = \"u\"\nsecret = {secret}\n\
             [resource.value.v]\ninput = {{ K = {secret} }}\n"
        );
        let report = world.apply(&spec).await.unwrap();
        assert!(report.failures.is_empty(), "{secret}: {report:?}");
        {
            let shared = world.cloud.shared.lock().unwrap();
            let unit = shared.objects.values().next().unwrap();
            assert_eq!(unit["secret"].as_str(), Some("hunter2"), "{secret}");
        }
        let loaded = world.store.load().await.unwrap();
        let text = format!("{:?} {:?}", loaded.records, serde_json::to_string(&loaded.snapshot));
        assert!(!text.contains("hunter2"), "{text}");
        assert!(plan(&world, &spec).await.is_empty(), "{secret}");
    }
    // A plan shows the residual of a value that is not known yet, so the residual may not hold a secret.
    for secret in ["sensitive(\"p\")", "local.l"] {
        let late = format!(
            "[local]\nl = '${{sensitive(\"p\")}}'\n[resource.unit.w]\nname = \"w\"\n\
             [resource.unit.u]\nname = \"u\"\nsecret = '${{unit.w.id}}${{{secret}}}'\n"
        );
        let text = World::new().plan_text(&late).await;
        assert!(text.contains("error:7: expression cannot be evaluated"), "{text}");
    }
}

/// A create triggers no replace, also if an earlier run began the create.
#[tokio::test(start_paused = true)]
async fn to_finish_a_create_fires_nothing() {
    for trigger in ["image.i", "image.i.name", "image.i.id"] {
        let world = World::new();
        world.apply("[resource.unit.u]\nname = \"u\"\n").await.unwrap();
        world.cloud.strike(1, Fault::Refused);
        let report = world.apply(&spec(1, trigger)).await.unwrap();
        assert_eq!(report.failures.len(), 1, "{report:?}");
        assert!(!replaces(&plan(&world, &spec(1, trigger)).await), "{trigger}");
        world.apply(&spec(1, trigger)).await.unwrap();
        assert!(plan(&world, &spec(1, trigger)).await.is_empty(), "{trigger}");
        assert!(replaces(&plan(&world, &spec(2, trigger)).await) || trigger == "image.i.id");
    }
}
