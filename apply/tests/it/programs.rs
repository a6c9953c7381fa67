//! Types with more than one program: the planned object decides which program is run.

use engine::expression::parse::{Dialect, expression};
use engine::plan::input::{Options, Target};

use crate::cloud::Fault;
use crate::world::{World, converges};

/// Returns a world where images of the kind `disk-1` have a create program of their own.
fn world() -> World {
    let mut world = World::new();
    world.cloud.change_type("image", |image| {
        let mut special = image.create[0].clone();
        special.when = Some(expression("kind == \"disk-1\"", Dialect::Names).unwrap());
        special.phases.truncate(1);
        image.create.insert(0, special);
    });
    world
}

const LATE: &str = r#"
[resource.disk.d]
name = "d"
size = 1
zone = "eu"

[resource.image.i]
name = "i"
kind = "${disk.d.id}"
"#;

#[tokio::test(start_paused = true)]
async fn a_program_that_is_chosen_by_what_is_not_known_yet_is_refused() {
    let world = world();
    let (_, said, _) = world.plan(LATE).await;
    let said: Vec<_> = said.iter().map(|it| (&*it.summary, it.help.as_deref())).collect();
    let help = "give a value that is known while planning, or apply first what it comes from: \
                plumb apply --target disk.d";
    assert_eq!(said, [("how to make or change image.i is not known", Some(help))]);
    let target = Target::Block("disk.d".parse().unwrap());
    let options = Options { targets: vec![target], ..Options::default() };
    world.apply_with(LATE, &options).await.unwrap();
    let text = world.plan_text(LATE).await;
    assert!(!text.contains("activate"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_chosen_by_a_secret_is_refused() {
    let mut world = world();
    world.variables.insert("word".to_owned(), "disk-1".to_owned());
    let spec = "[variable.word]\ntype = \"string\"\nsensitive = true\n\
                [resource.image.i]\nname = \"i\"\nkind = \"${var.word}\"\n";
    let (_, said, _) = world.plan(spec).await;
    let help = "give a value that is known while planning and not sensitive";
    assert_eq!(said.iter().map(|it| it.help.as_deref()).collect::<Vec<_>>(), [Some(help)]);
}

/// The spec leaves the kind to the API, so the plan does not choose the program of a kind.
#[tokio::test(start_paused = true)]
async fn what_the_api_fills_in_chooses_no_program() {
    let mut world = world();
    world.cloud.change_type("image", |image| {
        image.attributes.get_mut("kind").unwrap().server_default = true;
    });
    let text = world.plan_text("[resource.image.i]\nname = \"i\"\n").await;
    assert!(text.contains("s1 = activate image.i"), "{text}");
}

const HOST: &str = "[resource.host.h]\nname = \"h\"\nsize = 1\n";

/// Returns a world where an update of a host starts it again only if the size changes.
fn resizing() -> World {
    let mut world = World::new();
    world.cloud.change_type("host", |host| {
        let mut resize = host.update[0].clone();
        resize.when = Some(expression("size != old.size", Dialect::Names).unwrap());
        host.update[0].phases.truncate(1);
        host.update.insert(0, resize);
    });
    world
}

#[tokio::test(start_paused = true)]
async fn a_program_is_chosen_by_what_changes() {
    let world = resizing();
    world.apply(HOST).await.unwrap();
    let named = HOST.replace("\"h\"", "\"other\"");
    assert_eq!(
        world.plan_text(&named).await,
        "update host.h [name]\ns0 = update host.h (host-1)\n"
    );
    converges(&world, &named).await;
    let sized = named.replace("size = 1", "size = 2");
    let text =
        "update host.h [size]\ns0 = update host.h (host-1)\ns1 = update host.h (host-1) after s0\n";
    assert_eq!(world.plan_text(&sized).await, text);
    converges(&world, &sized).await;
}

/// A run changed the size of a host, and could not start it. No attribute differs any more, and the next
/// plan has the start.
#[tokio::test(start_paused = true)]
async fn a_begun_program_is_finished_though_nothing_differs_any_more() {
    let world = resizing();
    world.apply(HOST).await.unwrap();
    let sized = HOST.replace("size = 1", "size = 2");
    world.cloud.strike(1, Fault::Refused);
    world.apply(&sized).await.unwrap();
    let text = world.plan_text(&sized).await;
    assert_eq!(text, "update host.h []\ns0 = update host.h (host-1)\n");
    converges(&world, &sized).await;
}

/// A change of the size was refused, and the next spec has the old size and another name. The plan does not
/// send the size again; it starts the host and sends the name.
#[tokio::test(start_paused = true)]
async fn a_begun_program_sends_no_more_before_another_one() {
    let world = resizing();
    world.apply(HOST).await.unwrap();
    world.cloud.strike(0, Fault::Refused);
    world.apply(&HOST.replace("size = 1", "size = 2")).await.unwrap();
    let named = HOST.replace("\"h\"", "\"other\"");
    let text = "update host.h [name]\ns0 = update host.h (host-1)\n\
                s1 = update host.h (host-1) after s0\n";
    assert_eq!(world.plan_text(&named).await, text);
    converges(&world, &named).await;
}
