//! Ids of objects: an id stands for one object of a type, at one provider.

use std::time::Duration;

use apply::doubt::resolve::OpenCall;
use apply::session::Session;
use engine::state::ObjectId;
use engine::value::Value;

use crate::cloud::{Cloud, Fault};
use crate::world::{DISK, World, converges, holder};

const IMAGES: &str = "[resource.image.a]\nname = \"a\"\n[resource.image.b]\nname = \"b\"\n";

#[tokio::test(start_paused = true)]
async fn a_twin_is_found_whose_id_an_object_of_another_type_has() {
    let world = World::counting(IMAGES).await;
    let spec = format!("{IMAGES}{DISK}");
    world.cloud.strike(0, Fault::Doubled);
    world.apply(&spec).await.unwrap();
    assert_eq!(world.cloud.names("disk").len(), 2, "the server did it twice");
    converges(&world, &spec).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
    assert_eq!(world.cloud.names("image"), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_adopted_whose_id_an_object_of_another_type_has() {
    let world = World::counting(IMAGES).await;
    let spec = format!("{IMAGES}{DISK}");
    world.apply(&spec).await.unwrap();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.fail_reads(1);
    let grown = spec.replace("size = 10", "size = 20");
    assert_eq!(world.apply(&grown).await.unwrap().in_doubt.len(), 1);
    let mut session =
        Session::open(&world.store, &holder(), Duration::ZERO, &world.host, None).await.unwrap();
    let doubt = OpenCall::about(session.snapshot(), &"disk.d".parse().unwrap()).next().unwrap();
    let record = doubt.adopt(&ObjectId("1".into()), &world.providers()).await.unwrap();
    session.record(record).unwrap();
    session.close().await.unwrap();
    assert_eq!(world.plan_text(&grown).await, "");
}

#[tokio::test(start_paused = true)]
async fn an_object_does_not_go_to_another_provider() {
    let mut world = World::new();
    world.second = Some(Cloud::new());
    let at = |provider: &str| format!("{DISK}provider = \"{provider}\"\n");
    world.apply(&at("cloud")).await.unwrap();
    let theirs = world.second.as_ref().unwrap().put("disk", &[("name", Value::string("theirs"))]);
    assert_eq!(&*theirs.0, "disk-1", "an id says nothing elsewhere");
    for changed in [at("second"), at("second").replace("size = 10", "size = 20")] {
        let text = world.plan_text(&changed).await;
        assert_eq!(text, "error:1: disk.d cannot go to another provider\n");
    }
    // At another address, the disk is made at the second provider, and the old one is deleted at the first.
    let moved = at("second").replace("disk.d", "disk.e");
    world.apply(&moved).await.unwrap();
    assert!(world.cloud.names("disk").is_empty());
    assert_eq!(world.second.as_ref().unwrap().names("disk"), ["d", "theirs"]);
}

/// A twin appears at the first provider after its address went to the second. The run deletes the twin at the
/// first provider, also after a refused delete, and the stranger's disk with the same id at the second stays.
#[tokio::test(start_paused = true)]
async fn a_twin_goes_at_the_provider_that_made_it() {
    for has_object in [true, false] {
        let mut world = World::counting(DISK).await;
        world.second = Some(Cloud::new());
        let nonce = world.state().await.watched[0].nonce.clone();
        let at = |provider: &str| format!("{DISK}provider = \"{provider}\"\n");
        world.destroy(&at("cloud")).await.unwrap();
        let second = world.second.clone().unwrap();
        second.shared.lock().unwrap().counts_by_type = true;
        second.put("disk", &[("name", Value::string("theirs"))]);
        let at_second = at("second");
        if has_object {
            world.apply(&at_second).await.unwrap();
        }
        let twin = world.cloud.put("disk", &[("name", Value::String(nonce.0.clone()))]);
        assert_eq!(&*twin.0, "1", "the stranger's at the other one has that id, too");
        world.cloud.strike(0, Fault::Refused);
        let report = world.apply(&at_second).await.unwrap();
        assert_eq!(report.failures.len(), 1);
        converges(&world, &at_second).await;
        assert!(world.cloud.names("disk").is_empty());
        assert_eq!(second.names("disk"), ["d", "theirs"]);
    }
}

/// A saved plan deletes a disk at the first provider. Another run has made the address a new disk with the
/// same id at the second provider, so the saved plan is stale.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_deletes_nothing_at_the_provider_that_it_was_at() {
    let at = |provider: &str| format!("{DISK}provider = \"{provider}\"\n");
    for leaves_a_twin in [false, true] {
        let mut world = World::counting(DISK).await;
        let second = Cloud::new();
        second.shared.lock().unwrap().counts_by_type = true;
        world.second = Some(second.clone());
        let plan = if leaves_a_twin {
            let nonce = world.state().await.watched[0].nonce.clone();
            world.destroy(&at("cloud")).await.unwrap();
            world.cloud.put("disk", &[("name", Value::String(nonce.0.clone()))]);
            world.plan("[local]\n").await.0
        } else {
            let plan = world.plan("[local]\n").await.0;
            world.apply("[local]\n").await.unwrap();
            plan
        };
        assert_eq!(plan.steps.len(), 1);
        // This run does not find the twin, because the list of the first provider is empty.
        let hidden = std::mem::take(&mut world.cloud.shared.lock().unwrap().objects);
        world.apply(&at("second")).await.unwrap();
        world.cloud.shared.lock().unwrap().objects = hidden;
        let error = world.apply_saved(&plan).await.unwrap_err();
        assert!(error.to_string().starts_with("stale plan: disk.d: "), "{error}");
        assert_eq!(second.names("disk"), ["d"]);
        converges(&world, &at("second")).await;
        assert!(world.cloud.names("disk").is_empty());
    }
}

/// The create of a disk at the second provider is in doubt, and a twin of the same address appears at the
/// first provider. The run deletes the twin.
#[tokio::test(start_paused = true)]
async fn a_twin_is_not_kept_beside_a_create_in_doubt_at_another_provider() {
    let at = |provider: &str| format!("{DISK}provider = \"{provider}\"\n");
    let mut world = World::counting(DISK).await;
    let second = Cloud::new();
    second.shared.lock().unwrap().counts_by_type = true;
    second.put("disk", &[("name", Value::string("theirs"))]);
    world.second = Some(second.clone());
    let nonce = world.state().await.watched[0].nonce.clone();
    world.destroy(&at("cloud")).await.unwrap();
    second.strike(0, Fault::LostAfter);
    second.shared.lock().unwrap().finds_fail = 2;
    assert_eq!(world.apply(&at("second")).await.unwrap().in_doubt.len(), 1);
    world.cloud.put("disk", &[("name", Value::String(nonce.0.clone()))]);
    world.cloud.strike(0, Fault::Refused);
    world.apply(&at("cloud")).await.unwrap();
    converges(&world, &at("second")).await;
    assert_eq!(second.names("disk"), ["d", "theirs"]);
    assert!(world.cloud.names("disk").is_empty());
}
