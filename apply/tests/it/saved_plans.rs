//! Saved plans, which are applied later than they were made.

use std::sync::atomic::Ordering;

use apply::ApplyError;
use engine::journal::Record;
use engine::plan::input::{Mode, Options, Target};
use engine::state::{ObjectId, Watched};
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{DISK, SERVED, World, as_file, converges};

#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_takes_over_what_was_taken_over_is_stale() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.clear();
    let (plan, ..) = world.plan("[local]\n").await;
    assert_eq!(plan.seen.len(), 1, "the disk is seen to be gone");
    world.apply("[local]\n").await.unwrap();
    let error = world.apply_saved(&plan).await.unwrap_err();
    assert!(matches!(error, ApplyError::Stale(_)), "{error}");
}

/// A saved plan took a delete in doubt for done, and makes the disk anew. Another run has found the disk
/// since, so the plan is stale while the disk exists.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_makes_what_another_run_has_found_is_stale_while_it_is_there() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.strike(0, Fault::LostBefore);
    world.cloud.fail_reads(1);
    assert_eq!(world.apply("[local]\n").await.unwrap().in_doubt.len(), 1);
    let there = std::mem::take(&mut world.cloud.shared.lock().unwrap().objects);
    let (plan, ..) = world.plan(DISK).await;
    assert!(plan.seen.is_empty() && !plan.steps.is_empty());
    world.cloud.shared.lock().unwrap().objects = there;
    world.apply(DISK).await.unwrap();
    let error = world.apply_saved(&plan).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: disk.d: create was planned, now nothing");
    world.cloud.shared.lock().unwrap().objects.clear();
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// A plan file has no plain digest of an account's key: a reader of the file could guess a weak key by it.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_tells_accounts_apart_and_nothing_of_their_keys() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let set = |key: &str| key.clone_into(&mut world.cloud.shared.lock().unwrap().key);
    set("hunter2");
    let (plan, ..) = world.plan(&DISK.replace("size = 10", "size = 20")).await;
    let text = as_file(&plan);
    let digest = engine::digest::Digest::of(b"hunter2").to_string();
    assert!(text.contains("accounts") && !text.contains(&digest), "{text}");
    set("another");
    let error = world.apply_saved(&plan).await.unwrap_err().to_string();
    assert!(error.contains("another account"), "{error}");
    set("hunter2");
    world.apply_saved(&plan).await.unwrap();
}

fn set(world: &World, ty: &str, id: &str, attribute: &str, value: Value) {
    let mut shared = world.cloud.shared.lock().unwrap();
    let key = (ty.into(), ObjectId(id.into()));
    shared.objects.get_mut(&key).unwrap().insert(attribute.into(), value);
}

const UNIT: &str = "[resource.unit.u]\nname = 'u'\n";

/// A saved plan that shows a doubt is applied, because its author saw the doubt.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_goes_with_the_doubts_that_it_shows() {
    let world = World::new();
    world.cloud.strike(0, Fault::LostAfter);
    let fail_finds = |count| world.cloud.shared.lock().unwrap().finds_fail = count;
    fail_finds(1);
    assert_eq!(world.apply(UNIT).await.unwrap().in_doubt.len(), 1);
    fail_finds(1);
    let both = format!("{UNIT}{OTHER}");
    let (plan, ..) = world.plan(&both).await;
    assert_eq!(plan.doubts.len(), 1);
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["other"]);
}

/// The state has newer values of a unit, from another run, than the saved plan saw. The plan does not put
/// its own values back.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_takes_nothing_back_of_what_it_does_not_touch() {
    let world = World::new();
    world.apply(&format!("{DISK}{UNIT}")).await.unwrap();
    set(&world, "unit", "unit-2", "workers", Value::Integer(3));
    let accepting = format!("{DISK}{UNIT}workers = 3\n");
    let (plan, ..) = world.plan(&format!("{accepting}{OTHER}")).await;
    let looks = Options { mode: Mode::RefreshOnly, ..Options::default() };
    let (look, ..) = world.plan_with(&accepting, &looks).await;
    assert!((plan.seen.len(), look.seen.len()) == (1, 1) && look.steps.is_empty());
    // Meanwhile the unit is changed once more, and comes to use the disk.
    let newer = format!("{DISK}{UNIT}workers = 9\ndisk_id = '${{disk.d.id}}'\n");
    world.apply(&newer).await.unwrap();
    let before = world.state().await;
    world.apply_saved(&plan).await.unwrap();
    let after = world.state().await;
    let unit = "unit.u".parse().unwrap();
    assert_eq!(after.entries[&unit], before.entries[&unit]);
    assert_eq!(world.cloud.names("disk"), ["d", "other"]);
    // A refresh-only plan would not do what it showed.
    let error = world.apply_saved(&look).await.unwrap_err();
    assert_eq!(error.to_string(), "stale plan: something else is live: unit.u");
}

/// A saved plan that deletes is applied twice. The second error says that nothing is left to delete.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_deleted_says_so_the_second_time() {
    let world = World::new();
    world.apply(UNIT).await.unwrap();
    let (ends, ..) = world.plan("").await;
    world.apply_saved(&ends).await.unwrap();
    let error = world.apply_saved(&ends).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: unit.u: delete was planned, now nothing");
}

/// A refresh-only plan only takes what it showed into the state, so it is stale if something else is live.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_only_looks_is_stale_where_it_would_see_something_else() {
    let world = World::new();
    world.apply(&format!("{UNIT}workers = 1\n")).await.unwrap();
    let by_hand = |workers| set(&world, "unit", "unit-1", "workers", Value::Integer(workers));
    by_hand(3);
    let looks = Options { mode: Mode::RefreshOnly, ..Options::default() };
    let (look, ..) = world.plan_with(&format!("{UNIT}workers = 1\n"), &looks).await;
    assert_eq!((look.seen.len(), look.steps.len()), (1, 0));
    let before = world.state().await;
    by_hand(5);
    let error = world.apply_saved(&look).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: something else is live: unit.u");
    let there = std::mem::take(&mut world.cloud.shared.lock().unwrap().objects);
    let error = world.apply_saved(&look).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: something else is live: unit.u");
    assert_eq!(world.state().await.entries, before.entries);
    world.cloud.shared.lock().unwrap().objects = there;
    by_hand(3);
    world.apply_saved(&look).await.unwrap();
    let (again, ..) = world.plan_with(UNIT, &looks).await;
    assert!(again.seen.is_empty(), "it is taken over");
}

#[tokio::test(start_paused = true)]
async fn what_a_saved_plan_saw_is_taken_over_while_it_fits() {
    let world = World::new();
    world.apply(UNIT).await.unwrap();
    set(&world, "unit", "unit-1", "workers", Value::Integer(3));
    let spec = format!("{UNIT}workers = 3\n");
    let (plan, ..) = world.plan(&format!("{spec}{OTHER}")).await;
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.plan_text(&format!("{spec}{OTHER}")).await, "");
    let unit = &world.state().await.entries[&"unit.u".parse().unwrap()];
    let known = serde_json::to_string(unit.current.as_ref().unwrap()).unwrap();
    assert!(known.contains("\"workers\":3"), "{known}");
}

/// A plan finds the object of a lost create, and ends the watch of its name. A run in between does not find
/// the object, gives the create up and watches the name anew. The saved plan does not end that watch, of
/// which it does not know.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_ends_no_watch_that_began_since() {
    let world = World::new();
    world.cloud.strike(0, Fault::LostAfter);
    world.cloud.shared.lock().unwrap().finds_fail = 1;
    assert_eq!(world.apply(DISK).await.unwrap().in_doubt.len(), 1);
    world.host.slept.fetch_add(Watched::ANSWERED_MS + 1, Ordering::Relaxed);
    let both = format!("{DISK}{OTHER}");
    let targets = vec![Target::Block("disk.other".parse().unwrap())];
    let beside = Options { targets, ..Options::default() };
    let (plan, ..) = world.plan_with(&both, &beside).await;
    assert!(plan.seen.iter().any(|record| matches!(record, Record::Unwatched { .. })));
    let there = std::mem::take(&mut world.cloud.shared.lock().unwrap().objects);
    world.apply("[local]\n").await.unwrap();
    world.cloud.shared.lock().unwrap().objects = there;
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.state().await.watched.iter().filter(|watched| !watched.answered).count(), 1);
    converges(&world, &both).await;
    assert_eq!(world.cloud.names("disk"), ["d", "other"]);
}

const OTHER: &str = "[resource.disk.other]\nname = 'other'\nsize = 1\nzone = 'eu'\n";

/// A saved plan does not delete a twin that a person has renamed or changed since.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_deletes_no_leftover_that_somebody_changed() {
    for (attribute, value, why) in [
        ("name", Value::string("somebodys"), "delete was planned, now nothing"),
        ("size", Value::Integer(100), "the delete is another one"),
    ] {
        let world = World::new();
        world.cloud.strike(0, Fault::Doubled);
        world.apply(DISK).await.unwrap();
        let (plan, ..) = world.plan(DISK).await;
        assert_eq!(plan.steps.len(), 1, "the twin is to go");
        let ids = world.cloud.shared.lock().unwrap().objects.keys().cloned().collect::<Vec<_>>();
        let current = &world.state().await.entries[&"disk.d".parse().unwrap()];
        let own = current.current.as_ref().unwrap().id.clone();
        let (_, twin) = ids.into_iter().find(|(_, id)| *id != own).unwrap();
        set(&world, "disk", &twin.0, attribute, value);
        let error = world.apply_saved(&plan).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(world.cloud.names("disk").len(), 2);
    }
}

/// A saved plan does not delete a twin that another address has taken over since.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_deletes_no_leftover_that_another_address_has() {
    let world = World::new();
    world.cloud.strike(0, Fault::Doubled);
    world.apply(DISK).await.unwrap();
    let (plan, ..) = world.plan(DISK).await;
    let twin = plan.steps[0].object.clone().unwrap();
    set(&world, "disk", &twin.0, "name", Value::string("kept"));
    let kept = DISK.replace("disk.d", "disk.kept").replace("\"d\"", "\"kept\"");
    let both = format!("{DISK}{kept}[[import]]\nto = 'disk.kept'\nid = '{twin}'\n");
    world.apply(&both).await.unwrap();
    let error = world.apply_saved(&plan).await.unwrap_err();
    assert!(matches!(error, apply::ApplyError::Stale(_)), "{error}");
    assert_eq!(world.cloud.names("disk"), ["d", "kept"]);
}

/// A saved plan does not delete a deposed object that somebody has changed since.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_deletes_nothing_put_aside_that_somebody_changed() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    let fat = SERVED.replace("thin", "fat");
    // The new image is made, and the update of the unit is refused.
    world.cloud.strike(1, Fault::Refused);
    world.apply(&fat).await.unwrap();
    let (plan, ..) = world.plan(&fat).await;
    let old = plan.changes.iter().find(|change| change.deposed).unwrap().object.clone().unwrap();
    let own = world.cloud.names("image");
    set(&world, "image", &old.0, "name", Value::string("kept"));
    let error = world.apply_saved(&plan).await.unwrap_err();
    assert!(error.to_string().contains("the delete is another one"), "{error}");
    let base = own.iter().find(|name| !engine::state::Nonce::is_likely(name)).unwrap();
    set(&world, "image", &old.0, "name", Value::string(base.as_str()));
    world.apply_saved(&plan).await.unwrap();
    assert_eq!(world.cloud.names("image"), ["base"]);
}

/// A saved plan that does nothing says that the live objects agree with the spec, so it is stale if they
/// do not.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_has_nothing_to_do_is_stale_where_there_is_something() {
    let spec = format!("{UNIT}[output.o]\nvalue = 'one'\n");
    let world = World::new();
    world.apply(&spec).await.unwrap();
    let (idle, ..) = world.plan(&spec).await;
    let units = vec![Target::Block("unit.u".parse().unwrap())];
    let of_one = Options { targets: units, ..Options::default() };
    let (narrow, ..) = world.plan_with(&spec, &of_one).await;
    assert!([&idle, &narrow].iter().all(|plan| plan.is_empty() && plan.seen.is_empty()));
    world.apply_saved(&idle).await.unwrap();
    let refused = async |plan, why: &str| {
        let error = world.apply_saved(plan).await.unwrap_err().to_string();
        assert_eq!(error, format!("stale plan: {why}"));
    };
    set(&world, "unit", "unit-1", "workers", Value::Integer(3));
    for plan in [&idle, &narrow] {
        refused(plan, "unit.u: nothing was planned, now update").await;
    }
    set(&world, "unit", "unit-1", "workers", Value::Integer(0));
    world.apply(&format!("{spec}{OTHER}")).await.unwrap();
    refused(&idle, "disk.other: nothing was planned, now delete").await;
    world.apply_saved(&narrow).await.unwrap();
    world.apply(&spec.replace("one", "two")).await.unwrap();
    refused(&idle, "the output `o` becomes something else").await;
    world.apply(&spec).await.unwrap();
    world.apply_saved(&idle).await.unwrap();
    world.destroy(&spec).await.unwrap();
    for plan in [&idle, &narrow] {
        refused(
            plan,
            "unit.u: nothing was planned, now create; the output `o` becomes something else",
        )
        .await;
    }
}

/// A saved plan does not take back the value that another run has given to an output since.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_changes_no_output_that_another_run_has_changed() {
    let spec = |text: &str| format!("[output.o]\nvalue = '{text}'\n");
    let world = World::new();
    world.apply(&spec("one")).await.unwrap();
    let (plan, ..) = world.plan(&spec("three")).await;
    world.apply(&spec("two")).await.unwrap();
    let error = world.apply_saved(&plan).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: the output `o` becomes something else");
    world.apply(&spec("one")).await.unwrap();
    world.apply_saved(&plan).await.unwrap();
    let (made, ..) = world.plan(&format!("{}[output.n]\nvalue = 1\n", spec("three"))).await;
    world.apply_saved(&made).await.unwrap();
    let error = world.apply_saved(&made).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: the output `n` becomes something else");
}

/// A plan that is made during another run sees the live objects after that run, and the state before it. It
/// takes the work of the run for drift and would take it back, so it is stale.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_takes_back_nothing_that_another_run_has_done() {
    let of = |workers| format!("{UNIT}workers = {workers}\n");
    let world = World::new();
    world.apply(&of(3)).await.unwrap();
    set(&world, "unit", "unit-1", "workers", Value::Integer(4));
    let (plan, ..) = world.plan(&of(3)).await;
    assert_eq!((plan.drift.len(), plan.steps.len()), (1, 1));
    world.apply(&of(4)).await.unwrap();
    let error = world.apply_saved(&plan).await.unwrap_err().to_string();
    assert_eq!(error, "stale plan: unit.u: the update is another one");
}
