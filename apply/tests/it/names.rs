//! Names that only one object may bear: who has them, who takes them, and in which order.

use engine::address::Address;
use engine::state::ObjectId;
use state::Store as _;

use crate::cloud::Fault;
use crate::world::World;

/// The name that the key is to bear is the id of what is made before it, so no plan knows it.
const LATE: &str = r#"
[resource.key.a]
name = "disk-2"

[resource.disk.d]
name = "d"
size = 1
zone = "eu"

[resource.key.b]
name = "${disk.d.id}"
"#;

const FIRST: &str = r#"
[resource.key.a]
name = "disk-2"
"#;

async fn objects(world: &World) -> Vec<(Address, ObjectId)> {
    let loaded = world.store.load().await.unwrap();
    let folded = apply::session::fold(loaded, &world.host).unwrap();
    let current = |(address, entry): (&Address, &engine::state::Entry)| {
        Some((address.clone(), entry.current.as_ref()?.id.clone()))
    };
    folded.snapshot.entries.iter().filter_map(current).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_does_not_take_the_object_of_another_address() {
    let world = World::new();
    world.apply(FIRST).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.insert(3, Fault::LostBefore);
    let report = world.apply(LATE).await.unwrap();
    let messages: Vec<&str> = report.failures.iter().map(|f| &*f.message).collect();
    assert_eq!(messages, ["the name is taken"]);
    assert!(report.in_doubt.is_empty());
    let known: Vec<String> =
        objects(&world).await.iter().map(|(address, id)| format!("{address} {id}")).collect();
    assert_eq!(known, ["disk.d disk-2", "key.a key-1"]);
    world.destroy(LATE).await.unwrap();
    assert!(world.cloud.names("key").is_empty());
}
