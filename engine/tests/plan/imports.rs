//! `[[import]]` by name: from the live objects to a plan.

use engine::plan::input::Observed;
use engine::state::ObjectId;
use engine::value::{Attributes, Value};

use crate::world::{World, check};

const SPEC: &str = r#"
[resource.disk.d]
name = "d"
size = 100
zone = "eu"
[[import]]
to = "disk.d"
name = "d"
"#;

/// Returns a world in which disks with these ids have the name `d`.
fn world(ids: &[&str]) -> World {
    let mut world = World::new();
    for id in ids {
        world.stranger("disk", "d", id);
    }
    let text = |value: &str| Value::string(value);
    let attributes = [("id", text("x-1")), ("name", text("d")), ("zone", text("eu"))];
    let mut attributes: Attributes =
        attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
    attributes.insert("size".into(), Value::Integer(50));
    let key = ("disk.d".parse().unwrap(), ObjectId("x-1".into()));
    world.observations.objects.insert(key, Observed::Live(attributes));
    world
}

#[test]
fn the_only_object_of_a_name_is_taken_over() {
    check(&world(&["x-1"]), SPEC, "import disk.d [size]\ns0 = update disk.d (x-1)");
    let none = world(&[]).plan_text(SPEC);
    assert_eq!(none, "error:8: the object named `d` cannot be taken over as disk.d\n");
    let two = world(&["x-1", "x-2"]).plan_text(SPEC);
    assert_eq!(two, "error:8: the object named `d` cannot be taken over as disk.d\n");
}

#[test]
fn an_import_that_is_done_does_nothing() {
    let plain = SPEC.split("[[import]]").next().unwrap();
    check(&World::of(plain), SPEC, "");
}

#[test]
fn two_imports_of_one_object_are_refused() {
    let spec = format!(
        "{SPEC}[resource.disk.e]\nname = \"e\"\nsize = 100\nzone = \"eu\"\n[[import]]\nto = \"disk.e\"\nid = \"x-1\"\n"
    );
    let text = world(&["x-1"]).plan_text(&spec);
    assert!(text.contains("error:8: the object named `d` cannot be taken over"), "{text}");
}

/// An import does not replace a disk whose zone no answer shows: the zone cannot be changed, and it is not
/// known.
#[test]
fn what_nobody_can_know_replaces_nothing() {
    let mut taken_over = world(&["x-1"]);
    taken_over.hide("disk", "zone");
    check(&taken_over, SPEC, "import disk.d [size]\ns0 = update disk.d (x-1)");
    // The state has the zone from the next run on, so a change of it is a difference then.
    let plain = SPEC.split("[[import]]").next().unwrap();
    let mut applied = World::of(plain);
    applied.hide("disk", "zone");
    check(&applied, plain, "");
    assert_eq!(applied.seen(plain, "zone"), "\"eu\"");
    let other = World::of(plain).plan_text(&plain.replace("\"eu\"", "\"us\""));
    assert!(other.contains("replacing disk.d would lose its data"), "{other}");
}
