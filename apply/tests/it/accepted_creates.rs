//! Creates that an API accepts without showing an object: the object is made later.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::cloud::Fault;
use crate::world::{DISK, World, converges};

const KEY: &str = "[resource.key.k]\nname = \"k\"\n";

/// Returns the number of creates of a type that had an effect, and empties the log.
fn creates(world: &World, ty: &str) -> usize {
    let create = format!("create {ty}");
    world.cloud.take_log().iter().filter(|line| **line == create).count()
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_waited_for_and_not_made_again() {
    for (ty, spec, name) in [("disk", DISK, "d"), ("key", KEY, "k")] {
        let world = World::new();
        world.cloud.shared.lock().unwrap().settle = Duration::from_secs(1);
        world.cloud.strike(0, Fault::Promised(30));
        converges(&world, spec).await;
        assert_eq!(creates(&world, ty), 1);
        assert_eq!(world.cloud.names(ty), [name]);
    }
}

/// The key appears 600 seconds after its create, which is longer than a run waits. A key has no one-time
/// name, so a stranger's key could have its name; no run makes it again.
#[tokio::test(start_paused = true)]
async fn what_was_accepted_stays_in_doubt_until_it_shows() {
    let world = World::new();
    world.cloud.shared.lock().unwrap().settle = Duration::from_secs(1);
    world.cloud.strike(0, Fault::Promised(600));
    for _ in 0..2 {
        let report = world.apply(KEY).await.unwrap();
        assert!(report.failures.is_empty(), "{report:?}");
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    assert_eq!(world.state().await.pending.len(), 1);
    tokio::time::sleep(Duration::from_mins(10)).await;
    converges(&world, KEY).await;
    assert_eq!(creates(&world, "key"), 1);
    assert_eq!(world.cloud.names("key"), ["k"]);
}

/// The API accepts a create and never makes the key. After an hour the run makes it again, and no person
/// has to decide.
#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_never_came_is_made_in_the_end() {
    let world = World::new();
    world.cloud.strike(0, Fault::Promised(u64::from(u32::MAX)));
    assert_eq!(world.apply(KEY).await.unwrap().in_doubt.len(), 1);
    world.host.slept.store(60 * 60 * 1000, Ordering::Relaxed);
    converges(&world, KEY).await;
    assert_eq!(creates(&world, "key"), 2);
    assert_eq!(world.cloud.names("key"), ["k"]);
}
