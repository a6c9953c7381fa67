//! What somebody changes while a run is under way, of an object that a call sends whole.

use std::time::Duration;

use engine::schema::Sends;
use engine::state::ObjectId;
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, World};

/// What is done for a unit, and then for a disk that it is given.
const MADE: [&str; 5] =
    ["create unit", "activate unit", "create disk", "activate disk", "update unit"];

/// A cloud whose units are sent whole when they change, in so many calls, and which shows nothing of what
/// they do not have.
async fn world(calls: usize) -> World {
    let mut world = World::new();
    world.cloud.change_type("unit", |unit| {
        for program in &mut unit.update {
            let mut whole = program.phases[0].clone();
            whole.sends = Sends::All;
            program.phases = vec![whole; calls];
        }
    });
    world.cloud.makes = |object| object.retain(|_, value| !value.is_null());
    world.cloud.shared.lock().unwrap().settle = Duration::from_secs(1);
    world.apply(&unit("")).await.unwrap();
    world
}

fn unit(line: &str) -> String {
    format!(
        "[resource.unit.u]\nname = \"u\"\nworkers = 2\n{line}\n\
         lifecycle = {{ ignore_changes = [\"workers\"] }}\n"
    )
}

/// The unit after it was given a disk that came 30 s late, while somebody changed it after so many seconds.
async fn changed_meanwhile(world: &World, after: u64, faults: &[(u64, Fault)]) -> [Value; 3] {
    let spec = format!("{DISK}{}", unit("disk_id = \"${disk.d.id}\""));
    world.cloud.strike(0, Fault::Promised(30));
    world.cloud.shared.lock().unwrap().faults.extend(faults.iter().copied());
    changed_by_somebody(world, after, &spec).await
}

/// The unit after a spec was applied, while somebody changed it after so many seconds.
async fn changed_by_somebody(world: &World, after: u64, spec: &str) -> [Value; 3] {
    let somebody = async {
        tokio::time::sleep(Duration::from_secs(after)).await;
        let mut shared = world.cloud.shared.lock().unwrap();
        let own = shared.objects.get_mut(&("unit".into(), ObjectId("unit-1".into()))).unwrap();
        own.insert("workers".into(), Value::Integer(5));
        own.insert("image_id".into(), Value::string("theirs"));
    };
    let (report, ()) = tokio::join!(world.apply(spec), somebody);
    assert!(report.as_ref().unwrap().failures.is_empty(), "{report:?}");
    let shared = world.cloud.shared.lock().unwrap();
    let own = &shared.objects[&("unit".into(), ObjectId("unit-1".into()))];
    ["disk_id", "workers", "image_id"].map(|name| own[name].clone())
}

#[tokio::test(start_paused = true)]
async fn what_others_change_of_a_whole_object_stays_as_they_left_it() {
    let lost = [&[][..], &[(2, Fault::LostAfter)], &[(2, Fault::LostBefore)]];
    for (calls, faults) in [1, 2].into_iter().flat_map(|calls| lost.map(|it| (calls, it))) {
        let world = world(calls).await;
        assert_both(&changed_meanwhile(&world, 15, faults).await);
    }
}

/// The unit has its disk, and what somebody changed.
fn assert_both([disk, workers, image]: &[Value; 3]) {
    assert!(disk.same(&Value::string("disk-2")), "{disk:?}");
    assert!(workers.same(&Value::Integer(5)), "{workers:?}");
    assert!(image.same(&Value::string("theirs")), "{image:?}");
}

#[tokio::test(start_paused = true)]
async fn it_stays_so_while_the_call_is_throttled() {
    let world = world(1).await;
    // The disk shows after 30 s, and its unit's call is held back until the 90th.
    assert_both(&changed_meanwhile(&world, 60, &[(2, Fault::Throttled(60))]).await);
    assert_eq!(world.cloud.take_log(), MADE);
}

#[tokio::test(start_paused = true)]
async fn it_stays_so_while_a_young_call_is_throttled() {
    let world = world(1).await;
    let spec = format!("{DISK}{}", unit("disk_id = \"${disk.d.id}\""));
    world.cloud.strike(2, Fault::Throttled(60));
    assert_both(&changed_by_somebody(&world, 30, &spec).await);
}

#[tokio::test(start_paused = true)]
async fn it_stays_so_while_the_look_before_the_call_is_slow() {
    let world = world(1).await;
    world.cloud.shared.lock().unwrap().reads_take = [60].into();
    assert_both(&changed_meanwhile(&world, 60, &[]).await);
}

/// Where every look takes so long, the call goes out all the same.
#[tokio::test(start_paused = true)]
async fn looks_that_are_always_slow_keep_no_call_back() {
    let world = world(1).await;
    world.cloud.shared.lock().unwrap().reads_take = vec![60; 100].into();
    let spec = format!("{DISK}{}", unit("disk_id = \"${disk.d.id}\""));
    world.cloud.strike(0, Fault::Promised(30));
    assert!(world.apply(&spec).await.unwrap().failures.is_empty());
    assert_eq!(world.cloud.take_log(), MADE);
    let reads = 100 - world.cloud.shared.lock().unwrap().reads_take.len();
    assert_eq!(reads, 3);
}

/// What the plan saw is as old as its look: that waited a minute for another object, which somebody has deleted.
#[tokio::test(start_paused = true)]
async fn it_stays_so_while_the_look_of_the_plan_is_slow() {
    let world = world(1).await;
    let both = |line: &str| format!("{}{}", unit(line), unit("").replace("unit.u", "unit.v"));
    world.apply(&both("")).await.unwrap();
    world.cloud.take_log();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.objects.remove(&("unit".into(), ObjectId("unit-2".into())));
        shared.reads_take = [60].into();
    }
    assert_both(&changed_by_somebody(&world, 30, &both("disk_id = \"disk-2\"")).await);
}
