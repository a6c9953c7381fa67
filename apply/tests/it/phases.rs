//! Programs of several phases, and phases that wait: the next run does the phases that a run left undone,
//! also if the live object does not show that they are missing.

use engine::plan::facts::prior::stored_attributes;
use engine::plan::{Action, Reason};
use engine::schema::{Attribute, Presence, SeenIn, Sends};
use engine::state::Progress;
use engine::value::Value;

use crate::cloud::Fault;
use crate::world::{World, converges};

const HOST: &str = "[resource.host.h]\nname = \"h\"\nsize = 1\n";

const SITE: &str = "[resource.site.s]\nname = \"s\"\nsize = 1\n\
                    [resource.key.k]\nname = \"${site.s.id}\"\n";

fn larger(spec: &str) -> String {
    spec.replace("size = 1", "size = 2")
}

/// Returns the number of starts of the only host.
fn starts(world: &World) -> i64 {
    let shared = world.cloud.shared.lock().unwrap();
    let (_, host) = shared.objects.iter().find(|((ty, _), _)| &**ty == "host").unwrap();
    host.get("starts").and_then(Value::as_integer).unwrap_or(0)
}

async fn progress(world: &World) -> Progress {
    let state = world.state().await;
    let entries: Vec<_> = state.entries.values().filter_map(|it| it.current.as_ref()).collect();
    entries.last().unwrap().progress.clone()
}

/// Returns a world with a host whose third call, the start, had a fault.
async fn half_started(fault: Fault) -> World {
    let world = World::new();
    world.cloud.strike(2, fault);
    world.apply(HOST).await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn a_start_that_was_refused_is_made_by_the_next_run() {
    let world = half_started(Fault::Refused).await;
    assert_eq!((world.cloud.names("host"), starts(&world)), (vec!["h".to_owned()], 0));
    let (plan, ..) = world.plan(HOST).await;
    assert_eq!(
        (plan.changes[0].action, &plan.changes[0].reason),
        (Action::Update, &Reason::Unfinished)
    );
    converges(&world, HOST).await;
    assert_eq!(starts(&world), 1);
}

/// The run cannot tell whether the host was started, so the host is started again.
#[tokio::test(start_paused = true)]
async fn a_start_whose_answer_was_lost_is_made_again() {
    for (fault, times) in [(Fault::LostBefore, 1), (Fault::LostAfter, 2)] {
        let world = half_started(fault).await;
        converges(&world, HOST).await;
        assert_eq!(starts(&world), times, "{fault:?}");
    }
}

/// An API may compute attributes of a half-made disk from its temporary values, so the plan takes them for
/// not known. An attribute that shows no sign of that stays known: otherwise, a unit that depends on it
/// would be replaced.
#[tokio::test(start_paused = true)]
async fn what_depends_on_a_half_made_object_waits_for_what_it_comes_to_be() {
    let mut world = World::new();
    world.cloud.change_type("disk", |disk| {
        for name in ["label", "host", "rack"] {
            let text = Attribute::new("string".parse().unwrap());
            let told = Attribute { presence: Presence::Computed, ..text };
            disk.attributes.insert(name.into(), told);
        }
    });
    world.cloud.makes = |object| {
        if object.get("zone").is_none() {
            return;
        }
        let name = object["name"].clone();
        let is_whole = name.same(&Value::string("d"));
        let host = Value::string(if is_whole { "d.example" } else { "" });
        object.insert("label".into(), name);
        object.extend([("host".into(), host), ("rack".into(), Value::string("r7"))]);
    };
    let spec = "[resource.disk.d]\nname = \"d\"\nsize = 1\nzone = \"eu\"\n\
                [resource.key.k]\nname = \"of-${disk.d.label}\"\n\
                [resource.key.h]\nname = \"at-${disk.d.host}\"\n\
                [resource.unit.u]\nname = \"u\"\ndisk_id = \"${disk.d.id}\"\n\
                image_id = \"${disk.d.rack}\"\n";
    world.cloud.strike(1, Fault::Refused);
    world.apply(spec).await.unwrap();
    let (plan, ..) = world.plan(spec).await;
    let is_known = |address: &str, name: &str| {
        let change = plan.change(&address.parse().unwrap()).unwrap();
        change.after.as_ref().unwrap()[name].is_known()
    };
    assert!(!is_known("key.k", "name") && !is_known("key.h", "name"));
    assert!(is_known("unit.u", "disk_id") && is_known("unit.u", "image_id"));
    converges(&world, spec).await;
    assert_eq!(world.cloud.names("key"), ["at-d.example", "of-d"]);
}

/// A wait goes on in the next run, without another call.
#[tokio::test(start_paused = true)]
async fn a_wait_that_was_not_fulfilled_goes_on() {
    let world = half_started(Fault::StillWaiting).await;
    for _ in 0..2 {
        assert!(matches!(progress(&world).await, Progress::Created { done: 2, called: true, .. }));
        world.cloud.strike(0, Fault::StillWaiting);
        world.apply(HOST).await.unwrap();
    }
    converges(&world, HOST).await;
    assert_eq!((starts(&world), progress(&world).await), (1, Progress::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_create_leaves_nothing_undone() {
    for writes in 0..12 {
        let world = World::new();
        world.store.fail_after(Some(writes));
        drop(world.apply(HOST).await);
        world.store.fail_after(None);
        converges(&world, HOST).await;
        assert!((1..=2).contains(&starts(&world)), "{writes}");
        assert_eq!(progress(&world).await, Progress::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_followed_by_its_start_whatever_happens_between() {
    let faults = [
        (0, Fault::Refused),
        (0, Fault::LostBefore),
        (0, Fault::LostAfter),
        (0, Fault::Panic),
        (1, Fault::Refused),
        (1, Fault::LostBefore),
        (1, Fault::LostAfter),
        (1, Fault::StillWaiting),
        (1, Fault::Panic),
    ];
    for (call, fault) in faults {
        let world = World::new();
        world.apply(HOST).await.unwrap();
        world.cloud.strike(call, fault);
        drop(world.apply(&larger(HOST)).await);
        converges(&world, &larger(HOST)).await;
        assert!((2..=3).contains(&starts(&world)), "{call} {fault:?}: {}", starts(&world));
        assert_eq!(progress(&world).await, Progress::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_change_leaves_nothing_undone() {
    for writes in 0..8 {
        let world = World::new();
        world.apply(HOST).await.unwrap();
        world.store.fail_after(Some(writes));
        drop(world.apply(&larger(HOST)).await);
        world.store.fail_after(None);
        converges(&world, &larger(HOST)).await;
        assert!((2..=3).contains(&starts(&world)), "{writes}");
    }
}

/// A change was refused or half done, and the next spec takes it back. The host is started all the same,
/// because a server that executes a change twice may refuse only the second execution.
#[tokio::test(start_paused = true)]
async fn a_change_that_was_refused_or_half_done_and_is_taken_back_is_followed_by_a_start() {
    for call in [0, 1] {
        let world = World::new();
        world.apply(HOST).await.unwrap();
        world.cloud.strike(call, Fault::Refused);
        world.apply(&larger(HOST)).await.unwrap();
        let (plan, ..) = world.plan(HOST).await;
        assert_eq!(
            (plan.changes[0].action, &plan.changes[0].reason),
            (Action::Update, &Reason::HalfChanged)
        );
        converges(&world, HOST).await;
        assert_eq!(starts(&world), 2, "{call}");
    }
}

/// The next run does a new change together with the phases that a run left undone.
#[tokio::test(start_paused = true)]
async fn what_is_left_is_done_with_another_change() {
    let world = half_started(Fault::Refused).await;
    converges(&world, &larger(HOST)).await;
    assert!(starts(&world) >= 1);
    world.cloud.strike(1, Fault::Refused);
    world.apply(HOST).await.unwrap();
    let before = starts(&world);
    converges(&world, &HOST.replace("size = 1", "size = 3")).await;
    assert_eq!(starts(&world), before + 1);
}

/// A key needs a site that is not ready. The key waits for the site, in this run and in the next ones.
#[tokio::test(start_paused = true)]
async fn nothing_is_made_from_what_is_not_ready() {
    for lost in [false, true] {
        let world = World::new();
        if lost {
            world.cloud.strike(0, Fault::LostAfter);
        }
        world.cloud.strike(u64::from(lost), Fault::StillWaiting);
        world.apply(SITE).await.unwrap();
        assert_eq!(world.cloud.names("site"), ["s"], "lost: {lost}");
        for _ in 0..2 {
            assert!(world.cloud.names("key").is_empty(), "lost: {lost}");
            assert!(matches!(progress(&world).await, Progress::Created { called: true, .. }));
            world.cloud.strike(0, Fault::StillWaiting);
            world.apply(SITE).await.unwrap();
        }
        converges(&world, SITE).await;
        assert_eq!(world.cloud.names("key").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_wait_is_followed_by_the_wait() {
    let world = World::new();
    // The record of the call is written, and the record of its answer is not.
    world.store.fail_after(Some(2));
    assert!(world.apply(SITE).await.is_err());
    world.store.fail_after(None);
    assert_eq!(world.cloud.names("site"), ["s"]);
    world.cloud.strike(0, Fault::StillWaiting);
    world.apply(SITE).await.unwrap();
    assert!(world.cloud.names("key").is_empty());
    converges(&world, SITE).await;
}

/// A site whose wait failed is retained: the site is complete, and may have somebody's data.
#[tokio::test(start_paused = true)]
async fn what_only_waits_is_retained() {
    let spec = "[resource.site.s]\nname = \"s\"\nlifecycle = { retain = true }\n";
    let world = World::new();
    world.cloud.strike(0, Fault::StillWaiting);
    world.apply(spec).await.unwrap();
    world.destroy(spec).await.unwrap();
    assert_eq!(world.cloud.names("site"), ["s"]);
}

/// Returns a world where an update of a key sends only its zone, and where no API knows its `force`.
fn with_force() -> World {
    let mut world = World::new();
    world.cloud.change_type("key", |key| {
        let text = || Attribute::new("string".parse().unwrap());
        let force = Attribute { seen_in: SeenIn::Never, local: true, ..text() };
        key.attributes.extend([("zone".into(), text()), ("force".into(), force)]);
        let zone = || Sends::These(["zone".into()].into());
        key.create[0].phases[0].sends = Sends::These(["name".into(), "zone".into()].into());
        key.update[0].phases[0].sends = zone();
    });
    world
}

async fn force(world: &World) -> Value {
    let state = world.state().await;
    let object = state.entries[&"key.k".parse().unwrap()].current.as_ref().unwrap();
    let schema = &world.cloud.schema.types["key"];
    stored_attributes(&object.attributes, schema).unwrap()["force"].clone()
}

/// The state has the value of `force` from the spec, so that a delete can be sent with it.
#[tokio::test(start_paused = true)]
async fn what_no_api_knows_is_in_the_state_whatever_a_phase_sends() {
    let world = with_force();
    let spec = |force: &str| {
        format!("[resource.key.k]\nname = \"k\"\nzone = \"eu\"\nforce = \"{force}\"\n")
    };
    converges(&world, &spec("yes")).await;
    assert_eq!(force(&world).await, Value::string("yes"));
    converges(&world, &spec("no")).await;
    assert_eq!(force(&world).await, Value::string("no"));
    // The answer to an update is lost, and no read shows the `force` with which it was made.
    world.cloud.strike(0, Fault::LostAfter);
    converges(&world, &spec("yes").replace("eu", "us")).await;
    assert_eq!(force(&world).await, Value::string("yes"));
}
