//! Saved plans, and what another run has done since with the objects that they end, show or give names to.

use engine::plan::input::{Options, Target};
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{World, converges};

const UNIT: &str = "[resource.unit.u]\nname = 'u'\n";

const IMAGE: &str = "[resource.image.i]\nname = 'i'\nkind = 'thin'\n";

const OTHER: &str = "[resource.disk.other]\nname = 'other'\nsize = 1\nzone = 'eu'\n";

/// What a plan of `planned` says once `meanwhile` was applied; nothing where it goes.
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

/// The API might let it go, and the unit would be left with an image that is not there.
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
    // One that was there comes to use it.
    let before = format!("{IMAGE}{UNIT}");
    let why = overtaken(&before, UNIT, &format!("{IMAGE}{}", uses("${image.i.id}"))).await;
    assert_eq!(why, "image.i is used by now, by unit.u");
}

/// Whoever made the plan knew of those, and what another run has let go of is in nobody's way.
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

/// What it was to show is not there any more, or is something else.
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

/// Nor of what somebody has changed at the API, or has put another object in the place of.
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

/// The first of its calls would be done, and the second be refused by the API.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_takes_no_name_that_another_address_has_taken() {
    let key = |address: &str, name: &str| format!("[resource.key.{address}]\nname = '{name}'\n");
    let [mine, theirs] = [key("mine", "k"), key("theirs", "k")];
    let planned = format!("{OTHER}{mine}");
    let why = "key.theirs: nothing was planned, now delete";
    assert_eq!(overtaken("[local]\n", &planned, &theirs).await, why);
    // One that was there is given the name, by another run.
    let planned = format!("{planned}{}", key("theirs", "t"));
    let why = "key.theirs: nothing was planned, now update";
    assert_eq!(overtaken(&key("theirs", "t"), &planned, &theirs).await, why);
    // Names that pass from one to the other are the plan's own doing.
    let swapped = format!("{}{mine}", key("theirs", "t"));
    assert_eq!(overtaken(&theirs, &swapped, &theirs).await, "");
    // Of disks there may be two of one name.
    let disk = OTHER.replace("resource.disk.other", "resource.disk.mine");
    assert_eq!(overtaken("[local]\n", &disk, OTHER).await, "");
}

/// What the state says of a name is older than what the plan saw: its bearer is gone, or is called otherwise.
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

/// Whoever made it saw the doubt. What it does must not go by what becomes of that, and a plan that does nothing says
/// that all agrees.
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
