//! Objects that a run left half done: the next run finishes them or gives them their values back, also
//! values that the spec ignores.

use engine::schema::{Operation, Sends};
use engine::state::Progress;
use engine::value::Value;

use crate::cloud::Fault;
use crate::shapes;
use crate::world::{DISK, World, converges};

/// Returns the name and the workers of the only live unit.
fn unit(world: &World) -> (String, Value) {
    let shared = world.cloud.shared.lock().unwrap();
    let mut units = shared.objects.iter().filter(|((ty, _), _)| &**ty == "unit");
    let (_, unit) = units.next().unwrap();
    assert!(units.next().is_none());
    (unit["name"].as_str().unwrap().to_owned(), unit["workers"].clone())
}

fn ignoring(names: &str) -> String {
    let lifecycle = format!("lifecycle = {{ ignore_changes = [{names}] }}\n");
    format!("[resource.unit.u]\nname = \"u\"\nworkers = 3\n{lifecycle}")
}

fn set_workers(world: &World, count: i64) {
    for unit in world.cloud.shared.lock().unwrap().objects.values_mut() {
        unit.insert("workers".into(), Value::Integer(count));
    }
}

/// The next run finishes a create, also with attributes that the spec ignores. An object without them is
/// Plumb's own doing, and no change from outside.
#[tokio::test(start_paused = true)]
async fn a_create_is_finished_also_with_what_is_ignored() {
    for names in ["\"workers\"", "\"name\"", "\"name\", \"workers\""] {
        for fault in [Fault::Refused, Fault::LostBefore, Fault::LostAfter] {
            let world = World::new();
            world.cloud.strike(1, fault);
            world.apply(&ignoring(names)).await.unwrap();
            converges(&world, &ignoring(names)).await;
            assert_eq!(unit(&world), ("u".to_owned(), Value::Integer(3)), "{names} {fault:?}");
            // Once the unit is whole, changes of these attributes are ignored.
            set_workers(&world, 5);
            let still = if names.contains("workers") { 5 } else { 3 };
            converges(&world, &ignoring(names)).await;
            assert_eq!(unit(&world).1, Value::Integer(still), "{names} {fault:?}");
        }
    }
}

/// A run is killed at any write of a create under `ignore_changes`, or after it. The next run finishes the
/// create.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_create_that_ignores() {
    for writes in 0..8 {
        let world = World::new();
        world.store.fail_after(Some(writes));
        let died = world.apply(&ignoring("\"workers\"")).await.is_err();
        world.store.fail_after(None);
        assert!(died || writes > 3);
        converges(&world, &ignoring("\"workers\"")).await;
        assert_eq!(unit(&world), ("u".to_owned(), Value::Integer(3)), "{writes}");
    }
}

/// A delete stops after its drain. The next run gives the unit the workers back that it had before, whether
/// the spec ignores them or not.
#[tokio::test(start_paused = true)]
async fn what_was_drained_and_is_wanted_again_works_again() {
    let plain = "[resource.unit.u]\nname = \"u\"\nworkers = 3\n".to_owned();
    for spec in [plain, ignoring("\"workers\"")] {
        for (call, fault) in [
            (0, Fault::Refused),
            (0, Fault::LostBefore),
            (0, Fault::LostAfter),
            (0, Fault::StillWaiting),
            (0, Fault::Panic),
            (1, Fault::Refused),
        ] {
            let world = World::new();
            world.apply(&spec).await.unwrap();
            // Somebody scales the unit; if the spec ignores the workers, the change stays.
            set_workers(&world, 5);
            converges(&world, &spec).await;
            let workers = unit(&world).1;
            if spec.contains("ignore") {
                // The plan of the destroy is the first one that sees this change.
                set_workers(&world, 7);
            }
            world.cloud.strike(call, fault);
            drop(world.destroy(&spec).await);
            if world.cloud.names("unit").is_empty() {
                continue;
            }
            converges(&world, &spec).await;
            let expected = if spec.contains("ignore") { Value::Integer(7) } else { workers };
            assert_eq!(unit(&world).1, expected, "{call} {fault:?} {spec}");
            let state = world.state().await;
            let object = state.entries.values().next().unwrap().current.as_ref().unwrap();
            assert_eq!(object.progress, Progress::Ready);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_destroy_gives_back_what_is_ignored() {
    for writes in 0..8 {
        let world = World::new();
        let spec = ignoring("\"workers\"");
        world.apply(&spec).await.unwrap();
        world.store.fail_after(Some(writes));
        drop(world.destroy(&spec).await);
        world.store.fail_after(None);
        converges(&world, &spec).await;
        assert_eq!(unit(&world), ("u".to_owned(), Value::Integer(3)), "{writes}");
    }
}

/// Neither the create of a unit nor the delete of the half-made unit was finished. The next run finishes
/// the create.
#[tokio::test(start_paused = true)]
async fn a_create_is_finished_after_a_delete_that_was_not() {
    for ignored in ["\"workers\"", "\"name\", \"workers\""] {
        let world = World::new();
        world.cloud.strike(1, Fault::Refused);
        world.apply(&ignoring(ignored)).await.unwrap();
        world.cloud.strike(1, Fault::Refused);
        world.destroy(&ignoring(ignored)).await.unwrap();
        converges(&world, &ignoring(ignored)).await;
        assert_eq!(unit(&world), ("u".to_owned(), Value::Integer(3)), "{ignored}");
    }
}

const IMAGE: &str = "[resource.image.i]\nname = \"i\"\nkind = \"one\"\n";

/// Returns a world with an image whose create was cut short before the image got its name.
async fn half_made(spec: &str) -> World {
    let world = World::new();
    world.cloud.strike(1, Fault::Refused);
    world.apply(spec).await.unwrap();
    let names = world.cloud.names("image");
    assert!(names.len() == 1 && names[0] != "i", "{names:?}");
    world
}

/// An object that still has its one-time name is not retained, because it would be an orphan.
#[tokio::test(start_paused = true)]
async fn a_half_made_object_is_never_retained() {
    let spec = format!("{IMAGE}lifecycle = {{ retain = true }}\n");
    let world = half_made(&spec).await;
    converges(&world, &spec.replace("one", "two")).await;
    assert_eq!(world.cloud.names("image"), ["i"], "replaced");

    let world = half_made(&spec).await;
    converges(&world, &spec.replace("retain", "enabled = false, retain")).await;
    assert!(world.cloud.names("image").is_empty(), "disabled");

    let world = half_made(&spec).await;
    world.destroy(&spec).await.unwrap();
    assert!(world.cloud.names("image").is_empty(), "destroyed");

    let each = |key| spec.replace("name = ", &format!("for_each = [\"{key}\"]\nname = "));
    let world = half_made(&each("x")).await;
    converges(&world, &each("y")).await;
    assert_eq!(world.cloud.names("image"), ["i"], "its key went");
}

/// A whole object is retained, also if the answer to its last phase was lost.
#[tokio::test(start_paused = true)]
async fn what_has_its_name_is_retained() {
    let spec = format!("{IMAGE}lifecycle = {{ retain = true }}\n");
    let world = World::new();
    world.cloud.strike(1, Fault::LostAfter);
    world.apply(&spec).await.unwrap();
    world.destroy(&spec).await.unwrap();
    assert_eq!(world.cloud.names("image"), ["i"]);
}

/// The fingerprint of a secret name tells whether the object has its name, also if somebody else gave it
/// the name.
#[tokio::test(start_paused = true)]
async fn what_has_its_secret_name_is_retained_and_what_has_not_is_deleted() {
    let spec = format!(
        "[variable.word]\ntype = \"string\"\nsensitive = true\n{}lifecycle = {{ retain = true }}\n",
        IMAGE.replace("\"i\"", "\"n-${var.word}\"")
    );
    for named in [true, false] {
        let mut world = World::new();
        world.variables.insert("word".to_owned(), "hunter2".to_owned());
        world.cloud.strike(1, Fault::Refused);
        world.apply(&spec).await.unwrap();
        if named {
            let mut shared = world.cloud.shared.lock().unwrap();
            let image = shared.objects.values_mut().next().unwrap();
            image.insert("name".into(), Value::string("n-hunter2"));
        }
        world.destroy(&spec).await.unwrap();
        let left: &[&str] = if named { &["n-hunter2"] } else { &[] };
        assert_eq!(world.cloud.names("image"), left);
    }
}

/// A disk that never got its name has no data, because nobody could mount it. Its replace and its delete
/// lose nothing, and `prevent_destroy` does not forbid them.
#[tokio::test(start_paused = true)]
async fn a_half_made_object_is_no_data_and_not_protected() {
    for lifecycle in ["", "lifecycle = { prevent_destroy = true }\n"] {
        let spec = format!("{DISK}{lifecycle}");
        let moved = spec.replace("eu", "us");
        let world = World::new();
        world.cloud.strike(1, Fault::Refused);
        world.apply(&spec).await.unwrap();
        let (plan, ..) = world.plan(&moved).await;
        assert_eq!(plan.changes[0].loss, None);
        converges(&world, &moved).await;
        assert_eq!(world.cloud.names("disk"), ["d"]);
        let text = world.plan_text(&spec).await;
        assert!(text.contains("error"), "whole, it is: {text}");
    }
    // The same holds for its destroy.
    let spec = format!("{DISK}lifecycle = {{ prevent_destroy = true }}\n");
    let world = World::new();
    world.cloud.strike(1, Fault::Refused);
    world.apply(&spec).await.unwrap();
    world.destroy(&spec).await.unwrap();
    assert!(world.cloud.names("disk").is_empty());
}

/// A twin that a server made is not retained, also when its first delete fails.
#[tokio::test(start_paused = true)]
async fn a_leftover_is_never_retained() {
    let spec = format!("{DISK}lifecycle = {{ retain = true }}\n");
    let world = World::new();
    world.cloud.strike(0, Fault::Doubled);
    world.apply(&spec).await.unwrap();
    assert_eq!(world.cloud.names("disk").len(), 2);
    world.cloud.strike(0, Fault::Refused);
    world.apply(&spec).await.unwrap();
    assert_eq!(world.cloud.names("disk").len(), 2, "its delete was refused");
    let (plan, ..) = world.plan(&spec).await;
    let aside = plan.changes.iter().find(|change| change.deposed).unwrap();
    assert_eq!((aside.action.word(), &aside.loss), ("delete", &None));
    converges(&world, &spec).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// A delete has drained the unit. The plan refuses to retain the unit, which would stay drained. Once a run
/// has given the unit its workers back, a plan can retain it.
#[tokio::test(start_paused = true)]
async fn what_was_drained_is_given_back_before_it_is_retained() {
    let world = World::new();
    let spec = |enabled: bool, retain: bool| {
        format!(
            "[resource.unit.u]\nname = \"u\"\nworkers = 3\n\
             lifecycle = {{ enabled = {enabled}, retain = {retain} }}\n"
        )
    };
    world.apply(&spec(true, false)).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.apply(&spec(false, false)).await.unwrap();
    assert_eq!(unit(&world).1, Value::Integer(0));
    let (_, said, _) = world.plan(&spec(false, true)).await;
    let said: Vec<_> = said.iter().map(|it| &*it.summary).collect();
    assert_eq!(said, ["unit.u would stay half deleted"]);
    converges(&world, &spec(true, true)).await;
    converges(&world, &spec(false, true)).await;
    assert_eq!(unit(&world).1, Value::Integer(3));
    assert!(world.state().await.entries.is_empty());
}

/// The spec gets an image for the unit after the create began, and the calls of the create cannot send it.
/// An update sends the image after those calls.
#[tokio::test(start_paused = true)]
async fn what_a_begun_create_cannot_send_an_update_sends() {
    for (call, fault) in [(1, Fault::Refused), (1, Fault::LostBefore), (1, Fault::LostAfter)] {
        let mut world = World::new();
        world.cloud.change_type("unit", |unit| {
            for phase in &mut unit.create[0].phases {
                phase.without.insert("image_id".into());
            }
        });
        let before = "[resource.unit.u]\nname = \"u\"\nworkers = 3\n";
        world.cloud.strike(call, fault);
        drop(world.apply(before).await);
        converges(&world, &format!("{before}image_id = \"i\"\n")).await;
        let shared = world.cloud.shared.lock().unwrap();
        let unit = shared.objects.values().next().unwrap();
        assert_eq!(unit.get("image_id"), Some(&Value::string("i")), "{fault:?}");
        assert_eq!(unit["name"], Value::string("u"), "{fault:?}");
    }
}

const HOST: &str = "[resource.host.h]\nname = \"h\"\nsize = 1\n";

/// Changes the type of hosts: a host is stopped before it is deleted. The only sign of that is `starts`, the
/// number of its starts since then.
fn stopping(world: &mut World) {
    world.cloud.change_type("host", |host| {
        let stop = shapes::phase(Operation::Drain, Sends::Nothing);
        host.delete[0].phases.insert(0, stop);
    });
}

fn starts(world: &World) -> Option<Value> {
    let shared = world.cloud.shared.lock().unwrap();
    shared.objects.values().next().unwrap().get("starts").cloned()
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_and_is_wanted_again_is_started() {
    for (call, fault) in
        [(0, Fault::LostAfter), (0, Fault::StillWaiting), (0, Fault::Panic), (1, Fault::Refused)]
    {
        let mut world = World::new();
        stopping(&mut world);
        world.apply(HOST).await.unwrap();
        world.cloud.strike(call, fault);
        drop(world.destroy(HOST).await);
        if world.cloud.names("host").is_empty() {
            continue;
        }
        assert_eq!(starts(&world), Some(Value::Integer(0)), "{call} {fault:?}");
        converges(&world, HOST).await;
        assert_eq!(starts(&world), Some(Value::Integer(1)), "{call} {fault:?}");
    }
}

/// The delete of a stopped host is refused, and so is the start in the next run. The run after that starts
/// the host.
#[tokio::test(start_paused = true)]
async fn a_start_after_a_delete_that_was_cut_short_is_made_until_it_is_done() {
    let mut world = World::new();
    stopping(&mut world);
    world.apply(HOST).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.destroy(HOST).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.apply(HOST).await.unwrap();
    assert_eq!(starts(&world), Some(Value::Integer(0)));
    converges(&world, HOST).await;
    assert_eq!(starts(&world), Some(Value::Integer(1)));
}

#[tokio::test(start_paused = true)]
async fn what_nothing_starts_again_is_said_to_be_stopped() {
    let mut world = World::new();
    stopping(&mut world);
    world.cloud.change_type("host", |host| host.update[0].phases.truncate(1));
    world.apply(HOST).await.unwrap();
    world.cloud.strike(1, Fault::Refused);
    world.destroy(HOST).await.unwrap();
    let text = world.plan_text(HOST).await;
    assert_eq!(text, "warning:1: host.h may be stopped, and nothing starts it again\n");
    converges(&world, HOST).await;
}
