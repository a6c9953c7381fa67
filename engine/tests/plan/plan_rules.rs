//! Rules that look at other objects of the plan.

use std::fmt::Write as _;

use engine::diagnostics::Severity;
use engine::expression::parse::{Dialect, expression, template};
use engine::schema::{Rule, RuleOn};

use crate::world::{World, check, check_destroy};

/// Returns the errors of the plan of a spec.
fn errors(world: &World, spec: &str) -> String {
    let text = world.plan_text(spec);
    text.lines().filter(|line| line.starts_with("error")).collect::<Vec<_>>().join("\n")
}

/// Adds two rules: at most five workers in all, and a disk of a unit does not go before the unit.
fn ruled(world: &mut World) {
    let rule = |on, assert: &str, message: &str| Rule {
        on,
        severity: Severity::Error,
        assert: expression(assert, Dialect::Spec).unwrap(),
        message: template(message, Dialect::Spec).unwrap(),
        help: None,
        attribute: Some("workers".into()),
    };
    let sum = "sum([for it in plan.resources : it.new.workers if it.type == \"unit\"])";
    world.rule("unit", rule(RuleOn::Any, &format!("{sum} <= 5"), &format!("${{{sum}}} of 5")));
    let disks = "[for it in plan.resources : it.new.name if it.type == \"disk\"]";
    let exists = format!("new.image_id == null || contains({disks}, new.image_id)");
    world.rule("unit", rule(RuleOn::Any, &exists, "no disk ${new.image_id}"));
    let left = "length([for it in plan.resources : it if it.type == \"disk\"]) > 0";
    world.rule("disk", rule(RuleOn::Delete, left, "the last disk"));
}

fn units(workers: &[u32]) -> String {
    workers.iter().enumerate().fold(String::new(), |mut text, (at, workers)| {
        let _ = writeln!(text, "[resource.unit.u{at}]\nname = \"u{at}\"\nworkers = {workers}");
        text
    })
}

const DISK: &str = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n";

#[test]
fn a_quota_counts_what_stays_too() {
    let mut world = World::of(&units(&[2, 2]));
    ruled(&mut world);
    check(&world, &units(&[2, 2]), "");
    check(
        &world,
        &units(&[2, 3]),
        "
update unit.u1 [workers]
s0 = update unit.u1 (unit-2)",
    );
    assert_eq!(errors(&world, &units(&[2, 4])), "error:6: 6 of 5");
    // A limit that is already exceeded is not reported again for a change that does not add to it.
    let mut over = World::of(&units(&[4, 4]));
    ruled(&mut over);
    check(&over, &units(&[4, 4]), "");
}

#[test]
fn another_object_is_looked_for() {
    let mut world = World::new();
    ruled(&mut world);
    let unit = |image: &str| format!("{DISK}{}image_id = \"{image}\"\n", units(&[1]));
    assert_eq!(errors(&world, &unit("e")), "error:7: no disk e");
    // The name of the other disk is known only during apply, and it may be the one.
    let open = "[resource.disk.x]\nname = \"${unit.u1.id}\"\nsize = 1\nzone = \"eu\"\n\
                [resource.unit.u1]\nname = \"u1\"\n";
    for (spec, fits) in [(unit("d"), true), (unit("e") + open, true), (unit("e"), false)] {
        assert_eq!(errors(&world, &spec).is_empty(), fits, "{spec}");
    }
}

#[test]
fn a_delete_looks_at_what_stays() {
    let mut world = World::of(DISK);
    ruled(&mut world);
    check_destroy(
        &world,
        DISK,
        "
delete disk.d []
s0 = delete disk.d (disk-1)
error:1: the last disk",
    );
    let other = DISK.replace("disk.d", "disk.e").replace("\"d\"", "\"e\"");
    assert_eq!(errors(&world, &other), "");
}
