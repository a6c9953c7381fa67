//! Attributes that the last applied spec gave and this one does not.

use engine::value::Value;

use crate::world::{World, check};

const SITE: &str = "[resource.site.s]\nname = \"s\"\nsize = 1\nlabel = \"x\"\nregion = \"eu\"\n";
const BARE: &str = "[resource.site.s]\nname = \"s\"\nsize = 1\n";

#[test]
fn what_the_type_can_clear_is_cleared() {
    let mut world = World::of(SITE);
    check(
        &world,
        BARE,
        "
update site.s [label region]
s0 = update site.s (site-1)",
    );
    assert_eq!(world.planned(BARE, "site.s"), "id = \"site-1\", name = \"s\", size = 1");
    world.apply(BARE);
    check(&world, BARE, "");
    // A value that comes back is cleared again; a value that the API chooses by itself stays.
    world.change("site.s", "region", Value::string("us"));
    check(&world, BARE, "");
    world.change("site.s", "label", Value::string("theirs"));
    check(
        &world,
        BARE,
        "
update site.s [label]
s0 = update site.s (site-1)",
    );
}

#[test]
fn what_has_no_value_needs_no_call() {
    let mut world = World::of(SITE);
    world.change("site.s", "label", Value::Null);
    check(&world, &SITE.replace("label = \"x\"\n", ""), "");
}

#[test]
fn a_null_is_no_value() {
    let null = SITE.replace("\"x\"", "'${1 > 2 ? \"x\" : null}'");
    check(
        &World::of(SITE),
        &null,
        "
update site.s [label]
s0 = update site.s (site-1)",
    );
}

#[test]
fn what_the_spec_ignores_stays() {
    let ignores = "lifecycle = { ignore_changes = [\"label\", \"region\"] }\n";
    let text = World::of(SITE).plan_text(&format!("{BARE}{ignores}"));
    assert!(!text.contains("update") && text.contains("`label` is no longer managed"), "{text}");
}

#[test]
fn what_nothing_clears_stays_and_is_said() {
    let text = World::of(SITE).plan_text(&SITE.replace("size = 1\n", ""));
    assert!(!text.contains("update site"), "{text}");
    assert!(text.contains("`size` is no longer managed, stays 1"), "{text}");
}
