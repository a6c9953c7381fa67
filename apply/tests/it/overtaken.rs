//! Saved plans, and changes by another run since then: of objects that the plan deletes or shows in an
//! output, and of names that it gives.

use engine::plan::input::{Options, Target};
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{World, converges};

const UNIT: &str = "[resource.unit.u]\nname = 'u'\n";

const IMAGE: &str = "[resource.image.i]\nname = 'i'\nkind = 'thin'\n";

const OTHER: &str = "[resource.disk.other]\nname = 'other'\nsize = 1\nzone = 'eu'\n";

/// Applies a saved plan of `planned` after `meanwhile` was applied. Returns the reason of its refusal, or an
/// empty text if it was applied.
async fn overtaken(before: &str, planned: &str, meanwhile: &str) -> String {
    let world = World::new();
    world.apply(before).await.unwrap();
    let (plan, diagnostics, _) = world.plan(planned).await;
    assert!(!diagnostics.has_errors() && !plan.computes_nothing(), "{diagnostics:?}");
    let report = world.apply(meanwhile).await.unwrap();
    assert!(report.failures.is_empty(), "{report:?}");
    world.cloud.take_log();
    let Err(error) = world.apply_saved(&plan).await else { return String::new() };
    let error = error.to_string();
    assert_eq!(world.cloud.take_log(), [""; 0], "{error}");
    error.strip_prefix("stale plan: ").map_or(error.clone(), str::to_owned)
}

/// A saved plan deletes or replaces an image that a unit has come to use since. The plan is refused: the API
/// might delete the image, and the unit would have one that does not exist.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_ends_nothing_that_another_run_has_come_to_use() {
    let uses = |image: &str| format!("{UNIT}image_id = '{image}'\n");
    for used in ["${image.i.id}", "image-1"] {
        for ends in ["", &IMAGE.replace("thin", "fat")] {
            let why = overtaken(IMAGE, ends, &format!("{IMAGE}{}", uses(used))).await;
            let own = "unit.u: nothing was planned, now delete; image.i is used by now, by unit.u";
            assert_eq!(why, own, "{used}");
        }
    }
    // A unit that existed before comes to use the image.
    let before = format!("{IMAGE}{UNIT}");
    let why = overtaken(&before, UNIT, &format!("{IMAGE}{}", uses("${image.i.id}"))).await;
    assert_eq!(why, "image.i is used by now, by unit.u");
}

/// A saved plan is applied if it knew that the image is used, also if another run has ended the use since.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_ends_what_it_knew_to_be_used() {
    let both = format!("{IMAGE}{UNIT}image_id = '${{image.i.id}}'\n");
    assert_eq!(overtaken(&both, "", &both).await, "");
    assert_eq!(overtaken(&both, UNIT, &both).await, "");
    let fat = both.replace("thin", "fat");
    assert_eq!(overtaken(&both, &fat, &both).await, "");
    let beside = format!("{IMAGE}{UNIT}depends_on = ['image.i']\n");
    assert_eq!(overtaken(&beside, &beside.replace("thin", "fat"), &beside).await, "");
    assert_eq!(overtaken(&beside, UNIT, &beside).await, "");
    assert_eq!(overtaken(&beside, UNIT, &format!("{IMAGE}{UNIT}")).await, "");
}

/// A saved plan is refused if its output shows an object that another run has changed or deleted.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_shows_nothing_of_what_another_run_has_changed() {
    let known = "[output.o]\nvalue = '${unit.u.workers}'\n";
    let late = "[output.o]\nvalue = '${unit.u.workers} ${disk.other.id}'\n";
    for (beside, output) in [("", known), (OTHER, known), (OTHER, late)] {
        let planned = format!("{UNIT}{beside}{output}");
        let changed = format!("{UNIT}workers = 3\n");
        let why = overtaken(UNIT, &planned, &changed).await;
        assert!(why.starts_with("unit.u: nothing was planned, now update"), "{why}");
        let why = overtaken(UNIT, &planned, "[local]\n").await;
        assert!(why.starts_with("unit.u: nothing was planned, now create"), "{why}");
        assert_eq!(overtaken(UNIT, &planned, UNIT).await, "");
        let unshown = format!("{UNIT}{beside}[output.o]\nvalue = 'x'\n");
        assert_eq!(overtaken(UNIT, &unshown, &changed).await, "");
    }
}

/// A saved plan is refused if its output shows an object that somebody has changed at the API, or that was
/// replaced.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_shows_nothing_of_what_is_another_object() {
    let world = World::new();
    world.apply(UNIT).await.unwrap();
    let planned = format!("{UNIT}[output.o]\nvalue = '${{unit.u.id}}'\n");
    let disks = vec![Target::Block("unit.u".parse().unwrap())];
    let narrow = Options { targets: disks, ..Options::default() };
    let plans = [world.plan(&planned).await.0, world.plan_with(&planned, &narrow).await.0];
    let workers = |workers| {
        let mut shared = world.cloud.shared.lock().unwrap();
        let unit = shared.objects.values_mut().next().unwrap();
        unit.insert("workers".into(), Value::Integer(workers));
    };
    workers(3);
    for plan in &plans {
        let error = world.apply_saved(plan).await.unwrap_err().to_string();
        assert!(error.contains("unit.u: nothing was planned, now update"), "{error}");
    }
    workers(0);
    let again = Options { replace: vec!["unit.u".parse().unwrap()], ..Options::default() };
    world.apply_with(UNIT, &again).await.unwrap();
    for plan in &plans {
        let error = world.apply_saved(plan).await.unwrap_err().to_string();
        assert!(error.ends_with("the output `o` becomes something else"), "{error}");
    }
    converges(&world, &planned).await;
}

/// A saved plan is refused if another address has taken a name that it gives. Its first call would succeed,
/// and the API would refuse the second.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_takes_no_name_that_another_address_has_taken() {
    let key = |address: &str, name: &str| format!("[resource.key.{address}]\nname = '{name}'\n");
    let [mine, theirs] = [key("mine", "k"), key("theirs", "k")];
    let planned = format!("{OTHER}{mine}");
    let why = "key.theirs: nothing was planned, now delete";
    assert_eq!(overtaken("[local]\n", &planned, &theirs).await, why);
    // Another run gives the name to a key that existed before.
    let planned = format!("{planned}{}", key("theirs", "t"));
    let why = "key.theirs: nothing was planned, now update";
    assert_eq!(overtaken(&key("theirs", "t"), &planned, &theirs).await, why);
    // The plan itself passes a name from one key to the other.
    let swapped = format!("{}{mine}", key("theirs", "t"));
    assert_eq!(overtaken(&theirs, &swapped, &theirs).await, "");
    // The names of disks are not unique.
    let disk = OTHER.replace("resource.disk.other", "resource.disk.mine");
    assert_eq!(overtaken("[local]\n", &disk, OTHER).await, "");
}

/// A saved plan takes a name that a key has in the state, because the plan saw that the key is gone or has
/// another name.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_takes_a_name_that_it_saw_to_be_free() {
    let key = |address: &str, name: &str| format!("[resource.key.{address}]\nname = '{name}'\n");
    let gone = |world: &World| world.cloud.shared.lock().unwrap().objects.clear();
    let renamed = |world: &World| {
        let mut shared = world.cloud.shared.lock().unwrap();
        let key = shared.objects.values_mut().next().unwrap();
        key.insert("name".into(), Value::string("z"));
    };
    let ignores = format!("{}lifecycle = {{ ignore_changes = ['name'] }}\n", key("b", "k"));
    for (is_gone, beside) in [(true, String::new()), (false, key("b", "z")), (false, ignores)] {
        let world = World::new();
        world.apply(&key("b", "k")).await.unwrap();
        if is_gone {
            gone(&world);
        } else {
            renamed(&world);
        }
        let planned = key("a", "k") + &beside;
        let (plan, diagnostics, _) = world.plan(&planned).await;
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        world.apply_saved(&plan).await.unwrap();
        assert_eq!(world.plan_text(&planned).await, "");
    }
}

/// A saved plan with a doubt is applied if nothing in it depends on the outcome of that call. A plan without
/// steps is refused, because it says that the live objects agree with the spec.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_goes_beside_a_doubt_that_it_does_not_go_by() {
    let disk = OTHER.replace("other", "d");
    let output = "[output.o]\nvalue = '${disk.d.size}'\n";
    let grown = disk.replace("size = 1", "size = 2");
    for (planned, goes) in [
        (grown.clone(), false),
        (format!("{grown}{output}"), false),
        (format!("{grown}{output}{OTHER}"), false),
        (format!("{grown}{OTHER}"), true),
    ] {
        let world = World::new();
        world.apply(&disk).await.unwrap();
        world.cloud.strike(0, Fault::LostBefore);
        world.cloud.fail_reads(1);
        assert_eq!(world.apply(&grown).await.unwrap().in_doubt.len(), 1);
        world.cloud.fail_reads(1);
        let (plan, ..) = world.plan(&planned).await;
        assert_eq!(plan.doubts.len(), 1, "{planned}");
        assert_eq!(world.apply_saved(&plan).await.is_ok(), goes, "{planned}");
        converges(&world, &planned).await;
    }
}
