//! What an API makes of a value by itself: of one that it derives another from.

use engine::value::Value;

use crate::world::World;

/// A cloud that derives the image of a unit from its disk where nothing says what it is.
fn world() -> World {
    let mut world = World::new();
    world.cloud.change_type("unit", |unit| {
        unit.attributes.get_mut("image_id").unwrap().follows = Some("disk_id".into());
    });
    world
}

fn unit(lines: &str) -> String {
    format!("[resource.unit.u]\nname = \"u\"\n{lines}\n")
}

/// The image that is planned.
async fn planned_image(world: &World, spec: &str) -> Value {
    let (plan, _, _) = world.plan(spec).await;
    plan.changes[0].after.as_ref().unwrap()["image_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_nobody_manages_is_not_known_where_what_it_follows_changes() {
    let world = world();
    world.apply(&unit("disk_id = \"a\"\nimage_id = \"x\"")).await.unwrap();
    assert!(!planned_image(&world, &unit("disk_id = \"b\"")).await.is_known());
    // What does not change, or is wanted, is known.
    let old = Value::string("x");
    assert_eq!(planned_image(&world, &unit("disk_id = \"a\"\nworkers = 2")).await, old);
    assert_eq!(planned_image(&world, &unit("disk_id = \"b\"\nimage_id = \"x\"")).await, old);
}
