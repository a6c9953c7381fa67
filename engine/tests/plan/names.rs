//! Unique names: taken, given twice, and handed on.

use crate::world::{World, check};

const IMAGE: &str = "[resource.image.base]\nname = \"base\"\n";

#[test]
fn a_taken_name_is_refused_where_it_is_unique() {
    let mut world = World::new();
    world.stranger("disk", "d", "disk-9");
    world.stranger("image", "base", "image-9");
    let disk = world.plan_text("[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n");
    assert!(disk.contains("warning:2: another disk named \"d\" exists already"), "{disk}");
    let image = world.plan_text(IMAGE);
    assert!(image.contains("error:2: "), "{image}");
}

#[test]
fn two_of_a_plan_cannot_have_one_unique_name() {
    let twice = format!("{IMAGE}[resource.image.other]\nname = \"base\"\n");
    let text = World::new().plan_text(&twice);
    assert!(text.contains("error:4: "), "{text}");
}

#[test]
fn a_name_is_handed_on_before_the_new_object_is_activated() {
    let served = r#"
[resource.image.base]
name = "base"
kind = "a"

[resource.unit.chat]
name = "chat"
image_id = "${image.base.id}"
"#;
    let renamed = served.replace("image.base", "image.other").replace("\"a\"", "\"b\"");
    check(
        &World::of(served),
        &renamed,
        "
delete image.base []
create image.other []
update unit.chat [image_id]
s0 = create image.other
s1 = update unit.chat (unit-2) after s0
s2 = delete image.base (image-1) after s1
s3 = activate image.other after s0, s2
note:2: image.base may be called image.other now",
    );
}
