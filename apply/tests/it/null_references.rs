//! References that turn out to be null once their objects exist: null means the same to an apply as to a
//! plan.

use engine::schema::{Attribute, OnChange, Presence, ReplaceOrder};
use engine::value::Value;

use crate::one_time_secrets::attribute;
use crate::world::{World, converges};

/// Returns a world whose disks have an IP address and a number of ports. In the zone `dark`, both are null.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.cloud.change_type("disk", |disk| {
        for (name, ty) in [("ip", "string"), ("ports", "integer")] {
            let told = Attribute {
                presence: Presence::Computed,
                volatile: true,
                ..Attribute::new(ty.parse().unwrap())
            };
            disk.attributes.insert(name.into(), told);
        }
        disk.attributes.get_mut("zone").unwrap().on_change = OnChange::Update;
    });
    world.cloud.change_type("unit", |unit| {
        unit.attributes.get_mut("disk_id").unwrap().presence = Presence::Required;
        unit.attributes.get_mut("workers").unwrap().default = Some(Value::Integer(7));
    });
    world.cloud.makes = |object| {
        let Some(zone) = object.get("zone") else { return };
        let is_dark = zone.same(&Value::string("dark"));
        let or_null = |value| if is_dark { Value::Null } else { value };
        let (ip, ports) = (or_null(Value::string("10.0.0.1")), or_null(Value::Integer(3)));
        object.extend([("ip".into(), ip), ("ports".into(), ports)]);
    };
    world
}

pub(crate) fn spec(zone: &str, rest: &str) -> String {
    format!("[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"{zone}\"\n{rest}")
}

const UNIT: &str = "[resource.unit.u]\nname = \"u\"\ndisk_id = \"${disk.d.ip}\"\n";

/// Applies a spec of which one step fails, and returns the message of that failure.
async fn refusal(world: &World, spec: &str) -> String {
    let failures = world.apply(spec).await.unwrap().failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures[0].message.clone()
}

/// The run refuses the create of an object whose required attribute comes to null.
#[tokio::test(start_paused = true)]
async fn what_is_required_and_comes_to_null_is_refused_before_the_call() {
    for (ty, rest, attribute) in [
        ("unit", UNIT, "disk_id"),
        ("key", "[resource.key.k]\nname = \"${disk.d.ip}\"\n", "name"),
        ("login", "[resource.login.l]\nname = \"l\"\npassword = \"${disk.d.ip}\"\n", "password"),
    ] {
        let world = world();
        let said = refusal(&world, &spec("dark", rest)).await;
        let expected = "is required, and `disk.d.ip` comes to null";
        assert_eq!(said, format!("`{attribute}` {expected}"));
        assert!(world.cloud.names(ty).is_empty());
        // The next run makes the object once there is a value.
        converges(&world, &spec("eu", rest)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_nothing_away_that_is_required() {
    let world = world();
    converges(&world, &spec("eu", UNIT)).await;
    world.cloud.take_log();
    refusal(&world, &spec("dark", UNIT)).await;
    assert_eq!(world.cloud.take_log(), ["update disk"]);
}

#[tokio::test(start_paused = true)]
async fn a_replace_makes_nothing_without_what_is_required() {
    let mut world = world();
    world.cloud.change_type("unit", |unit| {
        unit.replace = ReplaceOrder::CreateFirst;
        unit.attributes.get_mut("disk_id").unwrap().on_change = OnChange::Replace;
    });
    converges(&world, &spec("eu", UNIT)).await;
    world.cloud.take_log();
    refusal(&world, &spec("dark", UNIT)).await;
    assert_eq!(world.cloud.take_log(), ["update disk"]);
    assert_eq!(world.cloud.names("unit"), ["u"]);
}

/// An attribute that comes to null gets its default, as if the spec did not set it. Other objects and
/// outputs see the default.
#[tokio::test(start_paused = true)]
async fn where_there_is_a_default_null_means_that() {
    let unit = "[resource.unit.u]\nname = \"u\"\ndisk_id = \"x\"\nworkers = \"${disk.d.ports}\"\n\
                [resource.unit.other]\nname = \"other\"\ndisk_id = \"n-${unit.u.workers}\"\n\
                [output.workers]\nvalue = \"${unit.u.workers}\"\n\
                [output.ports]\nvalue = \"${disk.d.ports}\"\n";
    let world = world();
    for (zone, workers) in [("dark", 7), ("eu", 3), ("dark", 7)] {
        converges(&world, &spec(zone, unit)).await;
        let outputs = world.state().await.outputs;
        assert_eq!(outputs["workers"].value.json, Value::Integer(workers));
        assert_eq!(outputs["ports"].value.json.is_null(), zone == "dark");
    }
}

/// An optional attribute without a default is not sent if it comes to null. The object keeps the value that
/// it has, as if the spec did not set the attribute.
#[tokio::test(start_paused = true)]
async fn what_is_optional_may_come_to_null() {
    let unit = "[resource.unit.u]\nname = \"u\"\ndisk_id = \"x\"\nimage_id = \"${disk.d.ip}\"\n";
    let world = world();
    for (zone, expected) in [
        ("dark", Value::Null),
        ("eu", Value::string("10.0.0.1")),
        ("dark", Value::string("10.0.0.1")),
    ] {
        world.apply(&spec(zone, unit)).await.unwrap();
        let text = world.plan_text(&spec(zone, unit)).await;
        assert!(!text.contains("s0"), "{zone}: {text}");
        converges(&world, &spec(zone, unit)).await;
        let image = attribute(&world, "unit", "image_id").unwrap_or(Value::Null);
        assert_eq!(image, expected, "{zone}");
    }
}

/// An imported object keeps the value of an attribute that comes to null, as an updated object does.
#[tokio::test(start_paused = true)]
async fn a_null_takes_nothing_from_what_is_taken_over() {
    let world = world();
    let has = ["name", "disk_id", "image_id"].map(|name| (name, Value::string(name)));
    let id = world.cloud.put("unit", &has);
    let rest = format!(
        "[resource.unit.u]\nname = \"u\"\ndisk_id = \"x\"\nimage_id = \"${{disk.d.ip}}\"\n\
         [[import]]\nto = 'unit.u'\nid = '{id}'\n"
    );
    world.apply(&spec("dark", &rest)).await.unwrap();
    assert_eq!(attribute(&world, "unit", "disk_id"), Some(Value::string("x")));
    assert_eq!(attribute(&world, "unit", "image_id"), Some(Value::string("image_id")));
}

/// The run refuses an update in which a secret comes to null: null would take the secret away, and nobody
/// could send it again.
#[tokio::test(start_paused = true)]
async fn a_null_takes_no_secret_away() {
    let unit = "[resource.unit.u]\nname = \"u\"\ndisk_id = \"x\"\nsecret = \"${disk.d.ip}\"\n";
    let world = world();
    converges(&world, &spec("eu", unit)).await;
    let said = refusal(&world, &spec("dark", unit)).await;
    assert_eq!(
        said,
        "`disk.d.ip` comes to null, and the secret that the object has in `secret` is not known"
    );
    assert_eq!(attribute(&world, "unit", "secret"), Some(Value::string("10.0.0.1")));
}
