//! Whole lives of specs: the texts of their plans, and the calls that the cloud gets.

use engine::plan::Action;
use engine::plan::input::{Mode, Options, Target};
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, World, converges, show};

const SPEC: &str = r#"
[resource.disk.models]
name = "models"
size = 100
zone = "eu"

[resource.image.base]
name = "base"

[resource.unit.chat]
name = "chat"
disk_id = "${disk.models.id}"
image_id = "${image.base.id}"
workers = 3

[output.url]
value = "${unit.chat.url}"
"#;

async fn check(world: &World, spec: &str, expected: &str) {
    let text = world.plan_text(spec).await;
    assert_eq!(text.trim(), expected.trim(), "\n{text}");
}

#[tokio::test(start_paused = true)]
async fn an_applied_spec_plans_nothing() {
    let world = World::new();
    let report = world.apply(SPEC).await.unwrap();
    assert_eq!(report.summary.created, 3);
    assert_eq!(report.outputs["url"].0, Value::string("http://cloud/unit-3"));
    assert_eq!(world.cloud.names("unit"), ["chat"]);
    check(&world, SPEC, "").await;
    world.cloud.take_log();
    world.apply(SPEC).await.unwrap();
    assert!(world.cloud.take_log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_grew_outside_is_drift_with_a_proposal() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    for attributes in world.cloud.shared.lock().unwrap().objects.values_mut() {
        if attributes.contains_key("size") {
            attributes.insert("size".into(), Value::Integer(200));
        }
    }
    let (plan, diagnostics, sources) = world.plan(SPEC).await;
    assert_eq!(plan.drift.len(), 1);
    assert_eq!(plan.drift[0].proposal.as_deref(), Some("size = 200"));
    assert!(plan.changes[0].causes[0].drifted);
    let text = show(&plan, &diagnostics, &sources);
    assert!(text.contains("error:4: disk size must increase"), "{text}");
    assert!(diagnostics.iter().any(|d| {
        d.detail.as_deref().is_some_and(|detail| detail.contains("changed outside Plumb"))
    }));
}

#[tokio::test(start_paused = true)]
async fn a_proposal_keeps_all_that_drifted_and_changes_nothing_else() {
    const IMAGE: &str = r#"
[variable.tok]
type = "string"
sensitive = true

[resource.image.i]
name = "i"
args = ["x"]
env = { A = "a" }
"#;
    for (from, to, expected) in [
        ("", "", Some("args = [\"y\"]\nenv = { A = \"b\" }")),
        ("\"x\"", "'${join(\"\", [\"x\"])}'", None),
        ("name = \"i\"", "for_each = [\"i\", \"j\"]\nname = \"${each.key}\"", None),
    ] {
        let world = crate::secrets::world(|_| {});
        let spec = IMAGE.replacen(from, to, 1);
        world.apply(&spec).await.unwrap();
        if let Some(image) = world.cloud.shared.lock().unwrap().objects.values_mut().next() {
            image.insert("args".into(), Value::list(vec![Value::string("y")]));
            image.insert("env".into(), Value::map([("A".into(), Value::string("b"))].into()));
        }
        let (plan, ..) = world.plan(&spec).await;
        assert_eq!(plan.drift.len(), 1, "{spec}");
        assert_eq!(plan.drift[0].proposal.as_deref(), expected, "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_move_loses_data_and_is_refused_until_allowed() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    let moved = SPEC.replace("\"eu\"", "\"us\"");
    let text = world.plan_text(&moved).await;
    assert!(text.contains("error:5: replacing disk.models would lose its data"), "{text}");
    let allowed =
        moved.replace("zone = \"us\"", "zone = \"us\"\nlifecycle = { allow_data_loss = true }");
    check(
        &world,
        &allowed,
        "
replace disk.models [zone]
update unit.chat [disk_id]
s0 = delete disk.models (disk-1)
s1 = create disk.models after s0
s2 = activate disk.models after s1
s3 = update unit.chat (unit-3) after s2",
    )
    .await;
    world.apply(&allowed).await.unwrap();
    check(&world, &allowed, "").await;
    assert_eq!(world.cloud.names("disk"), ["models"]);
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_creates_first_keeps_its_dependants_served() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    let changed = SPEC.replace("name = \"base\"", "name = \"base\"\nkind = \"new\"");
    check(
        &world,
        &changed,
        "
replace image.base [kind]
update unit.chat [image_id]
s0 = create image.base
s1 = update unit.chat (unit-3) after s0
s2 = delete image.base (image-2) after s0, s1
s3 = activate image.base after s0, s2",
    )
    .await;
    world.apply(&changed).await.unwrap();
    check(&world, &changed, "").await;
    assert_eq!(world.cloud.names("image"), ["base"]);
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_spec_is_drained_and_deleted() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    let without = &SPEC[..SPEC.find("[resource.unit").unwrap()];
    check(
        &world,
        without,
        "
delete unit.chat []
s0 = drain unit.chat (unit-3)
s1 = delete unit.chat (unit-3) after s0",
    )
    .await;
    world.apply(without).await.unwrap();
    assert!(world.cloud.names("unit").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_destroy_ends_dependants_first() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    world.cloud.take_log();
    world.destroy(SPEC).await.unwrap();
    assert_eq!(
        world.cloud.take_log(),
        ["drain unit", "delete unit", "delete disk", "delete image"]
    );
    assert!(world.cloud.shared.lock().unwrap().objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_protected_resource_is_not_destroyed() {
    let world = World::new();
    let spec = SPEC.replace("size = 100", "size = 100\nlifecycle = { prevent_destroy = true }");
    world.apply(&spec).await.unwrap();
    let options = Options { mode: Mode::Destroy, ..Options::default() };
    let (_, diagnostics, _) = world.plan_with(&spec, &options).await;
    assert!(
        diagnostics
            .iter()
            .any(|d| d.summary == "disk.models is protected, and this plan would delete it"),
        "{diagnostics:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_moves_to_another_address() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    let renamed = SPEC.replace("image.base", "image.other");
    check(
        &world,
        &renamed,
        "
delete image.base []
create image.other []
update unit.chat [image_id]
s0 = create image.other
s1 = update unit.chat (unit-3) after s0
s2 = delete image.base (image-2) after s1
s3 = activate image.other after s0, s2
note:7: image.base may be called image.other now",
    )
    .await;
    world.apply(&renamed).await.unwrap();
    check(&world, &renamed, "").await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_key_is_refused_and_one_that_is_there_is_read() {
    let world = World::new();
    let spec = |keys: &str| format!("[resource.value.v]\nfor_each = [{keys}]\ninput = \"x\"\n");
    let text = world.plan_text(&spec("\"a\", \"\"")).await;
    assert_eq!(text, "error:2: for_each cannot be used\n");
    // An earlier version of Plumb made objects for such keys, and its states and journals can be read.
    let text = serde_json::to_string("value.v[\"\"]").unwrap();
    let address: engine::address::Address = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&address).unwrap(), text);
}

#[tokio::test(start_paused = true)]
async fn for_each_keys_come_and_go() {
    let world = World::new();
    let spec = r#"
[local]
zones = { a = 10, b = 20 }

[resource.disk.d]
for_each = "${local.zones}"
name = "d-${each.key}"
size = "${each.value}"
zone = "eu"

[resource.unit.u]
for_each = "${local.zones}"
name = "u-${each.key}"
disk_id = "${disk.d[each.key].id}"
"#;
    world.apply(spec).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d-a", "d-b"]);
    check(
        &world,
        &spec.replace("b = 20", "c = 30"),
        r#"
delete disk.d["b"] []
create disk.d["c"] []
delete unit.u["b"] []
create unit.u["c"] []
s0 = create disk.d["c"]
s1 = activate disk.d["c"] after s0
s2 = drain unit.u["b"] (unit-4)
s3 = delete unit.u["b"] (unit-4) after s2
s4 = delete disk.d["b"] (disk-2) after s3
s5 = create unit.u["c"] after s1
s6 = activate unit.u["c"] after s5"#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_skips_its_dependants_only() {
    let world = World::new();
    world.cloud.strike(0, Fault::Refused);
    let report = world.apply(SPEC).await.unwrap();
    assert_eq!(report.failures.len(), 1);
    assert_eq!(report.summary.skipped, 3);
    assert_eq!(world.cloud.names("image"), ["base"]);
    world.apply(SPEC).await.unwrap();
    check(&world, SPEC, "").await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_make_no_twin() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        for call in 0..6 {
            let world = World::new();
            world.cloud.strike(call, fault);
            let report = world.apply(SPEC).await.unwrap();
            assert!(report.failures.is_empty(), "{fault:?} {call}: {report:?}");
            check(&world, SPEC, "").await;
            for (ty, name) in [("disk", "models"), ("image", "base"), ("unit", "chat")] {
                assert_eq!(world.cloud.names(ty), [name], "{fault:?} {call}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_vanished_is_made_again() {
    let world = World::new();
    world.apply(SPEC).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.retain(|(ty, _), _| &**ty != "unit");
    check(
        &world,
        SPEC,
        "
create unit.chat []
s0 = create unit.chat
s1 = activate unit.chat after s0",
    )
    .await;
    world.apply(SPEC).await.unwrap();
    assert_eq!(world.cloud.names("unit"), ["chat"]);
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_warned_of_or_refused() {
    let world = World::new();
    let mine = |name: &str| [("name", Value::string(name))];
    world.cloud.put("disk", &mine("models"));
    let text = world.plan_text(SPEC).await;
    assert!(text.contains("warning:3: another disk named \"models\" exists already"), "{text}");
    world.cloud.put("image", &mine("base"));
    let text = world.plan_text(SPEC).await;
    assert!(text.contains("error:8: another image named \"base\" exists already"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn targets_take_their_dependencies_along() {
    let world = World::new();
    let options = Options {
        targets: vec![Target::Block("image.base".parse().unwrap())],
        ..Options::default()
    };
    let (plan, diagnostics, sources) = world.plan_with(SPEC, &options).await;
    assert!(!plan.complete);
    let text = show(&plan, &diagnostics, &sources);
    assert_eq!(
        text,
        "create image.base []\ns0 = create image.base\ns1 = activate image.base after s0\n"
    );
}

/// A plan that leaves an instance out also leaves out the instances that refer to it, and not their
/// neighbours.
#[tokio::test(start_paused = true)]
async fn what_is_left_out_takes_along_the_instances_that_refer_to_it() {
    let spec = r#"
[local]
keys = ["a", "b"]
second = '${disk.d["b"].id}'

[resource.disk.d]
for_each = "${local.keys}"
name = "${each.key}"
size = 1
zone = "eu"

[resource.unit.each]
for_each = "${local.keys}"
name = "${each.key}"
disk_id = "${disk.d[each.key].id}"

[resource.unit.other]
name = "other"
disk_id = '${disk.d["a"].id}'

[resource.unit.same]
for_each = ["x", "b"]
name = "${each.key}"
disk_id = "${local.second}"

[resource.unit.all]
name = "all"
secret = '${join(",", [for d in disk.d : d.id])}'

[resource.unit.after]
name = "after"
depends_on = ['unit.each["b"]']
"#;
    let world = World::new();
    let left = async |target: Target| {
        let options = Options { excludes: vec![target], ..Options::default() };
        let (plan, ..) = world.plan_with(spec, &options).await;
        let made = plan.changes.iter().filter(|it| it.action == Action::Create);
        made.map(|it| it.address.to_string()).collect::<Vec<_>>().join(" ")
    };
    let instance = |text: &str| Target::Instance(text.parse().unwrap());
    for (target, rest) in [
        (instance("disk.d[b]"), "disk.d[\"a\"] unit.each[\"a\"] unit.other"),
        (
            instance("disk.d[a]"),
            "disk.d[\"b\"] unit.after unit.each[\"b\"] unit.same[\"b\"] unit.same[\"x\"]",
        ),
        (Target::Block("disk.d".parse().unwrap()), ""),
        (
            instance("unit.each[b]"),
            "disk.d[\"a\"] disk.d[\"b\"] unit.all unit.each[\"a\"] unit.other unit.same[\"b\"] unit.same[\"x\"]",
        ),
    ] {
        assert_eq!(left(target.clone()).await, rest, "{target:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn targets_take_along_the_instances_that_they_refer_to_and_nothing_that_goes() {
    let spec = |sizes: &str| {
        format!(
            r#"
[local]
sizes = {sizes}
first = '${{disk.d["a"].id}}'

[resource.disk.d]
for_each = "${{local.sizes}}"
name = "${{each.key}}"
size = "${{each.value}}"
zone = "eu"

[resource.unit.one]
name = "one"
disk_id = "${{local.first}}"

[resource.unit.each]
for_each = "${{local.sizes}}"
name = "${{each.key}}"
disk_id = "${{disk.d[each.key].id}}"

[resource.unit.any]
name = "any"
secret = '${{join(",", [for d in disk.d : d.name])}}'
"#
        )
    };
    let world = World::new();
    world.apply(&spec("{ a = 1, b = 1, c = 1 }")).await.unwrap();
    let later = spec("{ a = 2, c = 3, d = 4 }");
    let changes = async |target: Target| {
        let options = Options { targets: vec![target], ..Options::default() };
        let (plan, ..) = world.plan_with(&later, &options).await;
        let changes = plan.changes.iter().filter(|it| it.action != Action::NoOp);
        changes
            .map(|it| format!("{:?} {}", it.action, it.address).to_lowercase())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let instance = |text: &str| Target::Instance(text.parse().unwrap());
    let block = |text: &str| Target::Block(text.parse().unwrap());
    for (target, expected) in [
        (instance("unit.one"), "update disk.d[\"a\"]"),
        (instance("unit.each[c]"), "update disk.d[\"c\"]"),
        (instance("unit.each[d]"), "create disk.d[\"d\"], create unit.each[\"d\"]"),
        (
            instance("unit.any"),
            "update disk.d[\"a\"], update disk.d[\"c\"], create disk.d[\"d\"], update unit.any",
        ),
        (instance("disk.d[b]"), ""),
        (
            block("unit.each"),
            "update disk.d[\"a\"], update disk.d[\"c\"], create disk.d[\"d\"], \
             delete unit.each[\"b\"], create unit.each[\"d\"]",
        ),
    ] {
        assert_eq!(changes(target.clone()).await, expected, "{target:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_rest_as_fingerprints() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "hunter2".to_owned());
    let spec = r#"
[variable.pw]
type = "string"
sensitive = true

[resource.unit.u]
name = "u"
secret = "x-${var.pw}"

[resource.value.v]
input = { pw = "${var.pw}", n = 1 }

[output.pw]
value = "${value.v.output.pw}"
sensitive = true
"#;
    world.apply(spec).await.unwrap();
    {
        let shared = world.cloud.shared.lock().unwrap();
        let unit = shared.objects.values().next().unwrap();
        assert_eq!(unit["secret"], Value::string("x-hunter2"));
    }
    let loaded = state::Store::load(&world.store).await.unwrap();
    let text = format!("{:?} {:?}", loaded.records, serde_json::to_string(&loaded.snapshot));
    assert!(!text.contains("hunter2"), "{text}");
    check(&world, spec, "").await;
    world.variables.insert("pw".to_owned(), "other".to_owned());
    check(
        &world,
        spec,
        "
update unit.u [secret]
update value.v [input]
s0 = update unit.u (unit-1)
s1 = update value.v (plumb-caaaaaaaaaaaaaaaaaaaaaaaaa)",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_replaces_when_what_it_names_changes() {
    let world = World::new();
    let spec = r#"
[resource.value.version]
input = 1

[resource.value.other]
input = "a"

[resource.value.built]
input = "built"
lifecycle = { replace_triggered_by = ["${value.version.input}"] }
"#;
    world.apply(spec).await.unwrap();
    let id = |plan: &engine::plan::Plan| {
        let built = "value.built".parse().unwrap();
        plan.change(&built).unwrap().object.clone().unwrap()
    };
    let (before, ..) = world.plan(spec).await;
    check(
        &world,
        &spec.replace("input = \"a\"", "input = \"b\""),
        &format!("update value.other [input]\ns0 = update value.other ({})", {
            let other = "value.other".parse().unwrap();
            before.change(&other).unwrap().object.clone().unwrap()
        }),
    )
    .await;
    let bumped = spec.replace("input = 1", "input = 2");
    let text = world.plan_text(&bumped).await;
    assert!(text.starts_with("replace value.built []\nupdate value.version [input]\n"), "{text}");
    world.apply(&bumped).await.unwrap();
    let (after, ..) = world.plan(&bumped).await;
    assert!(after.is_empty());
    assert_ne!(id(&before), id(&after));
}

#[tokio::test(start_paused = true)]
async fn too_many_instances_are_refused_at_their_line() {
    let world = World::new();
    let mut spec = "[local]\nkeys = '${[for n in range(60000) : tostring(n)]}'\n".to_owned();
    for block in ["a", "b", "c", "d", "e"] {
        spec += "[resource.value.";
        spec += block;
        spec += "]\nfor_each = '${local.keys}'\nlifecycle = { enabled = false }\n";
    }
    let text = world.plan_text(&spec).await;
    assert_eq!(text, "error:16: this spec has too many instances\n");
}

/// A plan shows what follows from a condition of `lifecycle`, so a condition on a secret is refused.
#[tokio::test(start_paused = true)]
async fn conditions_of_lifecycle_are_no_secret() {
    for word in ["enabled", "retain", "prevent_destroy", "create_before_destroy"] {
        let spec = format!(
            "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n\
             lifecycle = {{ {word} = '${{sensitive(\"s3cret\") == \"guess\"}}' }}\n"
        );
        let text = World::new().plan_text(&spec).await;
        assert!(text.contains(&format!("lifecycle.{word} must not be sensitive")), "{text}");
    }
}

fn change_site(world: &World, name: &str, value: &str) {
    let mut shared = world.cloud.shared.lock().unwrap();
    let site = shared.objects.iter_mut().find(|((ty, _), _)| &**ty == "site").unwrap();
    site.1.insert(name.into(), Value::string(value));
}

fn of_site(world: &World, name: &str) -> Value {
    let shared = world.cloud.shared.lock().unwrap();
    let site = shared.objects.iter().find(|((ty, _), _)| &**ty == "site").unwrap();
    site.1[name].clone()
}

/// An update sends the whole site. It also sends the note, which the spec does not manage and only a read
/// shows, as it is.
#[tokio::test(start_paused = true)]
async fn a_note_of_somebody_else_is_kept() {
    let spec = "[resource.site.s]\nname = \"s\"\nsize = 1\n";
    let world = World::new();
    world.apply(spec).await.unwrap();
    change_site(&world, "note", "of somebody");
    converges(&world, &spec.replace('1', "2")).await;
    assert_eq!(of_site(&world, "note"), Value::string("of somebody"));
}

/// The spec ignores changes of a secret. The live secret stays, and a login that uses it gets the live value.
#[tokio::test(start_paused = true)]
async fn an_ignored_secret_stays_as_it_is() {
    let variable = "[variable.word]\ntype = \"string\"\nsensitive = true\n";
    let site = "[resource.site.s]\nname = \"s\"\nsecret = \"${var.word}\"\n\
                lifecycle = { ignore_changes = [\"secret\"] }\n";
    let login = "[resource.login.l]\nname = \"l\"\npassword = \"${site.s.secret}\"\n";
    let mut world = World::new();
    world.variables.insert("word".to_owned(), "first".to_owned());
    world.apply(&format!("{variable}{site}")).await.unwrap();
    change_site(&world, "secret", "rotated");
    converges(&world, &format!("{variable}{site}{login}")).await;
    assert_eq!(of_site(&world, "secret"), Value::string("rotated"));
    let shared = world.cloud.shared.lock().unwrap();
    let login = shared.objects.iter().find(|((ty, _), _)| &**ty == "login").unwrap();
    assert_eq!(login.1["password"], Value::string("rotated"));
}

/// A set in a value of any type does not change from plan to plan, although the state has it as a list,
/// because JSON has no sets.
#[tokio::test(start_paused = true)]
async fn a_set_in_a_value_of_any_type_is_the_same_in_each_plan() {
    for given in [
        "toset([\"b\", \"a\"])",
        "{a = toset([\"b\"]), b = [toset([\"c\"]), toset([])]}",
        "toset([disk.d.id, \"x\"])",
        "{a = toset([disk.d.id])}",
    ] {
        for attribute in ["input", "replace_on"] {
            let world = World::new();
            let spec = format!("{DISK}[resource.value.v]\n{attribute} = '${{{given}}}'\n");
            converges(&world, &spec).await;
            converges(
                &world,
                &spec.replace("\"eu\"", "\"us\"\nlifecycle = { allow_data_loss = true }"),
            )
            .await;
        }
    }
}
