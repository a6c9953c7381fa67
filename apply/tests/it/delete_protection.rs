//! Protected objects, which stay, and objects that stay because another object that stays uses them.

use engine::plan::input::{Mode, Options, Target};
use engine::plan::{Action, Reason, Staying, Use};

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
    assert!(
        text.contains(r#"error:5: whether value.v["eu"] may be deleted is not known"#),
        "{text}"
    );
    assert_eq!(text.matches("error").count(), 1, "{text}");

    // A condition on the key alone can be evaluated.
    let by_key = without.replace("each.value == \"prod\"", "each.key == \"eu\"");
    let text = world.plan_text(&by_key).await;
    assert!(text.contains(r#"error:5: value.v["eu"] is protected"#), "{text}");
    assert_eq!(text.matches("error").count(), 1, "{text}");

    // A condition whose result does not depend on the value can be evaluated, too.
    let open = without.replace("each.value == \"prod\"", "false && each.value == \"prod\"");
    let text = world.plan_text(&open).await;
    assert!(text.contains(r#"delete value.v["eu"]"#), "{text}");
    assert!(!text.contains("error"), "{text}");

    let retained = without.replace("prevent_destroy", "retain");
    let text = world.plan_text(&retained).await;
    assert!(text.contains(r#"forget value.v["eu"]"#), "{text}");
    assert!(
        text.contains(r#"error:5: whether value.v["eu"] may be deleted is not known"#),
        "{text}"
    );
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

fn block(text: &str) -> Target {
    Target::Block(text.parse().unwrap())
}

fn only(text: &str) -> Options {
    Options { targets: vec![block(text)], ..Options::default() }
}

fn but(text: &str) -> Options {
    Options { excludes: vec![block(text)], ..Options::default() }
}

fn gone(options: Options) -> Options {
    Options { mode: Mode::Destroy, ..options }
}

/// A spec in which the unit uses the image, and the disk `other` uses nothing.
const CHAIN: &str = r#"
[resource.image.base]
name = "base"
kind = "thin"

[resource.unit.chat]
name = "chat"
image_id = "${image.base.id}"

[resource.disk.other]
name = "other"
size = 10
zone = "eu"
"#;

async fn applied(spec: &str) -> World {
    let world = World::new();
    world.apply(spec).await.unwrap();
    world
}

/// Returns the action and the reason that the plan has for an address.
async fn reason(world: &World, spec: &str, options: &Options, address: &str) -> (Action, Reason) {
    let (plan, diagnostics, sources) = world.plan_with(spec, options).await;
    let change = plan.changes.iter().find(|change| change.address.to_string() == address);
    let text = show(&plan, &diagnostics, &sources);
    let change = change.unwrap_or_else(|| panic!("no change of {address}: {text}"));
    (change.action, change.reason.clone())
}

fn left_out(by: &str) -> (Action, Reason) {
    let by = Use { by: by.parse().unwrap(), why: Staying::LeftOut };
    (Action::NoOp, Reason::StillUsed(by))
}

#[tokio::test(start_paused = true)]
async fn a_destroyed_target_takes_along_what_uses_it_and_nothing_else() {
    let world = applied(CHAIN).await;
    let text = text_with(&world, CHAIN, &gone(only("unit.chat"))).await;
    assert_eq!(
        text,
        "delete unit.chat []\ns0 = drain unit.chat (unit-3)\ns1 = delete unit.chat (unit-3) after s0\n"
    );
    let text = text_with(&world, CHAIN, &gone(only("image.base"))).await;
    assert!(text.starts_with("delete image.base []\ndelete unit.chat []\n"), "{text}");
    assert!(!text.contains("disk.other"), "{text}");
    // The plan is the same if the spec has neither of the two.
    assert_eq!(text_with(&world, "[local]\n", &gone(only("image.base"))).await, text);
    world.apply_with(CHAIN, &gone(only("image.base"))).await.unwrap();
    assert!(world.cloud.names("image").is_empty() && world.cloud.names("unit").is_empty());
    assert_eq!(world.cloud.names("disk"), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn a_destroy_takes_single_instances_along() {
    let spec = r#"
[resource.image.i]
for_each = ["a", "b"]
name = "${each.key}"

[resource.unit.u]
for_each = ["a", "b"]
name = "${each.key}"
image_id = "${image.i[each.key].id}"
"#;
    let world = applied(spec).await;
    let target = Target::Instance("image.i[a]".parse().unwrap());
    let options = gone(Options { targets: vec![target], ..Options::default() });
    world.apply_with(spec, &options).await.unwrap();
    assert_eq!(
        (world.cloud.names("image"), world.cloud.names("unit")),
        (vec!["b".to_owned()], vec!["b".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_of_a_destroy_keeps_what_it_uses() {
    let world = applied(CHAIN).await;
    let options = gone(but("unit.chat"));
    assert_eq!(reason(&world, CHAIN, &options, "image.base").await, left_out("unit.chat"));
    let text = text_with(&world, CHAIN, &options).await;
    assert!(text.contains("note:0: objects that are still used stay as they are"), "{text}");
    world.apply_with(CHAIN, &options).await.unwrap();
    assert_eq!(world.cloud.names("image"), ["base"]);
    assert!(world.cloud.names("disk").is_empty());
}

/// A destroy keeps what depends on an excluded object, and says so.
#[tokio::test(start_paused = true)]
async fn what_depends_on_what_is_left_out_of_a_destroy_is_named() {
    let world = applied(CHAIN).await;
    let said = async |options| {
        let (_, found, _) = world.plan_with(CHAIN, &options).await;
        let note = found.iter().find(|it| it.summary.contains("excluded one stay"));
        note.and_then(|note| note.detail.clone())
    };
    assert_eq!(said(gone(but("image.base"))).await.as_deref(), Some("unit.chat."));
    for options in [gone(but("unit.chat")), gone(only("unit.chat")), but("image.base")] {
        assert_eq!(said(options).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn leftovers_stay_while_what_is_left_out_uses_them() {
    let world = applied(CHAIN).await;
    let spec = "[local]\n";
    for options in [only("image.base"), but("unit.chat")] {
        assert_eq!(reason(&world, spec, &options, "image.base").await, left_out("unit.chat"));
    }
    world.apply_with(spec, &only("image.base")).await.unwrap();
    assert_eq!(world.cloud.names("image"), ["base"]);
    world.apply(spec).await.unwrap();
    assert!(world.cloud.names("image").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_used_through_what_stays_stays_too() {
    let spec = r#"
[resource.value.a]
input = "a"

[resource.value.b]
input = "${value.a.id}"

[resource.value.c]
input = "${value.b.id}"
"#;
    let world = applied(spec).await;
    let options = gone(but("value.c"));
    assert_eq!(reason(&world, spec, &options, "value.b").await, left_out("value.c"));
    assert_eq!(reason(&world, spec, &options, "value.a").await, left_out("value.b"));
}

#[tokio::test(start_paused = true)]
async fn a_replaced_object_stays_while_what_is_left_out_uses_it() {
    let world = applied(CHAIN).await;
    let other = CHAIN.replace("thin", "full");
    for options in [only("image.base"), but("unit.chat")] {
        let text = text_with(&world, &other, &options).await;
        assert!(text.contains("replace image.base [kind]\ns0 = create image.base"), "{text}");
        assert!(!text.contains("delete") && !text.contains("activate"), "{text}");
        assert!(text.contains("warning:2: the object that image.base has now stays"), "{text}");
    }
    world.apply_with(&other, &only("image.base")).await.unwrap();
    assert!(world.cloud.names("image").contains(&"base".to_owned()), "the old one");
    // Again without the image's user: nothing can be done, because the old image still has the name.
    let text = text_with(&world, &other, &only("image.base")).await;
    assert!(!text.contains("s0"), "{text}");
    // The unit gets the new image, the old image is deleted, and the new one gets its name.
    world.apply(&other).await.unwrap();
    assert_eq!(world.plan_text(&other).await, "");
    assert_eq!(world.cloud.names("image"), ["base"]);
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_deletes_first_is_refused_while_the_object_is_used() {
    let spec = CHAIN.replace("image_id = \"${image.base.id}\"", "disk_id = \"${disk.other.id}\"");
    let spec =
        spec.replace("zone = \"eu\"", "zone = \"eu\"\nlifecycle = { allow_data_loss = true }");
    let world = applied(&spec).await;
    let other = spec.replace("zone = \"eu\"", "zone = \"us\"");
    for options in [only("disk.other"), but("unit.chat")] {
        let text = text_with(&world, &other, &options).await;
        assert!(
            text.contains("error:10: disk.other cannot be replaced while it is used"),
            "{text}"
        );
    }
    // If the new disk is made first, the replace is possible: the names of disks are not unique.
    let first = other.replace("{ allow", "{ create_before_destroy = true, allow");
    let text = text_with(&world, &first, &only("disk.other")).await;
    assert!(text.contains("s1 = activate disk.other after s0\n"), "{text}");
    assert!(!text.contains("delete"), "{text}");
    world.apply_with(&first, &only("disk.other")).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["other", "other"]);
    world.apply(&first).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_ignored_attribute_names_is_not_deleted() {
    let spec = r#"
[resource.disk.d]
name = "d"
size = 10
zone = "eu"
lifecycle = { create_before_destroy = true, allow_data_loss = true }

[resource.unit.u]
name = "u"
disk_id = "${disk.d.id}"
lifecycle = { ignore_changes = ["disk_id"] }
"#;
    let world = applied(spec).await;
    let other = spec.replace("\"eu\"", "\"us\"");
    world.apply(&other).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d", "d"], "the unit still uses the old one");
    world.apply(&other).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d", "d"]);
    // Once the spec ignores nothing, the unit gets the new disk, and the old one is deleted.
    let follows = other.replace("ignore_changes = [\"disk_id\"]", "");
    world.apply(&follows).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d"]);

    // The disk leaves the spec while the unit keeps it.
    let world = applied(spec).await;
    let without = &spec[spec.find("[resource.unit").unwrap()..];
    let without = without.replace("${disk.d.id}", "another");
    for _ in 0..3 {
        world.apply(&without).await.unwrap();
        assert_eq!(world.cloud.names("disk"), ["d"]);
    }

    // A disk that a replace would delete first cannot be replaced.
    let refused = other.replace("create_before_destroy = true, ", "");
    let world = applied(&refused.replace("\"us\"", "\"eu\"")).await;
    let text = world.plan_text(&refused).await;
    assert!(text.contains("error:2: disk.d cannot be replaced while it is used"), "{text}");
}
