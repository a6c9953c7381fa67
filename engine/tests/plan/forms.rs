//! Values that differ only in form.

use engine::value::Value;

use crate::world::{World, check};

const SITE: &str = "[resource.site.s]\nname = \"s\"\nspan = \"90m\"\n";

#[test]
fn another_form_of_the_same_is_neither_a_change_nor_drift() {
    let mut world = World::of(SITE);
    world.change("site.s", "span", Value::string("1h30m0s"));
    check(&world, SITE, "");
    check(&world, &SITE.replace("90m", "5400s"), "");
    check(
        &world,
        &SITE.replace("90m", "91m"),
        "
update site.s [span]
s0 = update site.s (site-1)",
    );
}

#[test]
fn what_cannot_be_read_in_the_form_is_compared_as_it_is() {
    let spec = SITE.replace("90m", "soon");
    let mut world = World::of(&spec);
    check(&world, &spec, "");
    world.change("site.s", "span", Value::string("Soon"));
    assert!(world.plan_text(&spec).contains("update site.s [span]"));
}
