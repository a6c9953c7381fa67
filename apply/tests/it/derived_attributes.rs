//! What an API makes of a value by itself: of one that it derives another from, and of one that it
//! shows as null.

use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{World, converges};

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

/// What a delete that stopped has left to give back gives way where it would follow from what the spec says by now.
#[tokio::test(start_paused = true)]
async fn what_would_be_given_back_gives_way_to_what_it_follows() {
    let world = world();
    world.apply(&unit("image_id = \"x\"\nworkers = 2")).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.destroy(&unit("image_id = \"x\"\nworkers = 2")).await.unwrap();
    assert_eq!(world.cloud.names("unit"), ["u"]);
    assert!(!planned_image(&world, &unit("disk_id = \"b\"")).await.is_known());
    // What it follows does not change: it comes back as it was.
    assert_eq!(planned_image(&world, &unit("workers = 2")).await, Value::string("x"));
}

/// A cloud that shows a unit without a disk where it was given "" for one.
fn world_without() -> World {
    let mut world = World::new();
    world.cloud.change_type("unit", |unit| {
        unit.attributes.get_mut("disk_id").unwrap().nulls = vec![Value::string("")];
    });
    world.cloud.makes = |object| {
        if object.get("disk_id").is_some_and(|id| id.same(&Value::string(""))) {
            object.insert("disk_id".into(), Value::Null);
        }
    };
    world
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_as_null_is_null_before_it_is_compared() {
    let rest = "[variable.nothing]\ntype = \"string\"\nsensitive = true\n\
                [resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n";
    let unit = |line: &str| unit(line) + rest;
    for none in [
        unit("disk_id = \"\""),
        unit("disk_id = \"${var.nothing}\""),
        // Known only after apply.
        unit(r#"disk_id = "${disk.d.id == \"?\" ? \"x\" : \"\"}""#),
    ] {
        let mut world = world_without();
        world.variables.insert("nothing".to_owned(), String::new());
        converges(&world, &none).await;
        converges(&world, &unit("disk_id = \"a\"")).await;
        let (plan, _, _) = world.plan(&none).await;
        let change = plan.changes.iter().find(|it| &*it.address.block.ty == "unit").unwrap();
        assert!(change.after.as_ref().unwrap()["disk_id"].is_null());
        assert_eq!(change.causes.len(), 1, "{none}");
        converges(&world, &none).await;
        // Silence keeps what is there.
        converges(&world, &unit("disk_id = \"a\"")).await;
        assert!(!world.plan_text(&unit("")).await.contains("update"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_must_be_given_is_not_given_by_another_word_for_null() {
    let mut world = World::new();
    world.cloud.change_type("disk", |disk| {
        disk.attributes.get_mut("zone").unwrap().nulls = vec![Value::string("")];
    });
    let spec = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"\"\n";
    let (_, said, _) = world.plan(spec).await;
    assert_eq!(said.iter().count(), 1);
}

/// What others are made of is what the object shows, also where only the run finds out.
#[tokio::test(start_paused = true)]
async fn others_see_null_too_where_it_turns_out_to_be_that() {
    let world = world_without();
    let spec = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n\
                [resource.unit.u]\nname = \"u\"\ndisk_id = '${disk.d.id == \"x\" ? \"y\" : \"\"}'\n\
                [resource.unit.other]\nname = \"other\"\n\
                secret = '${unit.u.disk_id == null ? \"none\" : \"some\"}'\n\
                [output.disk]\nvalue = \"${unit.u.disk_id}\"\n";
    converges(&world, spec).await;
    assert_eq!(world.state().await.outputs["disk"].value.json, Value::Null);
    let shared = world.cloud.shared.lock().unwrap();
    let said: Vec<_> = shared.objects.values().filter_map(|it| it.get("secret")).collect();
    assert!(said.contains(&&Value::string("none")), "{said:?}");
}
