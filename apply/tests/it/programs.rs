//! Types with more than one program: which one is run follows from the object as it is planned.

use engine::expression::parse::{Dialect, expression};
use engine::plan::input::{Options, Target};

use crate::world::World;

/// A cloud whose images of one kind are made by calls of their own.
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

/// What the spec leaves to the API is no answer.
#[tokio::test(start_paused = true)]
async fn what_the_api_fills_in_chooses_no_program() {
    let mut world = world();
    world.cloud.change_type("image", |image| {
        image.attributes.get_mut("kind").unwrap().server_default = true;
    });
    let text = world.plan_text("[resource.image.i]\nname = \"i\"\n").await;
    assert!(text.contains("s1 = activate image.i"), "{text}");
}
