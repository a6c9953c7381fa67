//! Protections, rules and the other words of `lifecycle`.

use crate::world::{World, check, check_destroy};

const DISK: &str = r#"
[resource.disk.d]
name = "d"
size = 100
zone = "eu"
"#;

/// Returns the disk with a `lifecycle`.
fn with(lifecycle: &str) -> String {
    format!("{DISK}lifecycle = {{ {lifecycle} }}\n")
}

#[test]
fn a_disk_grows_in_place_and_never_shrinks() {
    let world = World::of(DISK);
    check(
        &world,
        &DISK.replace("100", "200"),
        "
update disk.d [size]
s0 = update disk.d (disk-1)",
    );
    let smaller = world.plan_text(&DISK.replace("100", "50"));
    let refused = "error:4: disk size must increase: it is 100 GB and cannot become 50 GB";
    assert!(smaller.contains(refused), "{smaller}");
}

#[test]
fn data_is_lost_only_where_the_spec_allows_it() {
    let refused = World::of(DISK).plan_text(&DISK.replace("\"eu\"", "\"us\""));
    assert!(refused.contains("error:5: replacing disk.d would lose its data"), "{refused}");
    check(
        &World::of(DISK),
        &with("allow_data_loss = true").replace("\"eu\"", "\"us\""),
        "
replace disk.d [zone]
s0 = delete disk.d (disk-1)
s1 = create disk.d after s0
s2 = activate disk.d after s1",
    );
}

#[test]
fn prevent_destroy_refuses_a_replace_a_delete_and_a_destroy() {
    let spec = with("prevent_destroy = true, allow_data_loss = true");
    let world = World::of(&spec);
    let replaced = world.plan_text(&spec.replace("\"eu\"", "\"us\""));
    let refused = "error:6: disk.d is protected, and this plan would replace it";
    assert!(replaced.contains(refused), "{replaced}");
    let destroyed = world.plan_text_with(
        &spec,
        &engine::plan::input::Options {
            mode: engine::plan::input::Mode::Destroy,
            ..Default::default()
        },
    );
    let refused = "error:6: disk.d is protected, and this plan would delete it";
    assert!(destroyed.contains(refused), "{destroyed}");
    let disabled =
        world.plan_text(&spec.replace("prevent_destroy", "enabled = false, prevent_destroy"));
    assert!(disabled.contains(refused), "{disabled}");
}

#[test]
fn a_retained_object_is_forgotten() {
    let spec = with("retain = true");
    check_destroy(
        &World::of(&spec),
        &spec,
        "
forget disk.d []
s0 = forget disk.d",
    );
}

#[test]
fn a_trigger_replaces() {
    let spec = r#"
[resource.image.base]
name = "base"
kind = "a"

[resource.disk.d]
name = "d"
size = 1
zone = "eu"
lifecycle = { replace_triggered_by = ["${image.base.kind}"], allow_data_loss = true }
"#;
    check(
        &World::of(spec),
        &spec.replace("kind = \"a\"", "kind = \"b\""),
        "
replace disk.d []
replace image.base [kind]
s0 = delete disk.d (disk-2)
s1 = create image.base
s2 = create disk.d after s0, s1
s3 = activate disk.d after s2
s4 = delete image.base (image-1) after s0, s1
s5 = activate image.base after s1, s4",
    );
}
