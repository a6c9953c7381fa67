//! Changes that somebody makes during a run, to an object that an update sends whole.

use std::time::Duration;

use engine::schema::Sends;
use engine::state::ObjectId;
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, World};

/// The calls that make a unit, make a disk, and give the disk to the unit.
const MADE: [&str; 5] =
    ["create unit", "activate unit", "create disk", "activate disk", "update unit"];

/// Returns a world with one unit. An update sends a unit whole, in `calls` calls, and the cloud does not
/// show attributes that are null.
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

/// Applies a spec that gives the unit a new disk, which appears after 30 seconds. Somebody changes the unit
/// `after` seconds after the start. Returns the same values as `changed_by_somebody`.
async fn changed_meanwhile(world: &World, after: u64, faults: &[(u64, Fault)]) -> [Value; 3] {
    let spec = format!("{DISK}{}", unit("disk_id = \"${disk.d.id}\""));
    world.cloud.strike(0, Fault::Promised(30));
    world.cloud.shared.lock().unwrap().faults.extend(faults.iter().copied());
    changed_by_somebody(world, after, &spec).await
}

/// Applies a spec, while somebody changes the unit `after` seconds after the start. Returns the unit's
/// `disk_id`, `workers` and `image_id`.
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

/// Checks that the unit has its disk, and the values that somebody gave it.
fn assert_both([disk, workers, image]: &[Value; 3]) {
    assert!(disk.same(&Value::string("disk-2")), "{disk:?}");
    assert!(workers.same(&Value::Integer(5)), "{workers:?}");
    assert!(image.same(&Value::string("theirs")), "{image:?}");
}

#[tokio::test(start_paused = true)]
async fn it_stays_so_while_the_call_is_throttled() {
    let world = world(1).await;
    // The disk appears after 30 seconds, and the update of its unit is held back until second 90.
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

/// Every read takes 60 seconds. The run reads three times, and then sends its update.
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

/// The refresh of the plan waits 60 seconds for the read of another unit, which somebody has deleted. What
/// the plan saw of the first unit is that old, and the update still keeps somebody's change.
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
