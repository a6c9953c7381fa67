//! What goes under one address and comes under another: what a plan says of it, and what of an address that is none.

use engine::diagnostics::{Diagnostics, Severity};
use engine::plan::input::Options;
use engine::plan::{Action, Reason};

use crate::world::World;

/// A block that got another name, with what to type; what differs, is disabled or is of another type is none.
#[tokio::test(start_paused = true)]
async fn what_got_another_name_is_told() {
    let world = World::new();
    let image = |name: &str, rest: &str| {
        format!("[resource.image.{name}]\nname = \"i\"\nkind = \"one\"\n{rest}")
    };
    let unit = |name: &str, of: &str| {
        format!("[resource.unit.{name}]\nname = \"u\"\nimage_id = \"${{image.{of}.id}}\"\n")
    };
    world.apply(&format!("{}{}", image("old", ""), unit("old", "old"))).await.unwrap();
    let renamed = format!("{}{}", image("new", ""), unit("new", "new"));
    let notes = |found: &Diagnostics| -> Vec<(String, Option<String>)> {
        let notes = found.iter().filter(|it| it.severity == Severity::Note);
        notes.map(|it| (it.summary.clone(), it.help.clone())).collect()
    };
    let help = "if it only got another name, keep the object: plumb state mv image.old image.new; \
                plumb state mv unit.old unit.new";
    let summary = "image.old goes, and is made with the same attributes";
    let told = (summary.to_owned(), Some(help.to_owned()));
    assert_eq!(notes(&world.plan(&renamed).await.1), [told]);
    let keyed = image("old", "for_each = [\"a\"]\n").replace("\"i\"", "\"i${each.key}\"");
    for other in [
        image("new", "").replace("\"i\"", "\"j\""),
        image("new", "").replace("kind = \"one\"\n", ""),
        format!("{}lifecycle = {{ enabled = false }}\n", image("old", "") + &image("new", "")),
        keyed.clone(),
    ] {
        assert_eq!(notes(&world.plan(&other).await.1), [], "{other}");
    }
    // It is the same with a key, or without.
    let said = notes(&world.plan(&keyed.replace("i${each.key}", "i")).await.1);
    let help =
        "if it only got another name, keep the object: plumb state mv image.old 'image.old[\"a\"]'";
    assert_eq!(said[0].1.as_deref(), Some(help));
}

/// What goes because its block got a `for_each`, or lost it, never lost a key.
#[tokio::test(start_paused = true)]
async fn what_its_block_became_is_the_reason() {
    let one = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n";
    let many = "[resource.disk.d]\nfor_each = [\"a\"]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";
    for (before, after, reason) in [(one, many, Reason::BecameMany), (many, one, Reason::BecameOne)]
    {
        let world = World::new();
        world.apply(before).await.unwrap();
        let (plan, ..) = world.plan(after).await;
        let gone = plan.changes.iter().find(|it| it.action == Action::Delete).unwrap();
        assert_eq!(gone.reason, reason);
    }
}

/// A block with instances is no instance: which there are is said.
#[tokio::test(start_paused = true)]
async fn a_replace_of_all_instances_names_them() {
    let world = World::new();
    let many = "[resource.disk.d]\nfor_each = [\"a\", \"b\"]\nname = \"e-${each.key}\"\nsize = 10\nzone = \"eu\"\n";
    world.apply(many).await.unwrap();
    let few = many.replace(", \"b\"", ", \"c\"");
    for address in ["disk.d", "disk.d[\"x\"]"] {
        let options = Options { replace: vec![address.parse().unwrap()], ..Options::default() };
        let found = world.plan_with(&few, &options).await.1;
        let help = found.iter().find_map(|it| it.help.as_deref());
        assert_eq!(help, Some("name one of 'disk.d[a]', 'disk.d[b]', 'disk.d[c]'"), "{address}");
    }
}
