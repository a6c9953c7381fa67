//! Deposed objects, which a replace has put aside and not deleted. They are objects like any other: their
//! delete may lose data, a rule may keep them, and they may be retained.

use std::sync::Arc;

use engine::diagnostics::Severity;
use engine::expression::parse::{Dialect, expression, template};
use engine::schema::{Rule, RuleOn};

use crate::cloud::Fault;
use crate::world::{DISK, World, converges};

fn disk(zone: &str, lifecycle: &str) -> String {
    let both = "create_before_destroy = true, allow_data_loss = true";
    let disk = DISK.replace("eu", zone);
    format!("{disk}lifecycle = {{ {both}{lifecycle} }}\n")
}

/// Leaves two disks: a new one, whose activation was refused, and the old one, which the replace has put
/// aside.
async fn put_aside(world: &World) {
    world.apply(&disk("eu", "")).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.apply(&disk("us", "")).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.clear();
    assert_eq!(world.cloud.names("disk").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn its_delete_loses_its_data_and_says_so() {
    let world = World::new();
    put_aside(&world).await;
    let (plan, ..) = world.plan(&disk("us", "")).await;
    let aside = plan.changes.iter().find(|change| change.deposed).unwrap();
    assert_eq!(aside.action.word(), "delete");
    assert_eq!(aside.loss.as_deref(), Some("its data is lost"));
    converges(&world, &disk("us", "")).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// `prevent_destroy` guards the replace that puts an object aside, and not the delete of the deposed object.
#[tokio::test(start_paused = true)]
async fn prevent_destroy_does_not_keep_it() {
    let world = World::new();
    put_aside(&world).await;
    converges(&world, &disk("us", ", prevent_destroy = true")).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_retained() {
    let world = World::new();
    put_aside(&world).await;
    let spec = disk("us", ", retain = true");
    let (plan, ..) = world.plan(&spec).await;
    let aside = plan.changes.iter().find(|change| change.deposed).unwrap();
    assert_eq!((aside.action.word(), &aside.loss), ("forget", &None));
    converges(&world, &spec).await;
    assert_eq!(world.cloud.names("disk"), ["d", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_keeps_it() {
    let mut world = World::new();
    put_aside(&world).await;
    let mut schema = (*world.cloud.schema).clone();
    let ty = Arc::make_mut(schema.types.get_mut("disk").unwrap());
    ty.rules.push(Rule {
        on: RuleOn::Delete,
        severity: Severity::Error,
        assert: expression("old.size < 5", Dialect::Spec).unwrap(),
        message: template("large disks stay", Dialect::Spec).unwrap(),
        help: None,
        attribute: None,
    });
    world.cloud.schema = Arc::new(schema);
    let text = world.plan_text(&disk("us", "")).await;
    assert!(text.contains("error:1: large disks stay"), "{text}");
    converges(&world, &disk("us", ", retain = true")).await;
}

/// The old image has the unique name that the new image waits for, so it cannot be retained.
#[tokio::test(start_paused = true)]
async fn it_is_not_retained_under_a_name_that_is_needed() {
    let image = "[resource.image.i]\nname = \"i\"\nkind = \"one\"\n";
    let world = World::new();
    world.apply(image).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.apply(&image.replace("one", "two")).await.unwrap();
    let spec = format!("{}lifecycle = {{ retain = true }}\n", image.replace("one", "two"));
    let text = world.plan_text(&spec).await;
    assert!(text.contains("error:2: the old image.i keeps the name \"i\""), "{text}");
    converges(&world, &image.replace("one", "two")).await;
    assert_eq!(world.cloud.names("image"), ["i"]);
}
