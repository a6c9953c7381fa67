//! Replaces in every order, with a fault in each of their calls. The next run applies the new spec, applies
//! the old spec, or destroys everything, and a stranger's objects stay as they are.

use std::sync::Arc;

use engine::diagnostics::{Diagnostics, Severity};
use engine::expression::parse::{Dialect, expression, template};
use engine::plan::input::{Mode, Options, Target};
use engine::schema::{Rule, RuleOn};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};

use crate::cloud::Fault;
use crate::shapes;
use crate::world::{DISK, SERVED, World, converges};

const FAULTS: [Fault; 3] = [Fault::Refused, Fault::LostBefore, Fault::LostAfter];

/// A change of a spec, and the names of the live objects before and after it.
struct Case {
    before: &'static str,
    after: String,
    disks: [&'static [&'static str]; 2],
    units: [&'static [&'static str]; 2],
    images: [&'static [&'static str]; 2],
}

/// Makes a stranger's disk, unit and image, and returns their ids and attributes. The disk and the unit have
/// names that specs use, too.
fn strangers(world: &World) -> Vec<(ObjectId, Attributes)> {
    let name = |text| [("name", Value::string(text))];
    let ids = [
        ("disk", world.cloud.put("disk", &name("d"))),
        ("unit", world.cloud.put("unit", &name("u"))),
        ("image", world.cloud.put("image", &name("other"))),
    ];
    let shared = world.cloud.shared.lock().unwrap();
    ids.into_iter()
        .map(|(ty, id)| {
            let object = shared.objects[&(ty.into(), id.clone())].clone();
            (id, object)
        })
        .collect()
}

fn untouched(world: &World, strangers: &[(ObjectId, Attributes)], what: &str) {
    let shared = world.cloud.shared.lock().unwrap();
    for (id, object) in strangers {
        let found = shared.objects.iter().find(|((_, own), _)| own == id).map(|(_, found)| found);
        assert_eq!(found, Some(object), "{what}: {id} is a stranger's");
    }
}

fn names_are(world: &World, case: &Case, side: usize, what: &str) {
    for (ty, names, stranger) in [
        ("disk", case.disks[side], "d"),
        ("unit", case.units[side], "u"),
        ("image", case.images[side], "other"),
    ] {
        let mut expected: Vec<&str> = names.iter().copied().chain([stranger]).collect();
        expected.sort_unstable();
        assert_eq!(world.cloud.names(ty), expected, "{what}: {ty}");
    }
}

/// The goal of the run after the one that failed.
#[derive(Clone, Copy, Debug)]
enum Then {
    Forwards,
    Backwards,
    Away,
}

/// Gives the `n`-th mutating call of the change a fault, counted from 0, and then runs again. Returns true
/// if there was such a call.
async fn fail_at(case: &Case, fault: Fault, n: u64, then: Then) -> bool {
    let what = format!("{fault:?} at call {n}, then {then:?}");
    let world = World::new();
    let theirs = strangers(&world);
    world.apply(case.before).await.unwrap();
    names_are(&world, case, 0, &what);
    let first = {
        let mut shared = world.cloud.shared.lock().unwrap();
        let first = shared.calls;
        shared.faults.insert(first + n, fault);
        first
    };
    let report = world.apply(&case.after).await.unwrap();
    let struck = {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.faults.clear();
        shared.calls > first + n
    };
    if struck && fault == Fault::Refused {
        assert!(!report.failures.is_empty(), "{what}: a refusal is told");
    }
    untouched(&world, &theirs, &what);
    let (spec, side) = match then {
        Then::Forwards => (&*case.after, 1),
        Then::Backwards => (case.before, 0),
        Then::Away => {
            let report = world.destroy(&case.after).await.unwrap();
            assert!(report.failures.is_empty(), "{what}: {:?}", report.failures);
            untouched(&world, &theirs, &what);
            for ty in ["disk", "unit", "image"] {
                assert_eq!(world.cloud.names(ty).len(), 1, "{what}: {ty}");
            }
            return struck;
        }
    };
    let report = world.apply(spec).await.unwrap();
    assert!(report.failures.is_empty(), "{what}: {:?}", report.failures);
    assert_eq!(world.plan_text(spec).await, "", "{what}");
    names_are(&world, case, side, &what);
    untouched(&world, &theirs, &what);
    struck
}

async fn fail_everywhere(case: &Case, calls_min: u64) {
    for fault in FAULTS {
        for then in [Then::Forwards, Then::Backwards, Then::Away] {
            let mut n = 0;
            while fail_at(case, fault, n, then).await {
                n += 1;
            }
            assert!(n >= calls_min, "{fault:?} {then:?}: only {n} calls");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delete_first_with_dependants() {
    let before = r#"
[resource.disk.d]
name = "d"
size = 10
zone = "eu"
lifecycle = { allow_data_loss = true }

[resource.unit.u]
name = "u"
disk_id = "${disk.d.id}"
workers = 2

[resource.unit.v]
name = "v"
disk_id = "${disk.d.id}"
"#;
    let case = Case {
        before,
        after: before.replace("zone = \"eu\"", "zone = \"us\""),
        disks: [&["d"], &["d"]],
        units: [&["u", "v"], &["u", "v"]],
        images: [&[], &[]],
    };
    fail_everywhere(&case, 5).await;
}

#[tokio::test(start_paused = true)]
async fn create_first_with_dependants_and_a_unique_name() {
    let before = r#"
[resource.image.base]
name = "base"
kind = "one"

[resource.unit.u]
name = "u"
image_id = "${image.base.id}"
workers = 1

[resource.unit.v]
name = "v"
image_id = "${image.base.id}"
"#;
    let case = Case {
        before,
        after: before.replace("\"one\"", "\"two\""),
        disks: [&[], &[]],
        units: [&["u", "v"], &["u", "v"]],
        images: [&["base"], &["base"]],
    };
    fail_everywhere(&case, 5).await;
}

#[tokio::test(start_paused = true)]
async fn the_order_of_a_type_is_overridden() {
    let before = r#"
[resource.disk.d]
name = "d"
size = 10
zone = "eu"
lifecycle = { allow_data_loss = true, create_before_destroy = true }

[resource.unit.u]
name = "u"
disk_id = "${disk.d.id}"

[resource.image.base]
name = "base"
kind = "one"
lifecycle = { create_before_destroy = false }
"#;
    let case = Case {
        before,
        after: before.replace("\"eu\"", "\"us\"").replace("\"one\"", "\"two\""),
        disks: [&["d"], &["d"]],
        units: [&["u"], &["u"]],
        images: [&["base"], &["base"]],
    };
    fail_everywhere(&case, 7).await;
}

#[tokio::test(start_paused = true)]
async fn both_ends_of_a_dependency_and_some_come_and_go() {
    let before = r#"
[resource.disk.d]
name = "d"
size = 10
zone = "eu"
lifecycle = { allow_data_loss = true }

[resource.image.base]
name = "base"
kind = "one"

[resource.unit.u]
name = "u"
disk_id = "${disk.d.id}"
image_id = "${image.base.id}"
workers = 3

[resource.unit.old]
name = "old"
image_id = "${image.base.id}"
"#;
    let after = before
        .replace("\"eu\"", "\"us\"")
        .replace("\"one\"", "\"two\"")
        .replace("resource.unit.old", "resource.unit.new")
        .replace("\"old\"", "\"new\"");
    let case = Case {
        before,
        after,
        disks: [&["d"], &["d"]],
        units: [&["old", "u"], &["new", "u"]],
        images: [&["base"], &["base"]],
    };
    fail_everywhere(&case, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_unique_name_moves_while_its_bearer_is_replaced() {
    let before = r#"
[resource.image.a]
name = "one"
kind = "x"

[resource.image.b]
name = "two"
kind = "y"

[resource.unit.u]
name = "u"
image_id = "${image.a.id}"
"#;
    // `image.a` is deleted, and `image.b` takes its name and gets another kind.
    let after = r#"
[resource.image.b]
name = "one"
kind = "z"

[resource.unit.u]
name = "u"
image_id = "${image.b.id}"
"#;
    let case = Case {
        before,
        after: after.to_owned(),
        disks: [&[], &[]],
        units: [&["u"], &["u"]],
        images: [&["one", "two"], &["one"]],
    };
    fail_everywhere(&case, 4).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_replace_left_goes_after_its_users_and_before_the_name() {
    let spec = |kind: &str| {
        format!(
            "[resource.image.base]\nname = 'base'\nkind = '{kind}'\n\
             [resource.unit.u]\nname = 'u'\nimage_id = '${{image.base.id}}'\n"
        )
    };
    let world = World::new();
    world.apply(&spec("one")).await.unwrap();
    // The new image is made, and the update of the unit is refused.
    world.cloud.strike(1, Fault::Refused);
    world.apply(&spec("two")).await.unwrap();
    let text = world.plan_text(&spec("two")).await;
    assert_eq!(
        text,
        "update image.base [name]\ndelete image.base (deposed) []\nupdate unit.u [image_id]\n\
         s0 = update unit.u (unit-2)\ns1 = delete image.base (image-1) after s0\n\
         s2 = activate image.base (image-3) after s1\n"
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_replaces_a_disk_must_be_allowed_to_lose_its_data() {
    let world = World::new();
    let spec = |n: u8, lifecycle: &str| {
        format!(
            "[resource.value.v]\ninput = {n}\n[resource.disk.d]\nname = \"d\"\nsize = 1\n\
             zone = \"eu\"\nlifecycle = {{ {lifecycle} }}\n"
        )
    };
    let triggered = "replace_triggered_by = [\"${value.v.input}\"]";
    world.apply(&spec(1, triggered)).await.unwrap();
    let text = world.plan_text(&spec(2, triggered)).await;
    assert!(text.contains("error:3: replacing disk.d would lose its data"), "{text}");
    let options = engine::plan::input::Options {
        replace: vec!["disk.d".parse().unwrap()],
        ..engine::plan::input::Options::default()
    };
    let (_, found, _) = world.plan_with(&spec(1, triggered), &options).await;
    assert!(found.iter().any(|d| d.summary == "replacing disk.d would lose its data"), "{found:?}");
    let (plan, found, _) = world.plan_with(&spec(1, "allow_data_loss = true"), &options).await;
    assert!(!found.has_errors(), "{found:?}");
    assert_eq!(plan.changes[0].loss.as_deref(), Some("its data is lost"));
}

#[tokio::test(start_paused = true)]
async fn a_replace_lets_go_of_what_is_to_be_retained() {
    let world = World::new();
    let spec = |zone: &str| {
        format!(
            "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"{zone}\"\n\
             lifecycle = {{ retain = true }}\n\
             [resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n"
        )
    };
    world.apply(&spec("eu")).await.unwrap();
    let expected = "replace disk.d [zone]
update unit.u [disk_id]
s0 = create disk.d
s1 = activate disk.d after s0
s2 = forget disk.d after s1
s3 = update unit.u (unit-2) after s1
";
    assert_eq!(world.plan_text(&spec("us")).await, expected);
    // While there is no new disk, the old one is in service.
    world.cloud.strike(0, Fault::Refused);
    assert_eq!(world.apply(&spec("us")).await.unwrap().failures.len(), 1);
    assert_eq!(world.plan_text(&spec("eu")).await, "");
    let report = world.apply(&spec("us")).await.unwrap();
    assert!(report.failures.is_empty(), "{report:?}");
    assert_eq!(world.cloud.names("disk"), ["d", "d"]);
    assert_eq!(world.plan_text(&spec("us")).await, "");
    let image = |kind: &str| {
        format!(
            "[resource.image.i]\nname = \"i\"\nkind = \"{kind}\"\nlifecycle = {{ retain = true }}\n"
        )
    };
    let other = World::new();
    other.apply(&image("a")).await.unwrap();
    let text = other.plan_text(&image("b")).await;
    assert!(text.contains("error:2: the old image.i keeps the name \"i\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_stopped_after_its_create_goes_on() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    let other = SERVED.replace("thin", "full");
    // The new image is made, and the update of its user is refused.
    world.cloud.strike(1, Fault::Refused);
    world.apply(&other).await.unwrap();
    converges(&world, &other).await;
    assert_eq!(world.cloud.names("image"), ["base"]);
}

/// A rule on deletes also refuses a replace, which deletes the old object. A rule that cannot be evaluated
/// refuses the delete and the replace, too.
#[tokio::test(start_paused = true)]
async fn a_rule_of_deletes_holds_for_a_replace() {
    for (assert, said) in [
        ("old.size < 5", "large disks stay"),
        ("old.nothing < 5", "a rule of disk cannot be evaluated"),
    ] {
        let mut world = World::new();
        world.apply(DISK).await.unwrap();
        world.cloud.change_type("disk", |disk| {
            disk.rules.push(Rule {
                on: RuleOn::Delete,
                severity: Severity::Error,
                assert: expression(assert, Dialect::Spec).unwrap(),
                message: template("large disks stay", Dialect::Spec).unwrap(),
                help: None,
                attribute: None,
            });
        });
        let replaced = |flag: &str| {
            format!("{}lifecycle = {{ allow_data_loss = true{flag} }}\n", DISK.replace("eu", "us"))
        };
        let text = world.plan_text(&replaced("")).await;
        assert!(text.contains(said), "{text}");
        assert!(!world.plan_text(&replaced(", retain = true")).await.contains("error"));
        let gone = world.plan_text("[local]\n").await;
        assert!(gone.contains(said), "{gone}");
    }
}

/// Returns a world whose API does not delete an image that a unit names.
fn holding() -> World {
    let mut world = World::new();
    let mut schema = (*world.cloud.schema).clone();
    let unit = Arc::make_mut(schema.types.get_mut("unit").unwrap());
    unit.attributes.get_mut("image_id").unwrap().holds = Some("image".into());
    world.cloud.schema = Arc::new(schema);
    world
}

const HELD: &str = r#"
[resource.image.base]
name = "base"
kind = "one"
lifecycle = { create_before_destroy = false }

[resource.unit.u]
name = "u"
image_id = "${image.base.id}"
"#;

/// The unit gives up the old image only once a new image exists, so no apply could delete the old one first.
/// The plan is refused.
#[tokio::test(start_paused = true)]
async fn what_is_held_until_there_is_another_is_not_deleted_first() {
    let world = holding();
    world.apply(HELD).await.unwrap();
    let other = HELD.replace("\"one\"", "\"two\"");
    let (_, said, _) = world.plan(&other).await;
    let errors: Vec<_> = said.iter().map(|it| (&*it.summary, it.help.as_deref())).collect();
    let help = "remove create_before_destroy from image.base: the new object is then created first";
    let summary = "image.base cannot be deleted before its replacement exists";
    assert_eq!(errors, [(summary, Some(help))]);
    // The way out that the help names works.
    let first = other.replace("lifecycle = { create_before_destroy = false }", "");
    converges(&world, &first).await;
}

/// A retained object names the image, and no run changes that object any more. The API would refuse the
/// delete of the image in each apply, so the plan is refused.
#[tokio::test(start_paused = true)]
async fn what_an_object_names_that_is_let_go_is_not_deleted() {
    let retain = "lifecycle = { retain = true }\n";
    let world = holding();
    let one = format!("{HELD}{retain}");
    world.apply(&one).await.unwrap();
    let destroying = Options { mode: Mode::Destroy, ..Options::default() };
    let said = |found: &Diagnostics| -> Vec<String> {
        found.iter().map(|found| found.summary.clone()).collect()
    };
    let summary = "image.base cannot be deleted while a retained object refers to it";
    assert_eq!(said(&world.plan_with(&one, &destroying).await.1), [summary]);
    // The old object that a replace retains also names the image.
    let replaced = one.replace("\"one\"", "\"two\"").replace("name = \"u\"", "name = \"v\"");
    let forced = Options { replace: vec!["unit.u".parse().unwrap()], ..Options::default() };
    let found = said(&world.plan_with(&replaced, &forced).await.1);
    assert!(found.iter().any(|it| it == summary), "{found:?}");
    // Both ways out work: to retain the image, too, and to leave it out.
    let both = one.replace("lifecycle = { create_before_destroy = false }\n", retain);
    assert_eq!(said(&world.plan_with(&both, &destroying).await.1), [""; 0]);
    let options =
        Options { excludes: vec![Target::Block("image.base".parse().unwrap())], ..destroying };
    let found = world.plan_with(&one, &options).await.1;
    assert!(!found.has_errors(), "{found:?}");
}

/// A reference left the spec together with the image that it named, so no run clears it. The API would
/// refuse the delete of the image in each apply, so the plan is refused.
#[tokio::test(start_paused = true)]
async fn what_an_object_names_that_stays_is_not_deleted() {
    let world = holding();
    world.apply(HELD).await.unwrap();
    let alone = "[resource.unit.u]\nname = \"u\"\n";
    let summary = "image.base cannot be deleted while unit.u refers to it";
    for spec in [alone.to_owned(), format!("{alone}image_id = \"image-1\"\n")] {
        let (_, said, _) = world.plan(&spec).await;
        let errors: Vec<_> = said.iter().map(|it| &*it.summary).collect();
        assert_eq!(errors, [summary], "{said:?}");
    }
    // There are two ways out: to leave the image out, and to clear the reference.
    let options = Options {
        excludes: vec![Target::Block("image.base".parse().unwrap())],
        ..Options::default()
    };
    assert!(!world.plan_with(alone, &options).await.1.has_errors());
    converges(&world, &format!("{alone}image_id = \"\"\n")).await;
    assert_eq!(world.cloud.names("image"), [""; 0]);
}

/// A reference left the spec in an earlier run, and the live unit still has it. The plan refuses to delete
/// the image.
#[tokio::test(start_paused = true)]
async fn what_an_object_named_before_is_not_deleted_either() {
    let world = holding();
    world.apply(HELD).await.unwrap();
    let image = "[resource.image.base]\nname = \"base\"\nkind = \"one\"\n";
    let unit = "[resource.unit.u]\nname = \"u\"\n";
    world.apply(&format!("{image}{unit}")).await.unwrap();
    let (_, said, _) = world.plan(unit).await;
    let said: Vec<_> = said.iter().map(|it| it.detail.as_deref()).collect();
    let silent = "The spec does not set `image_id`, so it stays as it is. \
                  The API refuses to delete an object that is referred to there.";
    assert_eq!(said, [Some(silent)]);
    // The image can be deleted together with the unit that names it.
    world.apply("[local]\n").await.unwrap();
}

/// A replace deletes the image first if the unit gives it up before, is deleted before, or names it in an
/// attribute that does not hold it.
#[tokio::test(start_paused = true)]
async fn what_is_let_go_in_time_is_deleted_first() {
    let world = holding();
    world.apply(HELD).await.unwrap();
    let other = HELD.replace("\"one\"", "\"two\"");
    converges(&world, &other.replace("${image.base.id}", "")).await;

    let world = holding();
    let elsewhere = HELD.replace("image_id = ", "secret = ");
    world.apply(&elsewhere).await.unwrap();
    converges(&world, &elsewhere.replace("\"one\"", "\"two\"")).await;

    let world = holding();
    world.apply(HELD).await.unwrap();
    let (alone, _) = other.split_once("[resource.unit.u]").unwrap();
    converges(&world, alone).await;
}

/// The plan of a replace names the loss that comes with the delete of the old object. Only a loss of data
/// is also refused.
#[tokio::test(start_paused = true)]
async fn a_replace_names_what_is_lost_with_the_old_object() {
    let mut world = World::new();
    let mut schema = shapes::schema();
    let image = Arc::make_mut(schema.types.get_mut("image").unwrap());
    image.delete_effect = Some("its address changes".to_owned());
    world.cloud.schema = Arc::new(schema);
    let spec = "[resource.image.i]\nname = 'i'\nkind = 'thin'\n";
    world.apply(spec).await.unwrap();
    let (plan, ..) = world.plan(&spec.replace("thin", "full")).await;
    assert_eq!(plan.changes[0].loss.as_deref(), Some("its address changes"));
}

fn made_first(zone: &str) -> String {
    let disk = DISK.replace("eu", zone);
    format!(
        "{disk}lifecycle = {{ create_before_destroy = true, allow_data_loss = true }}\n\
         [resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n"
    )
}

/// The names of disks are not unique. A replace that creates first makes the new disk whole, gives it to its
/// user, and then deletes the old disk.
#[tokio::test(start_paused = true)]
async fn what_is_made_first_is_whole_before_the_old_one_goes() {
    let world = World::new();
    world.apply(&made_first("eu")).await.unwrap();
    let text = world.plan_text(&made_first("us")).await;
    insta::assert_snapshot!(text, @"
    replace disk.d [zone]
    update unit.u [disk_id]
    s0 = create disk.d
    s1 = activate disk.d after s0
    s2 = update unit.u (unit-2) after s1
    s3 = delete disk.d (disk-1) after s1, s2
    ");
    // If the activation of the new disk is refused, the next run also makes it whole before it goes on.
    world.cloud.strike(1, Fault::Refused);
    world.apply(&made_first("us")).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.clear();
    assert_eq!(world.cloud.names("disk").len(), 2, "the old one is in service");
    let unit = world.state().await.entries[&"unit.u".parse().unwrap()].clone();
    assert!(format!("{unit:?}").contains("disk-1"), "{unit:?}");
    let text = world.plan_text(&made_first("us")).await;
    insta::assert_snapshot!(text, @"
    update disk.d [name]
    delete disk.d (deposed) []
    update unit.u [disk_id]
    s0 = activate disk.d (disk-3)
    s1 = update unit.u (unit-2) after s0
    s2 = delete disk.d (disk-1) after s0, s1
    ");
    world.cloud.strike(0, Fault::Refused);
    world.apply(&made_first("us")).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.clear();
    assert_eq!(world.cloud.names("disk").len(), 2, "the old one is in service");
    converges(&world, &made_first("us")).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// A run could not make the new disk whole. The next spec replaces that disk or takes the change back, or the
/// disk is gone: the old disk stays in service until another one is whole.
#[tokio::test(start_paused = true)]
async fn what_is_in_service_stays_until_another_one_is_whole() {
    for (zone, is_gone) in [("asia", false), ("eu", false), ("us", true), ("asia", true)] {
        let world = World::new();
        world.apply(&made_first("eu")).await.unwrap();
        world.cloud.strike(1, Fault::Refused);
        world.apply(&made_first("us")).await.unwrap();
        let forget = |world: &World| {
            let mut shared = world.cloud.shared.lock().unwrap();
            shared.faults.clear();
            if is_gone {
                shared.objects.retain(|(_, id), _| &*id.0 != "disk-3");
            }
        };
        forget(&world);
        let text = world.plan_text(&made_first(zone)).await;
        let activation = text.lines().find(|line| line.contains("= activate disk.d")).unwrap();
        let activation = activation.split(' ').next().unwrap();
        let last = text.lines().find(|line| line.contains("= delete disk.d (disk-1)")).unwrap();
        assert!(last.contains(activation), "{zone} {is_gone}:\n{text}");
        world.cloud.strike(0, Fault::Refused);
        world.apply(&made_first(zone)).await.unwrap();
        world.cloud.shared.lock().unwrap().faults.clear();
        assert!(world.cloud.names("disk").contains(&"d".to_owned()), "{zone} {is_gone}");
        converges(&world, &made_first(zone)).await;
        assert_eq!(world.cloud.names("disk"), ["d"]);
    }
}
