//! Decisions of a person about a call in doubt.

use std::sync::Arc;
use std::time::Duration;

use apply::Providers;
use apply::doubt::resolve::{OpenCall, ResolveError};
use apply::session::Session;
use engine::journal::{Record, Resolution, Seen};
use engine::state::ObjectId;
use engine::stored::Stored;
use engine::value::Value;

use crate::cloud::Fault;
use crate::slow_cloud::Busy;
use crate::world::{SERVED, World, converges, holder};
use crate::write_only_attributes::LOGIN;

/// Loses the answer to the next mutating call, and the next read, which would show its effect.
fn lose_next(world: &World) {
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.fail_reads(1);
}

pub(crate) async fn open(world: &World) -> Session {
    Session::open(&world.store, &holder(), Duration::ZERO, &world.host, None).await.unwrap()
}

/// Decides that the object of the call in doubt on an address is the one with this id.
async fn adopt(
    world: &World,
    providers: &Providers,
    address: &str,
    id: &str,
) -> Result<(), ResolveError> {
    let mut session = open(world).await;
    let doubt = OpenCall::about(session.snapshot(), &address.parse().unwrap()).next().unwrap();
    let decided = doubt.adopt(&ObjectId(id.into()), providers).await;
    let decided = decided.map(|record| session.record(record).unwrap());
    session.close().await.unwrap();
    decided
}

/// Returns a world with a login whose rename had its effect and is in doubt, and the spec of the rename.
async fn renamed_in_doubt() -> (World, String) {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    lose_next(&world);
    let renamed = LOGIN.replace("name = \"l\"", "name = \"m\"");
    assert_eq!(world.apply(&renamed).await.unwrap().in_doubt.len(), 1);
    (world, renamed)
}

/// No answer shows a password. An adopted login keeps the fingerprint that the state has of it, as a login
/// does that the engine finds by itself.
#[tokio::test(start_paused = true)]
async fn what_is_adopted_keeps_what_no_answer_shows() {
    let (world, renamed) = renamed_in_doubt().await;
    adopt(&world, &world.providers(), "login.l", "login-1").await.unwrap();
    assert_eq!(world.plan_text(&renamed).await, "");
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_shows_of_another_object_is_not_adopted() {
    let (world, renamed) = renamed_in_doubt().await;
    let shows = Some(world.cloud.put("login", &[("name", Value::string("other"))]));
    let mixed = Busy { shows, ..Busy::new(&world, Duration::ZERO) };
    let mixed = world.providers_with(Arc::new(mixed));
    let error = adopt(&world, &mixed, "login.l", "login-1").await.unwrap_err();
    assert_eq!(error.to_string(), "cannot read the object: reading login-1 shows login-2");
    world.apply(&renamed).await.unwrap();
    assert_eq!(world.plan_text(&renamed).await, "");
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_is_not_adopted() {
    let (world, _) = renamed_in_doubt().await;
    let providers = world.providers();
    let error = adopt(&world, &providers, "login.l", "login-9").await.unwrap_err();
    assert_eq!(error.to_string(), "login.l stands for another object");
}

fn disks(names: &[&str]) -> String {
    let block = |name: &&str| {
        format!("[resource.disk.{name}]\nname = \"{name}\"\nsize = 10\nzone = \"eu\"\n")
    };
    names.iter().map(block).collect()
}

/// Returns a world with the disk `disk-1`, and a create in doubt that made `disk-2`.
async fn created_in_doubt() -> World {
    let world = World::new();
    world.apply(&disks(&["a"])).await.unwrap();
    world.store.fail_after(Some(1));
    world.apply(&disks(&["a", "b"])).await.unwrap_err();
    world.store.fail_after(None);
    let session = open(&world).await;
    assert_eq!(OpenCall::about(session.snapshot(), &"disk.b".parse().unwrap()).count(), 1);
    drop(session);
    world
}

#[tokio::test(start_paused = true)]
async fn what_a_create_made_is_adopted_unless_it_is_anothers() {
    let world = created_in_doubt().await;
    let providers = world.providers();
    let error = adopt(&world, &providers, "disk.b", "disk-1").await.unwrap_err();
    assert_eq!(error.to_string(), "disk.a stands for this object already");
    let error = adopt(&world, &providers, "disk.b", "disk-9").await.unwrap_err();
    assert!(matches!(error, ResolveError::Unread(_)), "{error}");
    adopt(&world, &providers, "disk.b", "disk-2").await.unwrap();
    world.apply(&disks(&["a", "b"])).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["a", "b"]);
}

/// The create of a replace is in doubt. The old object, which the address has already, is not adopted as the
/// object of that create.
#[tokio::test(start_paused = true)]
async fn what_its_own_address_has_is_not_what_a_create_made() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    world.store.fail_after(Some(1));
    world.apply(&SERVED.replace("thin", "full")).await.unwrap_err();
    world.store.fail_after(None);
    let error = adopt(&world, &world.providers(), "image.base", "image-1").await.unwrap_err();
    assert_eq!(error.to_string(), "image.base stands for this object already");
}

/// Returns a world with two creates in doubt, whose answers and searches were lost: `disk.a` and `disk.b`.
async fn two_created_in_doubt() -> World {
    let world = World::new();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.strike(1, Fault::LostAfter);
    world.cloud.shared.lock().unwrap().finds_fail = 2;
    let report = world.apply(&disks(&["a", "b"])).await.unwrap();
    assert_eq!(report.in_doubt.len(), 2);
    world
}

#[tokio::test(start_paused = true)]
async fn what_another_lost_create_made_is_not_adopted() {
    let world = two_created_in_doubt().await;
    let error = adopt(&world, &world.providers(), "disk.b", "disk-1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "it was made for disk.a: it has the one-time name of that create"
    );
    converges(&world, &disks(&["a", "b"])).await;
    assert_eq!(world.cloud.names("disk"), ["a", "b"]);
}

/// An older version of Plumb has given the object of the create of `disk.a` to `disk.b`. That create stays
/// in doubt, and runs do not fail over it.
#[tokio::test(start_paused = true)]
async fn what_another_address_stands_for_leaves_a_create_in_doubt() {
    let world = two_created_in_doubt().await;
    let mut session = open(&world).await;
    let doubt = OpenCall::about(session.snapshot(), &"disk.b".parse().unwrap()).next().unwrap();
    let object = Seen { id: ObjectId("disk-1".into()), attributes: Stored::default() };
    let call = doubt.call();
    session.record(Record::Resolved { call, resolution: Resolution::Found { object } }).unwrap();
    session.close().await.unwrap();
    world.apply(&disks(&["a", "b"])).await.unwrap();
    let mut session = open(&world).await;
    let doubt = OpenCall::about(session.snapshot(), &"disk.a".parse().unwrap()).next().unwrap();
    let record = doubt.absent(1_000);
    session.record(record).unwrap();
    session.close().await.unwrap();
    world.apply(&disks(&["a", "b"])).await.unwrap();
    converges(&world, &disks(&["a", "b"])).await;
    assert_eq!(world.cloud.names("disk"), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_to_be_absent_is_made_anew_and_its_twin_goes() {
    let world = created_in_doubt().await;
    let mut session = open(&world).await;
    let about = "disk.b".parse().unwrap();
    let record = OpenCall::about(session.snapshot(), &about).next().unwrap().absent(1_000);
    session.record(record).unwrap();
    session.close().await.unwrap();
    world.apply(&disks(&["a", "b"])).await.unwrap();
    world.apply(&disks(&["a", "b"])).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["a", "b"]);
}
