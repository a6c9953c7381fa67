//! `[[moved]]` and `[[removed]]`: from state and spec to a plan.

use engine::plan::input::Options;

use crate::world::{World, check, check_destroy};

const DISKS: &str = r#"
[resource.disk.a]
name = "a"
size = 100
zone = "eu"
[resource.unit.u]
name = "u"
disk_id = "${disk.a.id}"
"#;

const MOVED: &str = r#"
[[moved]]
from = "disk.a"
to = "disk.b"
"#;

/// Returns the spec with the disks, in which `a` is called `b`.
fn renamed() -> String {
    format!("{}{MOVED}", DISKS.replace("disk.a", "disk.b"))
}

#[test]
fn a_block_that_is_renamed_keeps_its_object_and_its_users() {
    let mut world = World::of(DISKS);
    check(&world, &renamed(), "move disk.b from disk.a []");
    world.apply(&renamed());
    check(&world, &renamed(), "");
    let users: Vec<String> = world
        .snapshot
        .entries
        .iter()
        .map(|(address, entry)| {
            let on: Vec<String> = entry.dependencies.iter().map(ToString::to_string).collect();
            format!("{address} {}", on.join(" "))
        })
        .collect();
    assert_eq!(users, ["disk.b ", "unit.u disk.b"]);
}

#[test]
fn a_move_and_a_difference_are_one_change() {
    let world = World::of(DISKS);
    check(
        &world,
        &renamed().replace("100", "200"),
        "
update disk.b from disk.a [size]
s0 = update disk.b (disk-1)",
    );
}

#[test]
fn either_name_is_a_target() {
    let world = World::of(DISKS);
    let spec = renamed().replace("100", "200").replace("name = \"u\"", "name = \"v\"");
    for target in ["disk.a", "disk.b"] {
        let options = Options { targets: vec![target.parse().unwrap()], ..Options::default() };
        let expected = "update disk.b from disk.a [size]\ns0 = update disk.b (disk-1)\n";
        assert_eq!(world.plan_text_with(&spec, &options), expected, "{target}");
    }
    let options = Options { targets: vec!["unit.u".parse().unwrap()], ..Options::default() };
    let other = world.plan_text_with(&spec.replace("200", "100"), &options);
    assert!(other.starts_with("move disk.b from disk.a"), "{other}");
}

#[test]
fn a_destroy_deletes_by_the_new_address() {
    check_destroy(
        &World::of(DISKS),
        &renamed(),
        "
delete disk.b from disk.a []
delete unit.u []
s0 = drain unit.u (unit-2)
s1 = delete unit.u (unit-2) after s0
s2 = delete disk.b (disk-1) after s1",
    );
}

const MANY: &str = r#"
[resource.disk.a]
for_each = ["x", "y"]
name = "${each.key}"
size = 100
zone = "eu"
"#;

#[test]
fn one_becomes_many_and_many_become_one() {
    let one = MANY.replace("for_each = [\"x\", \"y\"]\n", "").replace("${each.key}", "x");
    let to_many = format!("{MANY}[[moved]]\nfrom = \"disk.a\"\nto = 'disk.a[\"x\"]'\n");
    let text = World::of(&one).plan_text(&to_many);
    assert!(text.starts_with("move disk.a[\"x\"] from disk.a []\ncreate disk.a[\"y\"]"), "{text}");
    let to_one = format!("{one}[[moved]]\nfrom = 'disk.a[\"x\"]'\nto = \"disk.a\"\n");
    let text = World::of(MANY).plan_text(&to_one);
    assert!(text.starts_with("move disk.a from disk.a[\"x\"] []\ndelete disk.a[\"y\"]"), "{text}");
}

#[test]
fn chains_lead_to_their_end_from_wherever_an_object_is() {
    let chain = "[[moved]]\nfrom = \"disk.b\"\nto = \"disk.c\"\n";
    let spec = format!("{}{MOVED}{chain}", DISKS.replace("disk.a", "disk.c"));
    check(&World::of(DISKS), &spec, "move disk.c from disk.a []");
    check(&World::of(&DISKS.replace("disk.a", "disk.b")), &spec, "move disk.c from disk.b []");
    check(&World::of(&DISKS.replace("disk.a", "disk.c")), &spec, "");
}

#[test]
fn the_most_exact_block_counts_wherever_it_stands() {
    let world = World::of(MANY);
    let moved = |from: &str, to: &str| format!("[[moved]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let blocks =
        [moved("disk.a", "disk.b"), moved("disk.a[*]", "disk.b[*]"), moved("disk.a[x]", "disk.c")];
    let one = MANY.replace("for_each = [\"x\", \"y\"]\n", "").replace("${each.key}", "x");
    let spec = MANY.replace("disk.a", "disk.b").replace("\"x\", ", "");
    let spec = spec + &one.replace("disk.a", "disk.c") + &blocks.concat();
    check(
        &world,
        &spec,
        "move disk.b[\"y\"] from disk.a[\"y\"] []\nmove disk.c from disk.a[\"x\"] []",
    );
    let removed = "[[removed]]\nfrom = \"*.*\"\ndestroy = true\n[[removed]]\nfrom = \"disk.a\"\n\
                   [[removed]]\nfrom = \"disk.a[y]\"\ndestroy = true\n";
    let text = world.plan_text(removed);
    assert!(text.starts_with("forget disk.a[\"x\"] []\ndelete disk.a[\"y\"] []\n"), "{text}");
}

#[test]
fn moves_that_cannot_be_made_are_errors() {
    let both = DISKS.replace(
        "[resource.unit.u]",
        "[resource.disk.b]\nname = \"b\"\nsize = 1\nzone = \"eu\"\n[resource.unit.u]",
    );
    let taken = World::of(&both).plan_text(&renamed());
    assert!(
        taken.contains("error:12: disk.a cannot become disk.b: the state has an object there"),
        "{taken}"
    );
    let meet = format!(
        "{}[[moved]]\nfrom = \"disk.a\"\nto = \"disk.c\"\n[[moved]]\nfrom = \"disk.b\"\nto = \"disk.c\"\n",
        DISKS.replace("disk.a", "disk.c")
    );
    let meet = World::of(&both).plan_text(&meet);
    assert!(meet.contains("error:14: two moves to one address"), "{meet}");
    let key = format!("{MANY}[[moved]]\nfrom = \"disk.b\"\nto = 'disk.a[\"z\"]'\n");
    let one = MANY.replace("for_each = [\"x\", \"y\"]\n", "").replace("disk.a", "disk.b");
    let text = World::of(&one.replace("${each.key}", "z")).plan_text(&key);
    assert!(
        text.contains("error:9: something is moved to disk.a[\"z\"], which the spec does not have"),
        "{text}"
    );
}

#[test]
fn what_is_removed_is_let_go_unless_it_is_to_be_destroyed() {
    let world = World::of(DISKS);
    let removed = |more: &str| {
        format!("[[removed]]\nfrom = \"disk.a\"\n{more}[[removed]]\nfrom = \"unit.*\"\n")
    };
    check(
        &world,
        &removed(""),
        "
forget disk.a []
forget unit.u []
s0 = forget disk.a
s1 = forget unit.u",
    );
    let text = world.plan_text(&removed("destroy = true\n"));
    assert!(text.contains("delete disk.a []") && text.contains("forget unit.u []"), "{text}");
}

#[test]
fn a_key_is_removed_while_its_block_stays() {
    let world = World::of(MANY);
    let spec = format!("{}[[removed]]\nfrom = 'disk.a[\"y\"]'\n", MANY.replace(", \"y\"", ""));
    check(&world, &spec, "forget disk.a[\"y\"] []\ns0 = forget disk.a[\"y\"]");
    let wanted = format!("{MANY}[[removed]]\nfrom = 'disk.a[\"y\"]'\n");
    let text = world.plan_text(&wanted);
    assert!(text.contains("error:8: disk.a[\"y\"] is removed, and still in the spec"), "{text}");
}

#[test]
fn an_object_under_another_name_is_known_again() {
    let world = World::of(DISKS);
    // The unit is recognised by the disk that it refers to, so the disk is found first.
    let spec = DISKS.replace("disk.a", "disk.b").replace("unit.u", "unit.v");
    let text = world.plan_text(&spec);
    assert!(text.contains("note:2: disk.a may be called disk.b now"), "{text}");
    assert!(text.contains("note:6: unit.u may be called unit.v now"), "{text}");
    // A disk of another size is another disk, unless another attribute shows that it is the same.
    let text = world.plan_text(&spec.replace("100", "200"));
    assert!(!text.contains("may be called"), "{text}");
    let removed = format!("{spec}[[removed]]\nfrom = \"*.*\"\n").replace("*.*", "disk.a");
    let text = world.plan_text(&removed);
    assert!(!text.contains("disk.a may be called"), "{text}");
}

#[test]
fn whole_blocks_are_proposed_and_what_is_not_clear_is_not() {
    let world = World::of(MANY);
    let text = world.plan_text(&MANY.replace("disk.a", "disk.b"));
    assert!(text.contains("note:2: disk.a may be called disk.b now"), "{text}");
    let text = world.plan_text(&MANY.replace("\"y\"", "\"z\""));
    assert!(!text.contains("may be called"), "{text}");
    // Two disks have one name, so it is not known which of them is meant.
    let alike = MANY.replace("${each.key}", "same");
    let world = World::of(&alike);
    let text = world.plan_text(&alike.replace("\"x\", \"y\"", "\"p\", \"q\""));
    assert!(!text.contains("may be called"), "{text}");
    let one = alike.replace("for_each = [\"x\", \"y\"]\n", "").replace("disk.a", "disk.c");
    let text = world.plan_text(&one);
    assert!(!text.contains("may be called"), "{text}");
}
