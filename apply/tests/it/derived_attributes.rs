//! Values that an API derives by itself from another attribute, and values that it shows as null.

use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{World, converges};

/// Returns a world whose cloud derives the image of a unit from its disk, unless the image is given.
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

/// Returns the image that the plan has for the unit.
async fn planned_image(world: &World, spec: &str) -> Value {
    let (plan, _, _) = world.plan(spec).await;
    plan.changes[0].after.as_ref().unwrap()["image_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_nobody_manages_is_not_known_where_what_it_follows_changes() {
    let world = world();
    world.apply(&unit("disk_id = \"a\"\nimage_id = \"x\"")).await.unwrap();
    assert!(!planned_image(&world, &unit("disk_id = \"b\"")).await.is_known());
    // The image is known if the disk does not change, or if the spec gives the image.
    let old = Value::string("x");
    assert_eq!(planned_image(&world, &unit("disk_id = \"a\"\nworkers = 2")).await, old);
    assert_eq!(planned_image(&world, &unit("disk_id = \"b\"\nimage_id = \"x\"")).await, old);
}

/// A delete of a unit stopped after the drain, and the next run gives the unit its values back. It does not
/// give the image back if the spec has another disk by now, because the API derives the image from the disk.
#[tokio::test(start_paused = true)]
async fn what_would_be_given_back_gives_way_to_what_it_follows() {
    let world = world();
    world.apply(&unit("image_id = \"x\"\nworkers = 2")).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.destroy(&unit("image_id = \"x\"\nworkers = 2")).await.unwrap();
    assert_eq!(world.cloud.names("unit"), ["u"]);
    assert!(!planned_image(&world, &unit("disk_id = \"b\"")).await.is_known());
    // The disk does not change, so the image comes back as it was.
    assert_eq!(planned_image(&world, &unit("workers = 2")).await, Value::string("x"));
}

/// Returns a world whose cloud shows the disk of a unit as null if the unit was given "" for it.
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
        // A spec that does not set the disk keeps the one that is there.
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

/// The API shows the unit's disk as null, and only the run learns that. Other objects and outputs get null,
/// too.
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
