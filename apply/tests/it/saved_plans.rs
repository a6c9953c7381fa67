//! Plans that are applied later.

use apply::ApplyError;
use apply::session::fold;
use apply::verify::verify;
use engine::plan::input::Observations;
use state::Store as _;

use crate::world::{DISK, World};

#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_takes_over_what_was_taken_over_is_stale() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.clear();
    let (plan, ..) = world.plan("[local]\n").await;
    assert_eq!(plan.seen.len(), 1, "the disk is seen to be gone");
    world.apply("[local]\n").await.unwrap();
    let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
    let seen = Observations::default();
    let error = verify(&plan, &snapshot, &seen, &world.providers()).unwrap_err();
    assert!(matches!(error, ApplyError::Stale(_)), "{error}");
}

/// An unkeyed digest of a weak key would let whoever has the plan guess it.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_tells_accounts_apart_and_nothing_of_their_keys() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let set = |key: &str| key.clone_into(&mut world.cloud.shared.lock().unwrap().key);
    set("hunter2");
    let (plan, ..) = world.plan(&DISK.replace("size = 10", "size = 20")).await;
    let text = engine::plan::saved::write(&plan, &serde_json::Value::Null);
    let plan = engine::plan::saved::read(&text).unwrap().plan;
    let digest = engine::digest::Digest::of(b"hunter2").to_string();
    assert!(text.contains("accounts") && !text.contains(&digest), "{text}");
    let loaded = world.store.load().await.unwrap();
    let snapshot = fold(loaded, &world.host).unwrap().snapshot;
    let fits = || verify(&plan, &snapshot, &Observations::default(), &world.providers());
    fits().unwrap();
    set("another");
    assert!(fits().unwrap_err().to_string().contains("another account"));
}
