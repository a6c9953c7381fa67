//! An API that gives the id of a deleted object to the next object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apply::Host as _;
use apply::run::{Execution, execute};
use engine::state::ObjectId;
use engine::value::{Datum, Paths, Value};

use crate::cloud::Fault;
use crate::resolve::open;
use crate::world::{DISK, World, converges};

const NEXT: &str = "[resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";

/// Returns a world with one disk. The next disk gets the same id if this one is deleted first.
async fn one_disk() -> World {
    World::counting(DISK).await
}

#[tokio::test(start_paused = true)]
async fn a_lost_delete_does_not_delete_what_got_its_id() {
    for call in 0..2 {
        let world = one_disk().await;
        world.cloud.strike(call, Fault::LostAfter);
        world.apply(NEXT).await.unwrap();
        converges(&world, NEXT).await;
        assert_eq!(world.cloud.names("disk"), ["e"], "{call}");
        let deletes = world.cloud.take_log().iter().filter(|call| *call == "delete disk").count();
        assert_eq!(deletes, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_delete_does_not_delete_what_got_its_id() {
    for writes in 1..6 {
        let world = one_disk().await;
        world.store.fail_after(Some(writes));
        world.apply(NEXT).await.ok();
        world.store.fail_after(None);
        world.apply(NEXT).await.unwrap();
        converges(&world, NEXT).await;
        assert_eq!(world.cloud.names("disk"), ["e"], "{writes}");
        let deletes = world.cloud.take_log().iter().filter(|call| *call == "delete disk").count();
        assert_eq!(deletes, 1, "{writes}");
    }
}

/// Somebody deletes the object of `disk.d` after the plan, and `disk.e` is made with its id. The run cannot
/// tell whose object has the id, so the create of `disk.e` is in doubt.
#[tokio::test(start_paused = true)]
async fn an_id_that_another_address_stands_for_is_a_doubt() {
    let world = one_disk().await;
    let both = format!("{DISK}{NEXT}");
    let (plan, ..) = world.plan(&both).await;
    world.cloud.shared.lock().unwrap().objects.clear();
    let providers = world.providers();
    let mut session = open(&world).await;
    let execution = Execution {
        plan: &plan,
        providers: &providers,
        host: &world.host,
        variables: &BTreeMap::new(),
        parallelism: None,
        emit: Arc::new(|_| {}),
        stop: &world.stop,
        run: "run",
        looked_at: Some(world.host.clock().moment()),
    };
    let report = execute(&mut session, &execution).await.unwrap();
    assert_eq!(report.in_doubt, ["disk.e".parse().unwrap()]);
    session.close().await.unwrap();
}

/// Returns a spec with the disk in a zone. A change of the zone makes the new disk before it deletes the
/// old one.
fn moved(zone: &str) -> String {
    let lifecycle = "lifecycle = { create_before_destroy = true, allow_data_loss = true }\n";
    format!("{}{lifecycle}", DISK.replace("eu", zone))
}

/// Returns the spec of `moved`, with a secret as the name of the disk.
fn named_secretly(zone: &str) -> String {
    let variable = "[variable.name]\ntype = \"string\"\nsensitive = true\n";
    format!("{variable}{}", moved(zone).replace("\"d\"", "\"${var.name}\""))
}

/// Plans a replace of the disk, deletes the old disk as somebody does by hand, and then executes the plan.
/// The store fails after `writes` writes, or never if that is None.
async fn run_without_the_old_one(world: &World, spec: &str, writes: Option<u64>) {
    let (plan, ..) = world.plan(spec).await;
    let secret = Datum { value: Value::string("d"), sensitive: Paths::whole() };
    let variables = BTreeMap::from([("name".into(), secret)]);
    world.cloud.shared.lock().unwrap().objects.clear();
    world.cloud.take_log();
    world.store.fail_after(writes);
    let providers = world.providers();
    let mut session = open(world).await;
    let execution = Execution {
        plan: &plan,
        providers: &providers,
        host: &world.host,
        variables: &variables,
        parallelism: None,
        emit: Arc::new(|_| {}),
        stop: &world.stop,
        run: "run",
        looked_at: Some(world.host.clock().moment()),
    };
    let report = execute(&mut session, &execution).await;
    world.store.fail_after(None);
    if writes.is_none() {
        let report = report.unwrap();
        assert_eq!((&report.in_doubt, &report.failures), (&vec![], &vec![]));
    }
    session.close().await.ok();
}

/// The new disk of an address gets the id of its old disk. The run does not delete it as the old disk.
#[tokio::test(start_paused = true)]
async fn what_an_address_makes_may_get_the_id_of_its_old_object() {
    for fault in [None, Some(Fault::LostAfter), Some(Fault::Bare)] {
        let world = World::counting(&moved("eu")).await;
        if let Some(fault) = fault {
            world.cloud.strike(0, fault);
        }
        run_without_the_old_one(&world, &moved("us"), None).await;
        let made: Vec<String> = world.cloud.take_log();
        assert!(!made.iter().any(|call| call == "delete disk"), "{fault:?}: {made:?}");
        converges(&world, &moved("us")).await;
        assert_eq!(world.cloud.names("disk"), ["d"], "{fault:?}");
        assert_eq!(world.cloud.take_log(), Vec::<String>::new(), "{fault:?}");
        let state = world.state().await;
        assert_eq!(state.objects().count(), 1, "{fault:?}");
    }
}

/// A run that makes a disk with the id of the old disk is killed at each of its writes. The next run keeps
/// that disk, too.
#[tokio::test(start_paused = true)]
async fn a_killed_run_may_have_made_what_has_the_id_of_its_old_object() {
    for (writes, is_secret) in (1..8).flat_map(|writes| [(writes, false), (writes, true)]) {
        let mut world = World::new();
        if is_secret {
            world.variables.insert("name".to_owned(), "d".to_owned());
        }
        let spec = if is_secret { named_secretly } else { moved };
        world.cloud.shared.lock().unwrap().counts_by_type = true;
        world.apply(&spec("eu")).await.unwrap();
        run_without_the_old_one(&world, &spec("us"), Some(writes)).await;
        converges(&world, &spec("us")).await;
        assert_eq!(world.cloud.names("disk"), ["d"], "{writes}");
        let calls = world.cloud.take_log();
        let count = |what: &str| calls.iter().filter(|call| *call == what).count();
        assert_eq!((count("create disk"), count("delete disk")), (1, 0), "{writes}: {calls:?}");
        assert_eq!(world.state().await.objects().count(), 1, "{writes}");
    }
}

/// Returns a spec with an image whose name is known only once a disk is made. The delete of a deposed image
/// does not wait for that.
fn named_late() -> String {
    format!("{DISK}[resource.image.i]\nname = \"${{disk.d.id}}\"\nkind = \"two\"\n")
}

/// Returns a world after a run that lost the answer to the delete of a deposed image and made the next image
/// of the same address. `writes` is the write at which the store fails, and `create` a fault of the create.
async fn delete_beside_create(writes: Option<u64>, create: Option<Fault>) -> World {
    let image = "[resource.image.i]\nname = \"i\"\nkind = \"one\"\n";
    let world = World::counting(image).await;
    world.cloud.shared.lock().unwrap().settle = Duration::from_secs(10);
    world.cloud.strike(1, Fault::Refused);
    world.apply(&image.replace("one", "two")).await.unwrap();
    let successor = ("image".into(), ObjectId("2".into()));
    world.cloud.shared.lock().unwrap().objects.remove(&successor).unwrap();
    world.cloud.take_log();
    for call in 0..2 {
        world.cloud.strike(call, Fault::LostAfter);
    }
    world.cloud.shared.lock().unwrap().faults.extend(create.map(|fault| (2, fault)));
    world.store.fail_after(writes);
    world.apply(&named_late()).await.ok();
    world.store.fail_after(None);
    world.cloud.shared.lock().unwrap().faults.clear();
    world
}

#[tokio::test(start_paused = true)]
async fn a_lost_delete_of_what_was_put_aside_does_not_delete_its_successor() {
    for create in [None, Some(Fault::LostAfter), Some(Fault::Bare)] {
        for writes in (1..12).map(Some).chain([None]) {
            let world = delete_beside_create(writes, create).await;
            converges(&world, &named_late()).await;
            let calls = world.cloud.take_log();
            let count = |what: &str| calls.iter().filter(|call| *call == what).count();
            let counted = (count("create image"), count("delete image"));
            assert_eq!(counted, (1, 1), "{create:?} {writes:?}: {calls:?}");
            assert_eq!(world.state().await.objects().count(), 2, "{create:?} {writes:?}");
        }
    }
}
