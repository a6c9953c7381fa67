//! Look-ups of data blocks.

use std::collections::BTreeMap;

use engine::value::Value;

use crate::world::{World, check, check_destroy};

/// Returns a world with three disks that others made.
fn world() -> World {
    let mut world = World::new();
    for (id, size, zone) in [("d1", 10, "eu"), ("d2", 20, "eu"), ("d3", 20, "us")] {
        let attributes = [("size", Value::Integer(size)), ("zone", Value::string(zone))];
        world.list("disk", id, &attributes);
    }
    world
}

fn unit(reference: &str) -> String {
    format!("[resource.unit.u]\nname = \"u\"\ndisk_id = '${{{reference}}}'\n")
}

#[test]
fn an_object_is_found_by_what_it_has() {
    for conditions in [
        "name = \"d2\"",
        "id = \"d2\"",
        "size = 20\nzone = \"eu\"",
        "size = \"${10 * 2}\"\nzone = \"${local.z}\"",
    ] {
        let spec = format!(
            "[local]\nz = \"eu\"\n[data.disk.d]\n{conditions}\n{}workers = \"${{data.disk.d.size}}\"\n",
            unit("data.disk.d.id")
        );
        assert_eq!(
            world().planned(&spec, "unit.u"),
            "disk_id = \"d2\", name = \"u\", workers = 20",
            "{conditions}"
        );
    }
}

#[test]
fn what_is_looked_up_is_no_dependency_and_no_change() {
    let spec = format!("[data.disk.d]\nname = \"d1\"\n{}", unit("data.disk.d.id"));
    check(
        &world(),
        &spec,
        "
create unit.u []
s0 = create unit.u
s1 = activate unit.u after s0",
    );
    let mut world = world();
    world.apply(&spec);
    check(&world, &spec, "");
    let listed = world.observations.listed.get_mut(&("cloud".into(), "disk".into())).unwrap();
    listed.retain(|id, _| &*id.0 != "d1");
    world.list("disk", "d9", &[("name", Value::string("d1"))]);
    let changed = world.plan_text(&spec);
    assert!(changed.starts_with("update unit.u [disk_id]"), "{changed}");
    check_destroy(
        &world,
        &spec,
        "delete unit.u []\ns0 = drain unit.u (unit-1)\ns1 = delete unit.u (unit-1) after s0",
    );
}

#[test]
fn what_refers_to_data_depends_on_what_that_comes_from() {
    let spec = format!(
        "[resource.disk.own]\nname = \"d2\"\nsize = 1\nzone = \"eu\"\n[data.disk.d]\nname = \"${{disk.own.name}}\"\n{}",
        unit("data.disk.d.id")
    );
    assert_eq!(
        world().planned(&spec, "unit.u"),
        "disk_id = \"d2\", name = \"u\", workers = 0, after disk.own"
    );
}

#[test]
fn one_look_up_for_each() {
    let spec = r#"
[data.disk.d]
for_each = { a = "d1", b = "d3" }
name = "${each.value}"

[resource.unit.u]
for_each = "${data.disk.d}"
name = "u-${each.key}"
disk_id = '${each.value.zone}-${data.disk.d[each.key].id}-${data.disk.d["a"].size}'

[data.unit.none]
for_each = []
name = "x"

[output.sizes]
value = '${[for d in data.disk.d : d.size]}'
"#;
    let mut world = world();
    world.list("unit", "u9", &[]);
    assert_eq!(
        world.planned(spec, "unit.u[b]"),
        "disk_id = \"us-d3-10\", name = \"u-b\", workers = 0"
    );
}

#[test]
fn conditions_of_a_look_up_are_judged_while_planning() {
    let said = |kind: &str, condition: &str| {
        let spec = format!(
            "[variable.least]\ntype = \"integer\"\ndefault = 15\n\
             [resource.disk.own]\nname = \"n\"\nsize = 1\nzone = \"eu\"\n\
             [data.disk.d]\nname = \"d1\"\n[[data.disk.d.lifecycle.{kind}]]\n\
             condition = '{condition}'\nmessage = \"at least ${{var.least}}\"\n{}",
            unit("data.disk.d.id")
        );
        world().plan_text(&spec)
    };
    for (kind, condition, line) in [
        ("postcondition", "self.size < var.least", "create disk.own []"),
        ("precondition", "var.least > 1", "create disk.own []"),
        ("postcondition", "self.size > var.least", "error:11: at least 15"),
        ("precondition", "var.least > 20", "error:11: at least 15"),
        (
            "postcondition",
            "self.id != disk.own.id",
            "error:11: a postcondition of data.disk.d is known only after apply",
        ),
    ] {
        let said = said(kind, condition);
        assert!(said.lines().any(|it| it == line), "{kind} {condition}: {said}");
    }
}

#[test]
fn not_exactly_one_object() {
    let said = |conditions: &str| {
        let spec = format!("[data.disk.d]\n{conditions}\n");
        world().said(&spec)
    };
    for (conditions, expected) in [
        (
            "name = \"d22\"",
            "nothing is found by this look-up [\"d22\"] none of the 3 listed objects has `name = \"d22\"` | did you mean `name = \"d2\"`?",
        ),
        (
            "name = \"d3\"\nzone = \"eu\"",
            "nothing is found by this look-up [\"d3\"] of the 3 listed objects there are 2 with `zone = \"eu\"`; none of these has `name = \"d3\"` | did you mean `name = \"d1\"`?",
        ),
        (
            "size = 20",
            "2 objects are meant by this look-up [[data.disk.d]] all of these match: d2, d3 | name its id, or one of these too: `id`, `name`, `zone`",
        ),
        (
            "name = \"${null}\"",
            "nothing is asked by this look-up [[data.disk.d]] every attribute that it gives is null | give one of them a value",
        ),
    ] {
        assert_eq!(said(conditions), expected);
    }
    let mut empty = World::new();
    empty.observations.listed.insert(("cloud".into(), "disk".into()), BTreeMap::new());
    let said = empty.said("[data.disk.d]\nname = \"d1\"\n");
    assert!(said.contains("the API lists no `disk` at all"), "{said}");
}

#[test]
fn a_secret_condition_is_not_shown() {
    let mut world = world();
    world.list("unit", "u1", &[]);
    world.variables.insert("s".to_owned(), "hunter2".to_owned());
    let spec =
        "[variable.s]\ntype = \"string\"\nsensitive = true\n[data.unit.d]\nname = \"${var.s}\"\n";
    let said = world.said(spec);
    assert!(said.contains("none of the 1 listed objects has this `name`"), "{said}");
    assert!(!said.contains("hunter2"));
}

#[test]
fn what_is_not_known_yet_is_refused() {
    let spec = "[resource.disk.own]\nname = \"x\"\nsize = 1\nzone = \"eu\"\n[data.disk.d]\nid = \"${disk.own.id}\"\n";
    let said = world().said(spec);
    assert!(said.starts_with("`id` of this look-up is known only after apply"), "{said}");
    let spec = "[resource.disk.own]\nname = \"x\"\nsize = 1\nzone = \"eu\"\n[data.disk.d]\nname = \"d1\"\ndepends_on = [\"disk.own\"]\n";
    let said = world().said(spec);
    assert!(said.contains("it comes after disk.own, which this plan changes"), "{said}");
    // Once the object exists, it is looked up.
    let mut done = world();
    done.apply(&spec.replace("[data.disk.d]\nname = \"d1\"\ndepends_on = [\"disk.own\"]\n", ""));
    check(&done, spec, "");
}

#[test]
fn an_object_of_the_same_state_is_a_warning() {
    let mut world = world();
    let own = "[resource.disk.own]\nname = \"x\"\nsize = 1\nzone = \"eu\"\n";
    world.apply(own);
    world.list("disk", "disk-1", &[]);
    let spec = format!("{own}[data.disk.d]\nid = \"disk-1\"\n");
    check(&world, &spec, "warning:5: data.disk.d looks up what this spec manages");
}

#[test]
fn secrets_of_what_is_looked_up_cannot_be_sent() {
    let mut world = world();
    let key = &world.snapshot.seal_key;
    let secret =
        engine::stored::seal(&Value::string("hunter2"), &engine::value::Paths::whole(), key);
    world.list("unit", "u1", &[("secret", secret)]);
    let spec = "[data.unit.d]\nname = \"u1\"\n[resource.unit.u]\nname = \"x\"\nsecret = \"${data.unit.d.secret}\"\n";
    let lacks = world.lacks(spec);
    assert_eq!(
        lacks,
        "the value of `data.unit.d.secret` is not available, and `secret` cannot be sent without it"
    );
    // The other attributes of the object are not secret.
    let spec = "[variable.s]\ntype = \"string\"\nsensitive = true\n[data.unit.d]\nname = \"u1\"\n[resource.unit.u]\nname = \"x\"\nsecret = \"${var.s}-${data.unit.d.id}\"\n";
    world.variables.insert("s".to_owned(), "hunter3".to_owned());
    assert_eq!(world.lacks(spec), "");
    assert_eq!(world.secrets(spec, "unit.u"), "secret = \"${var.s}-u1\"");
}

#[test]
fn a_cycle_through_data_is_found() {
    let spec = "[data.disk.d]\nname = \"${unit.u.name}\"\n[resource.unit.u]\nname = \"${data.disk.d.name}\"\n";
    let said = world().said(spec);
    assert!(said.contains("data.disk.d") && said.contains("cycle"), "{said}");
}
