//! Looking into another account than the one that was called: by a wrong key or a wrong address.

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

/// A world whose last run left so many calls in doubt, and the empty cloud of another account.
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

/// What is not there in another account is still there in its own.
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

/// Deletes that another account shows as done are not.
#[tokio::test(start_paused = true)]
async fn deletes_are_not_done_because_another_account_has_nothing() {
    let (mut world, right) = in_doubt(&disks(10), "[local]\n", MANY, "another").await;
    world.apply("[local]\n").await.unwrap();
    assert_eq!(known(&world).await, 12);
    world.cloud = right;
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("disk").is_empty());
}

/// One key may open several accounts, as a tenant in the address does. So many gone at once is a
/// question before it is a fact, also of what was under way.
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

/// A name of the spec's own may be a stranger's in another account.
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

/// The lists of another account say little of what may surface in the first: they end its watch a month later.
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
