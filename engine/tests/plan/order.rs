//! The order of steps.

use engine::value::Value;

use crate::world::{World, check, check_destroy};

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
"#;

#[test]
fn creates_follow_the_references_of_the_spec() {
    check(
        &World::new(),
        SPEC,
        "
create disk.models []
create image.base []
create unit.chat []
s0 = create disk.models
s1 = activate disk.models after s0
s2 = create image.base
s3 = activate image.base after s2
s4 = create unit.chat after s1, s3
s5 = activate unit.chat after s4",
    );
}

#[test]
fn an_applied_spec_plans_nothing() {
    check(&World::of(SPEC), SPEC, "");
}

#[test]
fn a_replace_that_deletes_first_ends_before_its_dependant_is_updated() {
    let moved = SPEC.replace("\"eu\"", "\"us\"\nlifecycle = { allow_data_loss = true }");
    check(
        &World::of(SPEC),
        &moved,
        "
replace disk.models [zone]
update unit.chat [disk_id]
s0 = delete disk.models (disk-1)
s1 = create disk.models after s0
s2 = activate disk.models after s1
s3 = update unit.chat (unit-3) after s2",
    );
}

#[test]
fn a_replace_that_creates_first_deletes_once_its_dependant_is_updated() {
    let changed = SPEC.replace("name = \"base\"", "name = \"base\"\nkind = \"new\"");
    check(
        &World::of(SPEC),
        &changed,
        "
replace image.base [kind]
update unit.chat [image_id]
s0 = create image.base
s1 = update unit.chat (unit-3) after s0
s2 = delete image.base (image-2) after s0, s1
s3 = activate image.base after s0, s2",
    );
}

#[test]
fn a_resource_that_leaves_the_spec_is_drained_and_deleted() {
    let without = &SPEC[..SPEC.find("[resource.unit").unwrap()];
    check(
        &World::of(SPEC),
        without,
        "
delete unit.chat []
s0 = drain unit.chat (unit-3)
s1 = delete unit.chat (unit-3) after s0",
    );
}

#[test]
fn a_destroy_deletes_dependants_first() {
    check_destroy(
        &World::of(SPEC),
        SPEC,
        "
delete disk.models []
delete image.base []
delete unit.chat []
s0 = drain unit.chat (unit-3)
s1 = delete unit.chat (unit-3) after s0
s2 = delete disk.models (disk-1) after s1
s3 = delete image.base (image-2) after s1",
    );
}

#[test]
fn an_object_that_vanished_is_made_again() {
    let mut world = World::of(SPEC);
    world.remove("unit.chat");
    check(
        &world,
        SPEC,
        "
create unit.chat []
s0 = create unit.chat
s1 = activate unit.chat after s0",
    );
}

#[test]
fn a_change_outside_is_put_back() {
    let mut world = World::of(SPEC);
    world.change("unit.chat", "workers", Value::Integer(9));
    check(
        &world,
        SPEC,
        "
update unit.chat [workers]
s0 = update unit.chat (unit-3)",
    );
}

#[test]
fn the_keys_of_for_each_come_and_go() {
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
    check(
        &World::of(spec),
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
    );
}
