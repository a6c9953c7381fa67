//! Creates whose answers are lost, doubled or late.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apply::session::{Session, fold};
use engine::journal::Record;
use engine::plan::input::Options;
use engine::state::Watched;
use engine::value::Value;
use state::Store as _;

use crate::cloud::Fault;
use crate::world::{DISK, SERVED, World, converges, holder};

#[tokio::test(start_paused = true)]
async fn a_create_that_was_executed_twice_leaves_no_twin() {
    for fault in [Fault::Doubled, Fault::DoubledAndLost] {
        let world = World::new();
        world.cloud.strike(0, fault);
        world.apply(DISK).await.unwrap();
        assert_eq!(world.cloud.names("disk").len(), 2, "the server did it twice");
        let text = world.plan_text(DISK).await;
        assert!(text.contains("delete disk.d (deposed)"), "{text}");
        converges(&world, DISK).await;
        assert_eq!(world.cloud.names("disk"), ["d"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_wait_failed_is_not_forgotten() {
    let world = World::new();
    world.cloud.strike(0, Fault::StillWaiting);
    let report = world.apply(DISK).await.unwrap();
    assert_eq!(report.failures.len(), 1);
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_an_object_is_looked_up() {
    let world = World::new();
    world.cloud.strike(0, Fault::Bare);
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_leftover_goes_while_its_address_is_finished() {
    let world = World::new();
    // The server executes the create twice, and the run ends before the object has its name.
    world.cloud.shared.lock().unwrap().faults.extend([(0, Fault::Doubled), (1, Fault::Refused)]);
    world.apply(DISK).await.unwrap();
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_was_refused_because_of_itself_is_not_lost() {
    let world = World::new();
    // The server executes the create twice, and answers for the second time: the name exists already.
    world.cloud.strike(0, Fault::DoubledAndRefused);
    let report = world.apply(DISK).await.unwrap();
    assert_eq!(report.failures.len(), 1);
    assert_eq!(world.cloud.names("disk").len(), 1, "the first time made it");
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// Loses the first create before its effect. Returns the nonce of that create.
async fn lost_create(world: &World) -> String {
    world.cloud.strike(0, Fault::LostBefore);
    world.apply(DISK).await.unwrap();
    let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
    let watched: Vec<_> = snapshot.watched.iter().map(|watched| watched.nonce.0.clone()).collect();
    watched.into_iter().next().expect("the nonce of the lost create is watched").to_string()
}

#[tokio::test(start_paused = true)]
async fn a_create_that_happens_long_after_it_was_given_up_is_removed() {
    let world = World::new();
    let nonce = lost_create(&world).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
    let late = [("name", Value::string(nonce.as_str())), ("size", Value::Integer(10))];
    world.cloud.put("disk", &late);
    let text = world.plan_text(DISK).await;
    assert!(text.contains("delete disk.d (deposed)"), "a plan shows it first: {text}");
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_like_ours_is_a_strangers_name() {
    let world = World::new();
    let _nonce = lost_create(&world).await;
    // The nonce is of another state, or was copied long ago: our records do not have it.
    let other = engine::state::Nonce::from_random([9; 16]);
    world.cloud.put("disk", &[("name", Value::String(other.0.clone()))]);
    assert_eq!(world.plan_text(DISK).await, "");
    world.apply("[local]\n").await.unwrap();
    assert_eq!(world.cloud.names("disk"), [other.to_string()]);
}

/// The names that consoles and people give to a copy.
const COPIES: [fn(&str) -> String; 4] = [
    |name| format!("{name}-copy"),
    |name| format!("{name} (copy)"),
    |name| format!("{name} keep this"),
    |name| format!("Copy of {name}"),
];

#[tokio::test(start_paused = true)]
async fn copies_of_what_bears_a_one_time_name_are_strangers() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Doubled] {
        let world = World::new();
        world.cloud.strike(0, fault);
        world.apply(DISK).await.unwrap();
        let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
        let nonce = snapshot.watched.first().expect("the create is watched").nonce.to_string();
        for copy in COPIES {
            let name = Value::string(copy(&nonce));
            world.cloud.put("disk", &[("name", name), ("size", Value::Integer(99))]);
        }
        converges(&world, DISK).await;
        world.apply("[local]\n").await.unwrap();
        let copies: BTreeSet<_> = COPIES.map(|copy| copy(&nonce)).into();
        let left: BTreeSet<_> = world.cloud.names("disk").into_iter().collect();
        assert_eq!(left, copies, "only ours goes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_leftover_uses_goes_after_it() {
    let world = World::new();
    // The unit's create is executed twice; then the spec keeps the unit and drops its image.
    world.cloud.strike(2, Fault::Doubled);
    world.apply(SERVED).await.unwrap();
    assert_eq!(world.cloud.names("unit").len(), 2, "the server did it twice");
    let alone = "[resource.unit.chat]\nname = \"chat\"\n";
    let text = world.plan_text(alone).await;
    insta::assert_snapshot!(text, @r#"
    delete image.base []
    delete unit.chat (deposed) []
    s0 = drain unit.chat (unit-3)
    s1 = delete unit.chat (unit-3) after s0
    s2 = delete image.base (image-1) after s1
    warning:1: `image_id` is no longer managed, and what it names is deleted by this plan
    "#);
    world.cloud.take_log();
    world.apply(alone).await.unwrap();
    let log = world.cloud.take_log();
    assert_eq!(log[..2], ["drain unit", "delete unit"]);
}

/// The watch of a create's name ends when its time is over and a list that was read after that shows no
/// object with the name. The clock alone ends no watch.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_lists_were_looked_at_after_its_time() {
    let own = [(None, Watched::ANSWERED_MS), (Some(Fault::LostBefore), Watched::GIVEN_UP_MS)];
    for (fault, for_ms) in own {
        let world = World::new();
        if let Some(fault) = fault {
            world.cloud.strike(0, fault);
        }
        world.apply(DISK).await.unwrap();
        let mut watched = world.state().await.watched.into_iter();
        let nonce = watched.find(|watched| watched.answered == fault.is_none()).unwrap().nonce;
        let is_watched = async || {
            let watched = world.state().await.watched;
            watched.iter().any(|watched| watched.nonce == nonce)
        };
        let noted = format!("{DISK}[resource.value.v]\ninput = 1\n");
        let (early, ..) = world.plan(&noted).await;
        world.host.slept.fetch_add(for_ms, Ordering::Relaxed);
        world.apply(DISK).await.unwrap();
        assert!(is_watched().await, "its time is not over");
        world.host.slept.fetch_add(1, Ordering::Relaxed);
        world.apply_saved(&early).await.unwrap();
        assert!(!is_watched().await, "its lists were looked at again");
        converges(&world, &noted).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_by_a_look_at_nothing_and_not_without_a_provider() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.host.slept.fetch_add(Watched::ANSWERED_MS + 1, Ordering::Relaxed);
    let (late, ..) = world.plan(DISK).await;
    assert!(matches!(&late.seen[..], [Record::Unwatched { .. }]), "{:?}", late.seen);
    world.destroy(DISK).await.unwrap();
    assert!(world.state().await.watched.is_empty());
    // Nothing of the state needs the provider any more, and the spec does not name it.
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.destroy(DISK).await.unwrap();
    world.host.slept.fetch_add(Watched::ANSWERED_MS + 1, Ordering::Relaxed);
    let mut providers = world.providers();
    providers.remove("cloud");
    let noted = "[resource.value.v]\ninput = 1\n";
    let options = Options::default();
    world.apply_through(&world.store, &providers, noted, &options).await.unwrap();
    assert_eq!(world.state().await.watched.len(), 1, "no list was looked at");
    world.apply(noted).await.unwrap();
    assert!(world.state().await.watched.is_empty());
}

/// An object leaves the state while it has its one-time name. The run leaves that object alone, and deletes
/// its twin.
#[tokio::test(start_paused = true)]
async fn a_twin_goes_although_its_address_was_let_go() {
    let world = World::new();
    world.cloud.strike(0, Fault::Doubled);
    world.cloud.strike(1, Fault::Refused);
    world.apply(DISK).await.unwrap();
    let both = world.cloud.names("disk");
    assert!(both.len() == 2 && both[0] == both[1], "the server did it twice: {both:?}");
    let own = world.state().await.entries.into_values().next().unwrap().current.unwrap().id;
    let mut session =
        Session::open(&world.store, &holder(), Duration::ZERO, &world.host, None).await.unwrap();
    let address = "disk.d".parse().unwrap();
    session.record(Record::Forgot { address, object: own.clone() }).unwrap();
    session.close().await.unwrap();
    converges(&world, "[local]\n").await;
    let shared = world.cloud.shared.lock().unwrap();
    let left: Vec<_> = shared.objects.keys().map(|(_, id)| id).collect();
    assert_eq!(left, [&own]);
}
