//! References that are turned round. Whatever dependencies the state has, a plan can be applied, and all
//! live objects can be destroyed.

use engine::address::Address;
use engine::plan::input::{Mode, Options, Target};
use engine::schema::{OnChange, TypeSchema};

use crate::cloud::Fault;
use crate::world::{World, converges, show};

fn disk(name: &str, zone: &str, more: &str) -> String {
    format!(
        "[resource.disk.{name}]\nname = '{name}'\nsize = 1\nzone = '{zone}'\n\
         lifecycle = {{ allow_data_loss = true }}\n{more}\n"
    )
}

/// Returns a spec with a unit that has `used` as its disk, or none if `used` is empty.
fn unit(name: &str, used: &str, more: &str) -> String {
    let used = if used.is_empty() { String::new() } else { format!("disk_id = '{used}'\n") };
    format!("[resource.unit.{name}]\nname = '{name}'\n{used}{more}\n")
}

const IGNORES: &str = "lifecycle = { ignore_changes = ['disk_id'] }";

async fn applied(spec: &str) -> World {
    let world = World::new();
    world.apply(spec).await.unwrap();
    world
}

/// Returns the dependencies that the state has for an address.
async fn dependencies(world: &World, address: &str) -> Vec<String> {
    let address: Address = address.parse().unwrap();
    let snapshot = world.state().await;
    snapshot.entries[&address].dependencies.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn both_ends_of_a_dependency_that_is_turned_round_are_replaced() {
    let world = applied(&(disk("a", "eu", "") + &disk("c", "eu", "depends_on = ['disk.a']"))).await;
    let turned = disk("c", "us", "") + &disk("a", "us", "depends_on = ['disk.c']");
    let expected = "replace disk.a [zone]
replace disk.c [zone]
s0 = delete disk.c (disk-2)
s1 = delete disk.a (disk-1) after s0
s2 = create disk.c after s0
s3 = activate disk.c after s2
s4 = create disk.a after s1, s3
s5 = activate disk.a after s4
";
    assert_eq!(world.plan_text(&turned).await, expected);
    converges(&world, &turned).await;
    world.destroy(&turned).await.unwrap();
    assert!(world.cloud.names("disk").is_empty());
}

#[tokio::test(start_paused = true)]
async fn values_that_are_replaced_turn_round() {
    let value = |name: &str, input: &str| {
        format!(
            "[resource.value.{name}]\ninput = {input}\n\
             lifecycle = {{ replace_triggered_by = ['${{value.t}}'] }}\n"
        )
    };
    let spec = |n: u8, a: &str, c: &str| {
        format!("[resource.value.t]\ninput = {n}\n") + &value("a", a) + &value("c", c)
    };
    let world = applied(&spec(1, "1", "'${value.a.output}'")).await;
    converges(&world, &spec(2, "'${value.c.output}'", "1")).await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_is_ignored_is_no_dependency() {
    let first = unit("a", "${unit.c.id}", "") + &unit("b", "${unit.a.id}", "") + &unit("c", "", "");
    let world = applied(&first).await;
    // `unit.c`, which has no reference yet, gets one to `unit.b` in the spec, and ignores it.
    let second = unit("b", "", IGNORES) + &unit("c", "${unit.b.id}", IGNORES);
    world.apply(&second).await.unwrap();
    assert_eq!(world.cloud.names("unit"), ["a", "b", "c"], "each is used by another");
    assert_eq!(dependencies(&world, "unit.a").await, ["unit.c"]);
    assert_eq!(dependencies(&world, "unit.b").await, ["unit.a"], "it still names it");
    assert!(dependencies(&world, "unit.c").await.is_empty(), "it was never told to use it");
    world.destroy(&second).await.unwrap();
    assert!(world.cloud.names("unit").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_came_from_a_reference_that_is_ignored_is_a_dependency() {
    let image = "[resource.image.i]\nname = 'i'\n";
    let unit = |name: &str| {
        format!(
            "{image}[resource.unit.u]\nname = 'u'\nimage_id = '${{image.i.{name}}}'\n\
             lifecycle = {{ ignore_changes = ['image_id'] }}\n"
        )
    };
    for name in ["id", "name"] {
        let world = applied(&unit(name)).await;
        assert_eq!(dependencies(&world, "unit.u").await, ["image.i"]);
        converges(&world, &unit(name)).await;
        assert_eq!(dependencies(&world, "unit.u").await, ["image.i"], "by its {name}");
    }
}

/// Returns a world whose state has two units that depend on each other, and the spec that was applied last.
/// The update that takes `unit.a` from `unit.c` was refused.
async fn circle() -> (World, String) {
    let world = applied(&(unit("a", "", "") + &unit("c", "${unit.a.id}", ""))).await;
    let turned = unit("a", "", "depends_on = ['unit.c']") + &unit("c", "none", "");
    world.cloud.strike(0, Fault::Refused);
    let report = world.apply(&turned).await.unwrap();
    assert_eq!(report.failures.len(), 1, "{report:?}");
    assert_eq!(dependencies(&world, "unit.a").await, ["unit.c"]);
    assert_eq!(dependencies(&world, "unit.c").await, ["unit.a"]);
    (world, turned)
}

#[tokio::test(start_paused = true)]
async fn a_circle_in_the_state_can_be_destroyed() {
    let (world, spec) = circle().await;
    let destroying = Options { mode: Mode::Destroy, ..Options::default() };
    let (plan, diagnostics, sources) = world.plan_with(&spec, &destroying).await;
    // The order of the deletes follows from the references of the live objects.
    let expected = "delete unit.a []
delete unit.c []
s0 = drain unit.c (unit-2)
s1 = delete unit.c (unit-2) after s0
s2 = drain unit.a (unit-1) after s1
s3 = delete unit.a (unit-1) after s2
";
    assert_eq!(show(&plan, &diagnostics, &sources), expected);
    for target in ["unit.a", "unit.c"] {
        let target: Address = target.parse().unwrap();
        let options = Options { targets: vec![Target::Block(target.block)], ..destroying.clone() };
        let (_, diagnostics, _) = world.plan_with(&spec, &options).await;
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    }
    world.destroy(&spec).await.unwrap();
    assert!(world.cloud.names("unit").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_circle_in_the_state_can_leave_the_spec() {
    let (world, _) = circle().await;
    converges(&world, "").await;
    assert!(world.cloud.names("unit").is_empty());
    let (world, spec) = circle().await;
    converges(&world, &spec).await;
}

#[tokio::test(start_paused = true)]
async fn a_replace_waits_for_those_that_move_elsewhere() {
    let spec = |kind: &str, used: &str, more: &str| {
        format!(
            "[resource.image.one]\nname = 'one'\nkind = '{kind}'\n\
             lifecycle = {{ create_before_destroy = false }}\n\
             [resource.image.two]\nname = 'two'\n\
             [resource.unit.u]\nname = 'u'\nimage_id = '${{image.{used}.id}}'\n{more}"
        )
    };
    let world = applied(&spec("x", "one", "")).await;
    let moved = spec("y", "two", "");
    let expected = "replace image.one [kind]
update unit.u [image_id]
s0 = update unit.u (unit-3)
s1 = delete image.one (image-1) after s0
s2 = create image.one after s1
s3 = activate image.one after s2
";
    let text = world.plan_text(&moved).await;
    assert_eq!(text, expected);
    let report = world.apply(&moved).await.unwrap();
    assert!(report.failures.is_empty(), "an image in use is not deleted: {report:?}");
    assert_eq!(world.plan_text(&moved).await, "");
    // A unit that no longer names the image, and still depends on it, is not updated before the replace.
    let world = applied(&spec("x", "one", "")).await;
    let waits = spec("y", "two", "depends_on = ['image.one']\n");
    let text = world.plan_text(&waits).await;
    assert!(text.contains("s0 = delete image.one (image-1)\n"), "{text}");
    assert!(!text.contains("error"), "{text}");
}

/// Returns a spec with a disk, a unit that uses it, and a unit that uses that unit. Another `zone` replaces
/// the disk, which is deleted first, and another `middle` renames the block of the first unit.
fn renamed_below(zone: &str, middle: &str) -> String {
    let named = format!("image_id = '${{unit.{middle}.id}}'");
    disk("base", zone, "") + &unit(middle, "${disk.base.id}", "") + &unit("user", "", &named)
}

/// The steps of a plan wait for each other in a circle. The plan gives up the wait of a delete for a
/// reference that the API does not insist on, and keeps those that it insists on (`holds`).
#[tokio::test(start_paused = true)]
async fn what_the_api_insists_on_gives_way_last() {
    let mut world = World::new();
    let holds = |attribute: &'static str, ty: &'static str| {
        move |unit: &mut TypeSchema| {
            unit.attributes.get_mut(attribute).unwrap().holds = Some(ty.into());
        }
    };
    world.cloud.change_type("unit", holds("image_id", "unit"));
    world.apply(&renamed_below("eu", "old")).await.unwrap();
    let renamed = renamed_below("us", "new");
    let expected = "replace disk.base [zone]
create unit.new []
delete unit.old []
update unit.user [image_id]
s0 = delete disk.base (disk-1)
s1 = create disk.base after s0
s2 = activate disk.base after s1
s3 = create unit.new after s2
s4 = activate unit.new after s3
s5 = update unit.user (unit-3) after s4
s6 = drain unit.old (unit-2) after s5
s7 = delete unit.old (unit-2) after s6
";
    assert_eq!(world.plan_text(&renamed).await, expected);
    converges(&world, &renamed).await;
    // If the API insists on both references, no order is possible.
    world.cloud.change_type("unit", holds("disk_id", "disk"));
    let again = renamed_below("eu", "newer");
    let (_, said, _) = world.plan(&again).await;
    let said: Vec<_> = said.iter().map(|it| (&*it.summary, it.detail.as_deref())).collect();
    let detail = "unit.new names it in `disk_id` until then, and the API deletes nothing that is \
                  named there.";
    assert_eq!(said, [("disk.base cannot be deleted before its replacement exists", Some(detail))]);
    let way_out = "lifecycle = { create_before_destroy = true, ";
    converges(&world, &again.replace("lifecycle = { ", way_out)).await;
}

/// Returns a spec with a key named `k`, a unit that uses it, and a unit with the image `user`. Another `key`
/// or `middle` renames the block of the key or of the first unit.
fn renamed_with_its_name(key: &str, middle: &str, user: &str) -> String {
    let named = format!("image_id = '{user}'");
    format!("[resource.key.{key}]\nname = 'k'\n")
        + &unit(middle, &format!("${{key.{key}.id}}"), "")
        + &unit("user", "", &named)
}

/// A reference that the API insists on does not give way, also if the spec has the id as a text, so that the
/// state has no dependency for it.
#[tokio::test(start_paused = true)]
async fn what_the_api_insists_on_does_not_give_way_where_an_id_says_it() {
    for by_its_id in [false, true] {
        let mut world = World::new();
        world.cloud.change_type("unit", |unit| {
            unit.attributes.get_mut("image_id").unwrap().holds = Some("unit".into());
        });
        world.apply(&renamed_with_its_name("one", "old", "")).await.unwrap();
        let old: Address = "unit.old".parse().unwrap();
        let id = world.state().await.entries[&old].current.as_ref().unwrap().id.to_string();
        let written = if by_its_id { &id } else { "${unit.old.id}" };
        world.apply(&renamed_with_its_name("one", "old", written)).await.unwrap();
        let renamed = renamed_with_its_name("two", "new", "${unit.new.id}");
        let (plan, said, _) = world.plan(&renamed).await;
        let late = "key.two cannot take its name from key.one in one plan";
        assert!(said.iter().any(|it| it.summary == late), "{written}: {said:?}");
        assert!(plan.steps.is_empty());
        // The two renames are possible in two applies.
        let first = renamed_with_its_name("one", "new", "${unit.new.id}");
        converges(&world, &first).await;
        converges(
            &world,
            &renamed_with_its_name("two", "newer", "${unit.newer.id}").replace("'k'", "'l'"),
        )
        .await;
    }
}

/// Two circles of references each have a way out, and a name passes from one circle to the other. One apply
/// changes both.
#[tokio::test(start_paused = true)]
async fn circles_that_hand_on_a_name_give_way_each_by_itself() {
    let group = |at: u8, name: &str, middle: &str| {
        format!(
            "[resource.key.k{at}]\nname = '{name}'\n\
             [resource.value.{middle}{at}]\ninput = '${{key.k{at}.id}}'\n\
             [resource.value.e{at}]\ninput = '${{value.{middle}{at}.id}}'\n"
        )
    };
    let mut world = World::new();
    world.cloud.change_type("key", |key| {
        key.attributes.get_mut("name").unwrap().on_change = OnChange::Replace;
    });
    let before = group(1, "one", "a") + &group(2, "two", "a");
    world.apply(&before).await.unwrap();
    let after = group(1, "ONE", "b") + &group(2, "one", "b");
    converges(&world, &after).await;
    assert_eq!(world.cloud.names("key"), ["ONE", "one"]);
    // A name passes the other way round, and then one circle changes alone.
    converges(&world, &(group(1, "two", "a") + &group(2, "ONE", "a"))).await;
    converges(&world, &(group(1, "x", "b") + &group(2, "ONE", "a"))).await;
}
