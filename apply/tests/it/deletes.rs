//! Deletes that were stopped, deletes that come late, and objects that go without a delete of ours.

use std::time::Duration;

use apply::ApplyError;
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{SERVED, World, converges};

#[tokio::test(start_paused = true)]
async fn what_was_drained_and_works_again_is_drained_again() {
    let world = World::new();
    let spec = "[resource.unit.chat]\nname = \"chat\"\nworkers = 2\n";
    world.apply(spec).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    // The unit is drained, and not deleted; then somebody, or a late call, gives it workers again.
    world.apply("[local]\n").await.unwrap();
    for attributes in world.cloud.shared.lock().unwrap().objects.values_mut() {
        attributes.insert("workers".into(), Value::Integer(2));
    }
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("unit").is_empty());
}

/// The workers of a unit do not end before the wait for them does. The run does not delete the unit, and
/// the next run goes on.
#[tokio::test(start_paused = true)]
async fn what_does_not_drain_in_time_stays_for_the_next_run() {
    let world = World::new();
    let spec = "[resource.unit.chat]\nname = \"chat\"\nworkers = 2\n";
    world.apply(spec).await.unwrap();
    world.cloud.take_log();
    world.cloud.strike(0, Fault::StillWaiting);
    let report = world.apply("[local]\n").await.unwrap();
    assert_eq!((report.failures.len(), report.summary.deleted), (1, 0), "{report:?}");
    assert_eq!(world.cloud.take_log(), ["drain unit"], "no delete after it");
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("unit").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_used_again_is_let_go_of_before_it_goes() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    // The reference leaves the spec: the live unit keeps it, and the state no longer knows of it.
    world.apply(&SERVED.replace("image_id = \"${image.base.id}\"", "")).await.unwrap();
    world.cloud.take_log();
    world.apply(&SERVED.replace("thin", "full")).await.unwrap();
    let log = world.cloud.take_log();
    let place = |what: &str| log.iter().position(|line| line.starts_with(what)).unwrap();
    assert!(place("update unit") < place("delete image"), "{log:?}");
}

/// Returns a world in which a unit has the id of an image, and the state has no dependency for it. If `left`
/// is true, the attribute has left the spec and the API kept it; otherwise the spec has the id as a text.
async fn used_without_a_reference(left: bool) -> World {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    let id =
        world.state().await.entries[&"image.base".parse().unwrap()].current.clone().unwrap().id.0;
    let (reference, other) = ("\"${image.base.id}\"", format!("\"{id}\""));
    let spec = if left {
        SERVED.replace(&format!("image_id = {reference}\n"), "")
    } else {
        SERVED.replace(reference, &other)
    };
    world.apply(&spec).await.unwrap();
    let entry = &world.state().await.entries[&"unit.chat".parse().unwrap()];
    assert!(entry.dependencies.is_empty());
    world.cloud.take_log();
    world
}

#[tokio::test(start_paused = true)]
async fn who_names_an_object_lets_go_of_it_before_it_goes() {
    let other = SERVED.replace("image.base", "image.other").replace("\"base\"", "\"other\"");
    for (left, spec) in [(true, "[local]\n"), (false, "[local]\n"), (true, &other), (false, &other)]
    {
        let world = used_without_a_reference(left).await;
        let report = world.apply(spec).await.unwrap();
        assert_eq!(report.failures, [], "{left} {spec}");
        let log = world.cloud.take_log();
        let place = |what: &str| log.iter().position(|line| line.starts_with(what)).unwrap();
        let gone = place("delete image");
        assert!(log.iter().position(|line| line.contains("unit")).unwrap() < gone, "{log:?}");
    }
}

/// The disk and the image have the same id, which is also the name of the image. The run still deletes the
/// disk before the image that it depends on.
#[tokio::test(start_paused = true)]
async fn who_bears_an_id_as_a_name_does_not_turn_an_order_round() {
    let spec = "[resource.image.base]\nname = \"1\"\nkind = \"thin\"\n\
                [resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"${image.base.id}\"\n";
    let world = World::counting(spec).await;
    world.cloud.take_log();
    let report = world.destroy(spec).await.unwrap();
    assert_eq!(report.failures, []);
    let log = world.cloud.take_log();
    let place = |what: &str| log.iter().position(|line| line.starts_with(what)).unwrap();
    assert!(place("delete disk") < place("delete image"), "{log:?}");
}

/// Returns a spec with `count` disks.
fn disks(count: usize) -> String {
    let disk = |n| format!("[resource.disk.d{n}]\nname = \"d{n}\"\nsize = 10\nzone = \"eu\"\n");
    (0..count).map(disk).collect()
}

/// Removes all live disks but `d0`, as deletes do that arrive late.
fn deletes_arrive(world: &World) {
    let mut shared = world.cloud.shared.lock().unwrap();
    shared.objects.retain(|_, object| object["name"].as_str() == Some("d0"));
}

/// Applies five disks, and then a spec with only one of them, while all calls are lost before their effect
/// and the next `reads_fail` reads fail.
async fn lose_deletes(world: &World, reads_fail: u64) {
    world.apply(&disks(5)).await.unwrap();
    for call in 0..12 {
        world.cloud.strike(call, Fault::LostBefore);
    }
    world.cloud.fail_reads(reads_fail);
    world.apply(&disks(1)).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.clear();
    assert_eq!(world.cloud.names("disk").len(), 5, "nothing has happened yet");
}

#[tokio::test(start_paused = true)]
async fn deletes_that_come_late_are_no_question() {
    // The run that sent the deletes reads the disks, and believes that nothing happened.
    let world = World::new();
    lose_deletes(&world, 0).await;
    deletes_arrive(&world);
    converges(&world, &disks(5)).await;
    assert_eq!(world.cloud.names("disk").len(), 5);

    // The next run reads the disks, believes that nothing happened, and keeps them.
    let world = World::new();
    lose_deletes(&world, 4).await;
    world.apply(&disks(5)).await.unwrap();
    deletes_arrive(&world);
    converges(&world, &disks(5)).await;

    // The deletes are still in doubt when the disks are gone.
    let world = World::new();
    lose_deletes(&world, 4).await;
    deletes_arrive(&world);
    world.cloud.fail_reads(4);
    world.apply(&disks(1)).await.unwrap();
    converges(&world, &disks(1)).await;
    assert_eq!(world.cloud.names("disk"), ["d0"]);
}

/// The deletes were sent a moment ago. The next run waits for the settle time of 10 seconds before it
/// believes that they did not happen.
#[tokio::test(start_paused = true)]
async fn deletes_of_a_killed_run_are_waited_for() {
    let world = World::new();
    lose_deletes(&world, 4).await;
    world.cloud.shared.lock().unwrap().settle = Duration::from_secs(10);
    let arrive = async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        deletes_arrive(&world);
    };
    let spec = disks(5);
    let (report, ()) = tokio::join!(world.apply(&spec), arrive);
    assert_eq!(report.unwrap().summary.created, 4);
    assert_eq!(world.plan_text(&spec).await, "");
    assert_eq!(world.cloud.names("disk").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_goes_without_a_delete_of_ours_is_a_question() {
    let world = World::new();
    world.apply(&disks(5)).await.unwrap();
    // A refused delete is not in doubt.
    for call in 0..12 {
        world.cloud.strike(call, Fault::Refused);
    }
    world.apply(&disks(1)).await.unwrap();
    deletes_arrive(&world);
    let error = world.apply(&disks(5)).await.unwrap_err();
    assert!(matches!(error, ApplyError::Vanished { gone: 4, all: 5, .. }), "{error:?}");
}

/// Without a refresh, a run does not know that it looks into the account where the objects were made. It
/// does not take missing objects for deleted.
#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_taken_for_gone_without_a_look() {
    let mut world = World::new();
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 2\n";
    let spec = disks(2) + unit;
    world.apply(&spec).await.unwrap();
    let theirs = std::mem::take(&mut world.cloud.shared.lock().unwrap().objects);
    world.looks = false;
    let report = world.destroy(&spec).await.unwrap();
    assert_eq!((report.failures.len(), report.summary.deleted), (3, 0), "{report:?}");
    assert_eq!(world.state().await.entries.len(), 3);
    // In the right account, the run deletes the objects.
    world.cloud.shared.lock().unwrap().objects = theirs;
    assert_eq!(world.destroy(&spec).await.unwrap().failures, []);
    assert!(world.state().await.entries.is_empty());
}

/// The run sent a delete whose answer was lost. Without a refresh, it believes that the delete is the reason
/// why the object is missing.
#[tokio::test(start_paused = true)]
async fn a_delete_that_was_lost_is_believed_without_a_look() {
    let mut world = World::new();
    world.apply(&disks(1)).await.unwrap();
    world.looks = false;
    world.cloud.strike(0, Fault::LostAfter);
    assert_eq!(world.destroy(&disks(1)).await.unwrap().failures, []);
    assert!(world.state().await.entries.is_empty());
}
