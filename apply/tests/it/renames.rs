//! Addresses of a block that gets a `for_each`, or loses it, and addresses that name no instance.

use engine::plan::input::Options;
use engine::plan::{Action, Reason};

use crate::world::World;

/// A block gets a `for_each`, or loses it. The reason for the delete of the old object is that change of the
/// block, and not a lost key.
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

/// A replace must name an instance of a block with `for_each`. The help lists the instances.
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
