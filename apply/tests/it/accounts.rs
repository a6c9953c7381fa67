//! Runs that look into another account than the one that was called, because of a wrong key or a wrong
//! address.

use std::sync::atomic::Ordering;

use apply::ApplyError;
use apply::session::fold;
use engine::state::Watched;
use engine::value::Value;
use state::Store as _;

use crate::cloud::{Cloud, Fault};
use crate::world::{DISK, World, converges};

const MANY: u64 = 12;

fn disks(size: u32) -> String {
    let keys: Vec<String> = (0..MANY).map(|n| format!("\"{n:02}\"")).collect();
    let keys = keys.join(", ");
    format!(
        "[resource.disk.d]\nfor_each = [{keys}]\nname = \"d-${{each.key}}\"\nsize = {size}\n\
         zone = \"eu\"\n"
    )
}

/// Returns a world whose last run left `calls` calls in doubt, and which has the empty cloud of another
/// account since. The second value is the cloud that was called.
async fn in_doubt(before: &str, after: &str, calls: u64, key: &str) -> (World, Cloud) {
    let mut world = World::new();
    world.apply(before).await.unwrap();
    (0..calls).for_each(|call| world.cloud.strike(call, Fault::LostBefore));
    world.cloud.fail_reads(calls);
    let report = world.apply(after).await.unwrap();
    assert_eq!(report.in_doubt.len() as u64, calls);
    let right = std::mem::replace(&mut world.cloud, Cloud::new());
    key.clone_into(&mut world.cloud.shared.lock().unwrap().key);
    (world, right)
}

async fn known(world: &World) -> usize {
    fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot.entries.len()
}

/// The disk is missing in another account, and still exists in its own: the run keeps the disk in the state.
#[tokio::test(start_paused = true)]
async fn an_absence_in_another_account_is_none() {
    let larger = DISK.replace("size = 10", "size = 20");
    let (mut world, right) = in_doubt(DISK, &larger, 1, "another").await;
    world.apply(&larger).await.unwrap();
    assert_eq!((known(&world).await, world.cloud.names("disk").len()), (1, 0));
    world.cloud = right;
    converges(&world, &larger).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// Deletes are in doubt, and their disks are missing in another account. The run does not take the deletes
/// for done.
#[tokio::test(start_paused = true)]
async fn deletes_are_not_done_because_another_account_has_nothing() {
    let (mut world, right) = in_doubt(&disks(10), "[local]\n", MANY, "another").await;
    world.apply("[local]\n").await.unwrap();
    assert_eq!(known(&world).await, 12);
    world.cloud = right;
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("disk").is_empty());
}

/// One key may open several accounts, for example by a tenant in the address. If many objects are missing
/// at once, the run asks before it believes that they are gone, also for objects with a call in doubt.
#[tokio::test(start_paused = true)]
async fn what_was_under_way_is_gone_only_once_somebody_was_asked() {
    let larger = disks(20);
    let (mut world, right) = in_doubt(&disks(10), &larger, MANY, "").await;
    let error = world.apply(&larger).await.unwrap_err();
    let ApplyError::Vanished { gone, all, .. } = &error else { panic!("{error}") };
    assert_eq!((*gone, *all, known(&world).await), (12, 12, 12));
    world.cloud = right;
    converges(&world, &larger).await;
    assert_eq!(world.cloud.names("disk").len(), 12);
}

/// A stranger in another account may have a key with the name that the spec chose. The run does not take
/// that key for the object of a create in doubt.
#[tokio::test(start_paused = true)]
async fn a_namesake_in_another_account_is_not_what_a_create_made() {
    let both = &format!("{DISK}[resource.key.k]\nname = \"k\"\n");
    let mut world = World::new();
    world.apply(DISK).await.unwrap();
    world.store.fail_after(Some(1));
    world.apply(both).await.unwrap_err();
    world.store.fail_after(None);
    let right = std::mem::replace(&mut world.cloud, Cloud::new());
    world.cloud.shared.lock().unwrap().key = "another".to_owned();
    world.cloud.put("key", &[("name", Value::string("k"))]);
    let (plan, ..) = world.plan(both).await;
    assert_eq!(plan.doubts.len(), 1, "{plan:?}");
    world.cloud = right;
    converges(&world, both).await;
    assert_eq!(world.cloud.names("key"), ["k"]);
}

/// The lists of another account say little about objects that may appear in the first account. They end
/// the watch of its names 30 days later than its own lists would.
#[tokio::test(start_paused = true)]
async fn a_name_is_watched_on_while_another_account_is_looked_at() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let key = |key: &str| key.clone_into(&mut world.cloud.shared.lock().unwrap().key);
    let later = |ms: u64| world.host.slept.fetch_add(ms, Ordering::Relaxed);
    key("another");
    later(Watched::ANSWERED_MS + 1);
    world.apply(DISK).await.unwrap();
    assert_eq!(world.state().await.watched.len(), 1);
    later(Watched::ELSEWHERE_MS);
    world.apply(DISK).await.unwrap();
    assert_eq!(world.state().await.watched.len(), 0);
    let other = "\n[resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";
    let both = format!("{DISK}{other}");
    world.apply(&both).await.unwrap();
    assert_eq!(world.state().await.watched.len(), 1);
    later(Watched::ANSWERED_MS + 1);
    world.apply(&both).await.unwrap();
    assert_eq!(world.state().await.watched.len(), 0);
}
