//! An API that gives the id of what was deleted to what is made next.

use std::collections::BTreeMap;
use std::sync::Arc;

use apply::execute::{Execution, execute};

use crate::cloud::Fault;
use crate::resolve::open;
use crate::world::{DISK, World, converges};

const NEXT: &str = "[resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";

/// One disk, whose id is the next one's if it goes first.
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

/// Its own object went without us, and nobody has looked since: whose the id is cannot be told.
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
        looked: true,
    };
    let report = execute(&mut session, &execution).await.unwrap();
    assert_eq!(report.in_doubt, ["disk.e".parse().unwrap()]);
    session.close().await.unwrap();
}
