//! Calls in doubt: the changes that wait for them, and the objects that stay because of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use apply::ApplyError;
use engine::plan::input::{Options, Target};
use engine::schema::{Attribute, Presence};
use engine::value::Value;
use provider_port::Provider as _;

use crate::cloud::Fault;
use crate::slow_cloud::Busy;
use crate::world::{DISK, SERVED, World, converges};

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_while_its_delete_is_in_doubt() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.fail_reads(2);
    let report = world.apply("[local]\n").await.unwrap();
    assert_eq!(report.in_doubt.len(), 1);
    // The next check of the delete in doubt fails as well, while the refresh sees that the disk is gone.
    world.apply("[local]\n").await.unwrap();
    converges(&world, "[local]\n").await;
}

/// An address has an object and a deposed object. A call on each of them is in doubt, and the plan shows
/// two doubts.
#[tokio::test(start_paused = true)]
async fn two_doubts_of_one_address_are_two() {
    let world = World::new();
    let alone = &SERVED[..SERVED.find("[resource.unit").unwrap()];
    world.apply(alone).await.unwrap();
    // The delete of the old image is refused.
    let full = alone.replace("thin", "full").replace("\"base\"", "\"full\"");
    world.cloud.strike(2, Fault::Refused);
    assert_eq!(world.apply(&full).await.unwrap().failures.len(), 1);
    let renamed = full.replace("name = \"full\"", "name = \"other\"");
    // The update of the new image and the delete of the old one are both in doubt.
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.strike(1, Fault::LostBefore);
    world.cloud.fail_reads(2);
    assert_eq!(world.apply(&renamed).await.unwrap().in_doubt.len(), 2);
    world.cloud.fail_reads(2);
    let plan = world.plan(&renamed).await.0;
    let doubts: Vec<_> = plan.doubts.iter().map(|doubt| doubt.operation.word()).collect();
    assert_eq!(doubts, ["update", "delete"]);
    world.cloud.fail_reads(0);
    converges(&world, &renamed).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_doubt_may_still_use_is_not_deleted() {
    let world = World::new();
    let used = format!("{DISK}[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n");
    world.apply(&used).await.unwrap();
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.fail_reads(2);
    world.apply("[local]\n").await.unwrap();
    // The delete of the unit is in doubt still, so the disk stays.
    world.apply("[local]\n").await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d"]);
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("disk").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_doubt_may_still_use_is_not_replaced() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.fail_reads(2);
    let alone = &SERVED[..SERVED.find("[resource.unit").unwrap()];
    world.apply(alone).await.unwrap();
    // The delete of the unit is in doubt still; the image stays as it is, and so does its name.
    let other = alone.replace("thin", "full");
    world.apply(&other).await.unwrap();
    assert_eq!(world.cloud.names("image"), ["base"]);
    assert_eq!(kinds(&world), ["thin"]);
    converges(&world, &other).await;
    assert_eq!(kinds(&world), ["full"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_doubt_may_use_by_now_is_not_replaced_either() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    // The new image is made, and the update that gives it to the unit is in doubt.
    world.cloud.strike(1, Fault::LostAfter);
    world.cloud.fail_reads(2);
    world.apply(&SERVED.replace("thin", "full")).await.unwrap();
    let third = SERVED.replace("thin", "other");
    world.apply(&third).await.unwrap();
    assert_eq!(kinds(&world), ["full", "thin"], "the unit may use either");
    converges(&world, &third).await;
    assert_eq!(kinds(&world), ["other"]);
    assert_eq!(world.cloud.names("image"), ["base"]);
}

/// Checks that a plan which leaves the unit out refuses to replace the disk that the unit uses, and that a
/// plan of the whole spec replaces it.
async fn may_not_move_under_its_user(world: &World, used: &str) {
    let named = "name = \"d\"\n";
    let lossy = format!("{named}lifecycle = {{ allow_data_loss = true }}\n");
    let elsewhere = used.replace(named, &lossy).replace("\"eu\"", "\"us\"");
    let unit = Target::Block("unit.u".parse().unwrap());
    let options = Options { excludes: vec![unit], ..Options::default() };
    let (_, diagnostics, _) = world.plan_with(&elsewhere, &options).await;
    let said: Vec<_> = diagnostics.iter().map(|said| said.summary.clone()).collect();
    assert_eq!(said, ["disk.d cannot be replaced while it is used"]);
    converges(world, &elsewhere).await;
}

/// An update gives the unit a disk, and its wait fails. The update may have happened, so the disk counts as
/// used.
#[tokio::test(start_paused = true)]
async fn what_an_unfulfilled_change_may_use_is_not_deleted() {
    let world = World::new();
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 0\n";
    world.apply(&format!("{DISK}{unit}")).await.unwrap();
    world.cloud.strike(0, Fault::StillWaiting);
    let used = format!("{DISK}{unit}disk_id = \"${{disk.d.id}}\"\n");
    let report = world.apply(&used).await.unwrap();
    assert_eq!(report.failures.len(), 1, "{report:?}");
    may_not_move_under_its_user(&world, &used).await;
}

/// An attribute that left the spec keeps its value at the API. A plan that leaves the unit out does not
/// replace the disk that the unit still names.
#[tokio::test(start_paused = true)]
async fn what_an_attribute_that_left_the_spec_still_names_is_not_deleted() {
    let world = World::new();
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 0\n";
    let used = format!("{DISK}{unit}disk_id = \"${{disk.d.id}}\"\n");
    world.apply(&used).await.unwrap();
    world.apply(&format!("{DISK}{unit}")).await.unwrap();
    may_not_move_under_its_user(&world, &used).await;
}

/// The API shows on a disk which unit uses it (`used_by`). The disk does not depend on the unit for that, so
/// the unit is deleted while the disk stays.
#[tokio::test(start_paused = true)]
async fn who_uses_an_object_that_stays_may_go() {
    let mut world = World::new();
    let mut schema = (*world.cloud.schema).clone();
    let disk = Arc::make_mut(schema.types.get_mut("disk").unwrap());
    let text = Attribute::new("string".parse().unwrap());
    let used_by = Attribute { presence: Presence::Computed, ..text };
    disk.attributes.insert("used_by".into(), used_by);
    world.cloud.schema = Arc::new(schema);
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 0\ndisk_id = \"${disk.d.id}\"\n";
    let used = format!("{DISK}{unit}");
    world.apply(&used).await.unwrap();
    {
        let objects = &mut world.cloud.shared.lock().unwrap().objects;
        let user = objects.keys().find(|(ty, _)| &**ty == "unit").unwrap().1.clone();
        let disk = objects.iter_mut().find(|((ty, _), _)| &**ty == "disk").unwrap().1;
        disk.insert("used_by".into(), Value::String(user.0));
    }
    world.apply(&used).await.unwrap();
    let disk = Target::Block("disk.d".parse().unwrap());
    let options = Options { excludes: vec![disk], ..Options::default() };
    world.apply_with(DISK, &options).await.unwrap();
    assert!(world.cloud.names("unit").is_empty());
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// Returns the kinds of the live images, sorted.
fn kinds(world: &World) -> Vec<String> {
    let shared = world.cloud.shared.lock().unwrap();
    let images = shared.objects.iter().filter(|((ty, _), _)| &**ty == "image");
    let kinds = images.filter_map(|(_, object)| Some(object.get("kind")?.as_str()?.to_owned()));
    let mut kinds: Vec<String> = kinds.collect();
    kinds.sort();
    kinds
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_doubt_keeps_what_it_uses() {
    let world = World::new();
    let spec = |kind: &str| {
        format!("{DISK}{}disk_id = \"${{disk.d.id}}\"\n", SERVED.replace("thin", kind))
    };
    world.apply(&spec("thin")).await.unwrap();
    // The new image is made, and the update that gives it to the unit is refused.
    world.cloud.strike(1, Fault::Refused);
    world.apply(&spec("full")).await.unwrap();
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.fail_reads(2);
    // The update of the disk is in doubt now, so the unit waits, and goes on using the old image.
    let grown = spec("full").replace("size = 10", "size = 20");
    let report = world.apply(&grown).await.unwrap();
    assert!(!report.in_doubt.is_empty(), "{report:?}");
    world.cloud.fail_reads(1);
    world.apply(&grown).await.unwrap();
    assert_eq!(world.cloud.names("image").len(), 2, "the old image is still used");
    converges(&world, &grown).await;
    assert_eq!(world.cloud.names("image"), ["base"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_like_a_lost_answer() {
    for call in 0..4 {
        let world = World::new();
        world.cloud.strike(call, Fault::Panic);
        match world.apply(SERVED).await {
            Ok(report) => {
                let whole = report.failures.is_empty() && report.summary.in_doubt == 0;
                assert!(!whole, "{call}: nobody can know: {report:?}");
                assert!(!format!("{report:?}").contains("canary-panic"), "{report:?}");
            }
            Err(error) => assert!(!error.to_string().contains("canary-panic"), "{error}"),
        }
        converges(&world, SERVED).await;
        assert_eq!(world.cloud.names("image"), ["base"], "{call}");
        assert_eq!(world.cloud.names("unit"), ["chat"], "{call}");
    }
}

/// The call that changes a unit back to one worker is lost before its effect. The next read is behind, and
/// still shows one worker from before; the run does not take that for the effect of its call.
#[tokio::test(start_paused = true)]
async fn a_lost_change_back_is_not_seen_in_what_was_before() {
    let world = World::new();
    let unit = |workers: u8| format!("[resource.unit.u]\nname = 'u'\nworkers = {workers}\n");
    world.apply(&unit(1)).await.unwrap();
    let was = world.cloud.list("unit").await.unwrap().pop();
    world.apply(&unit(2)).await.unwrap();
    let busy = Busy { was: Mutex::new(was), ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(busy));
    world.cloud.strike(0, Fault::LostBefore);
    let options = Options::default();
    let report = world.apply_through(&world.store, &providers, &unit(1), &options).await.unwrap();
    assert_eq!(report.summary.updated, 1);
    let unit = world.cloud.list("unit").await.unwrap().pop().unwrap();
    assert_eq!(unit.attributes["workers"], Value::Integer(1));
}

/// A read shows another object than the one that was asked for. Neither a refresh nor the search for the
/// effect of a lost call believes it.
#[tokio::test(start_paused = true)]
async fn an_answer_about_another_object_is_believed_by_nobody() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let shows = Some(world.cloud.put("disk", &[("name", Value::string("other"))]));
    let mixed = Busy { shows, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(mixed));
    let options = Options::default();
    let grown = DISK.replace("size = 10", "size = 20");
    world.cloud.strike(0, Fault::LostAfter);
    let report = world.apply_through(&world.store, &providers, &grown, &options).await.unwrap();
    assert_eq!((report.in_doubt.len(), report.summary.updated), (1, 0), "{report:?}");
    converges(&world, &grown).await;
    world.cloud.shared.lock().unwrap().objects.retain(|(_, id), _| *id.0 != *"disk-1");
    let result = world.apply_through(&world.store, &providers, &grown, &options).await;
    let error = result.unwrap_err();
    assert!(matches!(error, ApplyError::Unread { .. }), "{error:?}");
}

/// The error of a run names an object that cannot be read. A run that leaves the object out goes on.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stops_only_who_goes_by_it() {
    let world = World::new();
    let all = format!("{DISK}\n[resource.key.k]\nname = \"k\"\n");
    world.apply(&all).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.retain(|(ty, _), _| &**ty != "disk");
    let shows = Some(world.cloud.put("disk", &[("name", Value::string("other"))]));
    let mixed = Busy { shows, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(mixed));
    let renamed = all.replace("\"k\"", "\"m\"");
    let apply = async |options: &Options| {
        world.apply_through(&world.store, &providers, &renamed, options).await
    };
    let error = apply(&Options::default()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read what is live: disk.d: reading disk-"), "{error}");
    assert_eq!(world.cloud.names("key"), ["k"]);
    let disk = Target::Block("disk.d".parse().unwrap());
    let aside = Options { excludes: vec![disk], ..Options::default() };
    apply(&aside).await.unwrap();
    assert_eq!(world.cloud.names("key"), ["m"]);
    assert!(world.state().await.entries.contains_key(&"disk.d".parse().unwrap()), "it stays");
}

/// The plan shows the possible effect of its own call in doubt as a doubt, and not as drift.
#[tokio::test(start_paused = true)]
async fn what_a_call_in_doubt_may_have_done_is_not_changed_outside() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.fail_reads(1);
    assert_eq!(world.apply("[local]\n").await.unwrap().in_doubt.len(), 1);
    assert!(world.cloud.names("disk").is_empty());
    for spec in [DISK, "[local]\n"] {
        world.cloud.fail_reads(1);
        let (plan, ..) = world.plan(spec).await;
        assert_eq!((plan.doubts.len(), plan.drift.len()), (1, 0), "{spec}");
    }
    let (plan, ..) = world.plan(DISK).await;
    assert_eq!((plan.doubts.len(), plan.drift.len()), (0, 0));
}
