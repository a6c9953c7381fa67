//! What the simulator found, each as the shortest story that shows it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apply::ApplyError;
use apply::session::fold;
use apply::verify::verify;
use async_trait::async_trait;
use engine::journal::Record;
use engine::plan::input::{Observations, Options, Target};
use engine::state::Snapshot;
use engine::value::Value;
use state::memory::MemoryStore;
use state::{Held, Holder, Loaded, Store, StoreError, Version};
use tokio_util::sync::CancellationToken;

use crate::busy::Busy;
use crate::cloud::Fault;
use crate::world::World;

const DISK: &str = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n";

const SERVED: &str = r#"
[resource.image.base]
name = "base"
kind = "thin"

[resource.unit.chat]
name = "chat"
image_id = "${image.base.id}"
"#;

async fn converges(world: &World, spec: &str) {
    world.apply(spec).await.unwrap();
    assert_eq!(world.plan_text(spec).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_was_executed_twice_leaves_no_twin() {
    for fault in [Fault::Doubled, Fault::DoubledAndLost] {
        let world = World::new();
        world.cloud.shared.lock().unwrap().faults.insert(0, fault);
        world.apply(DISK).await.unwrap();
        assert_eq!(world.cloud.names("disk").len(), 2, "the server did it twice");
        let text = world.plan_text(DISK).await;
        assert!(text.contains("delete disk.d (deposed)"), "{text}");
        converges(&world, DISK).await;
        assert_eq!(world.cloud.names("disk"), ["d"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_wait_failed_is_not_forgotten() {
    let world = World::new();
    world.cloud.shared.lock().unwrap().faults.insert(0, Fault::StillWaiting);
    let report = world.apply(DISK).await.unwrap();
    assert_eq!(report.failures.len(), 1);
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_an_object_is_looked_up() {
    let world = World::new();
    world.cloud.shared.lock().unwrap().faults.insert(0, Fault::Bare);
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_leftover_goes_while_its_address_is_finished() {
    let world = World::new();
    // Executed twice, and the run ends before the object has its name.
    world.cloud.shared.lock().unwrap().faults.extend([(0, Fault::Doubled), (1, Fault::Refused)]);
    world.apply(DISK).await.unwrap();
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_replace_that_stopped_after_its_create_goes_on() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    let other = SERVED.replace("thin", "full");
    // The new image is made, and its user does not follow.
    world.cloud.shared.lock().unwrap().calls = 0;
    world.cloud.shared.lock().unwrap().faults.insert(1, Fault::Refused);
    world.apply(&other).await.unwrap();
    converges(&world, &other).await;
    assert_eq!(world.cloud.names("image"), ["base"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_while_its_delete_is_in_doubt() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostAfter);
        shared.reads_fail = 2;
    }
    let report = world.apply("[local]\n").await.unwrap();
    assert_eq!(report.in_doubt.len(), 1);
    // The next look-up fails as well, while the refresh sees that the object is gone.
    world.apply("[local]\n").await.unwrap();
    converges(&world, "[local]\n").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_drained_and_works_again_is_drained_again() {
    let world = World::new();
    let spec = "[resource.unit.chat]\nname = \"chat\"\nworkers = 2\n";
    world.apply(spec).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(1, Fault::Refused);
    }
    // It is drained, and not deleted; then somebody, or a late call, gives it workers again.
    world.apply("[local]\n").await.unwrap();
    for attributes in world.cloud.shared.lock().unwrap().objects.values_mut() {
        attributes.insert("workers".into(), Value::Integer(2));
    }
    converges(&world, "[local]\n").await;
    assert!(world.cloud.names("unit").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_doubt_may_still_use_is_not_deleted() {
    let world = World::new();
    let used = format!("{DISK}[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n");
    world.apply(&used).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostBefore);
        shared.reads_fail = 2;
    }
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
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostBefore);
        shared.reads_fail = 2;
    }
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
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        // The new image is made, and nobody knows whether the unit follows.
        shared.faults.insert(1, Fault::LostAfter);
        shared.reads_fail = 2;
    }
    world.apply(&SERVED.replace("thin", "full")).await.unwrap();
    let third = SERVED.replace("thin", "other");
    world.apply(&third).await.unwrap();
    assert_eq!(kinds(&world), ["full", "thin"], "the unit may use either");
    converges(&world, &third).await;
    assert_eq!(kinds(&world), ["other"]);
    assert_eq!(world.cloud.names("image"), ["base"]);
}

/// A change that was looked up and not fulfilled may have happened: what it was to use is used.
#[tokio::test(start_paused = true)]
async fn what_an_unfulfilled_change_may_use_is_not_deleted() {
    let world = World::new();
    let unit = "[resource.unit.u]\nname = \"u\"\nworkers = 0\n";
    world.apply(&format!("{DISK}{unit}")).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::StillWaiting);
    }
    let used = format!("{DISK}{unit}disk_id = \"${{disk.d.id}}\"\n");
    let report = world.apply(&used).await.unwrap();
    assert_eq!(report.failures.len(), 1, "{report:?}");
    // The disk's replacement would take it from the unit, which the plan leaves out.
    let named = "name = \"d\"\n";
    let lossy = format!("{named}lifecycle = {{ allow_data_loss = true }}\n");
    let elsewhere = used.replace(named, &lossy).replace("\"eu\"", "\"us\"");
    let unit = Target::Block("unit.u".parse().unwrap());
    let options = Options { excludes: vec![unit], ..Options::default() };
    let (_, diagnostics, _) = world.plan_with(&elsewhere, &options).await;
    let said: Vec<_> = diagnostics.iter().map(|said| said.summary.clone()).collect();
    assert_eq!(said, ["disk.d cannot be replaced while it is used"]);
    converges(&world, &elsewhere).await;
}

/// The kinds of the images that are there, in order.
fn kinds(world: &World) -> Vec<String> {
    let shared = world.cloud.shared.lock().unwrap();
    let images = shared.objects.iter().filter(|((ty, _), _)| &**ty == "image");
    let kinds = images.filter_map(|(_, object)| Some(object.get("kind")?.as_str()?.to_owned()));
    let mut kinds: Vec<String> = kinds.collect();
    kinds.sort();
    kinds
}

#[tokio::test(start_paused = true)]
async fn a_saved_plan_that_takes_over_what_was_taken_over_is_stale() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    world.cloud.shared.lock().unwrap().objects.clear();
    let (plan, ..) = world.plan("[local]\n").await;
    assert_eq!(plan.seen.len(), 1, "the disk is seen to be gone");
    world.apply("[local]\n").await.unwrap();
    let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
    let seen = Observations::default();
    let error = verify(&plan, &snapshot, &seen, &world.providers()).unwrap_err();
    assert!(matches!(error, ApplyError::Stale(_)), "{error}");
}

/// A store under a process that stands still for a minute after its first append, while another
/// run takes its place.
struct Stopped(MemoryStore);

struct StoppedHeld {
    held: Box<dyn Held>,
    store: MemoryStore,
}

#[async_trait]
impl Store for Stopped {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.0.load().await
    }

    async fn lock(&self, holder: &Holder, wait: Duration) -> Result<Box<dyn Held>, StoreError> {
        let held = self.0.lock(holder, wait).await?;
        Ok(Box::new(StoppedHeld { held, store: self.0.clone() }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.0.restore(holder, snapshot).await
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

#[async_trait]
impl Held for StoppedHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.held.initialise(snapshot).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.held.append(records).await?;
        tokio::time::sleep(Duration::from_mins(1)).await;
        self.store.drive_out();
        Ok(())
    }

    async fn save(&mut self, snapshot: &Snapshot, at: &Version) -> Result<Version, StoreError> {
        self.held.save(snapshot, at).await
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_stood_still_before_its_call_calls_nothing() {
    let world = World::new();
    let store = Stopped(world.store.clone());
    let error = world.apply_on(&store, DISK, &Options::default()).await.unwrap_err();
    assert!(error.to_string().contains("lost its place"), "{error}");
    assert!(world.cloud.take_log().is_empty());
    converges(&world, DISK).await;
}

/// Makes the first create get lost before its effect; returns the nonce that it bore.
async fn lost_create(world: &World) -> String {
    world.cloud.shared.lock().unwrap().faults.insert(0, Fault::LostBefore);
    world.apply(DISK).await.unwrap();
    let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
    let watched: Vec<_> = snapshot.watched.iter().map(|watched| watched.nonce.0.clone()).collect();
    watched.into_iter().next().expect("the nonce of the lost create is watched").to_string()
}

#[tokio::test(start_paused = true)]
async fn a_create_that_happens_long_after_it_was_given_up_is_removed() {
    let world = World::new();
    let nonce = lost_create(&world).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
    let late = [("name", Value::string(nonce.as_str())), ("size", Value::Integer(10))];
    world.cloud.put("disk", &late);
    let text = world.plan_text(DISK).await;
    assert!(text.contains("delete disk.d (deposed)"), "a plan shows it first: {text}");
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_like_ours_is_a_strangers_name() {
    let world = World::new();
    let _nonce = lost_create(&world).await;
    // Of another state, or copied long ago: our records do not have it.
    let other = engine::state::Nonce::from_random([9; 16]);
    world.cloud.put("disk", &[("name", Value::String(other.0.clone()))]);
    assert_eq!(world.plan_text(DISK).await, "");
    world.apply("[local]\n").await.unwrap();
    assert_eq!(world.cloud.names("disk"), [other.to_string()]);
}

/// How consoles and people name a copy.
const COPIES: [fn(&str) -> String; 4] = [
    |name| format!("{name}-copy"),
    |name| format!("{name} (copy)"),
    |name| format!("{name} keep this"),
    |name| format!("Copy of {name}"),
];

#[tokio::test(start_paused = true)]
async fn copies_of_what_bears_a_one_time_name_are_strangers() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Doubled] {
        let world = World::new();
        world.cloud.shared.lock().unwrap().faults.insert(0, fault);
        world.apply(DISK).await.unwrap();
        let snapshot = fold(world.store.load().await.unwrap(), &world.host).unwrap().snapshot;
        let nonce = snapshot.watched.first().expect("the create is watched").nonce.to_string();
        for copy in COPIES {
            let name = Value::string(copy(&nonce));
            world.cloud.put("disk", &[("name", name), ("size", Value::Integer(99))]);
        }
        converges(&world, DISK).await;
        world.apply("[local]\n").await.unwrap();
        let copies: BTreeSet<_> = COPIES.map(|copy| copy(&nonce)).into();
        let left: BTreeSet<_> = world.cloud.names("disk").into_iter().collect();
        assert_eq!(left, copies, "only ours goes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_like_a_lost_answer() {
    for call in 0..4 {
        let world = World::new();
        world.cloud.shared.lock().unwrap().faults.insert(call, Fault::Panic);
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

#[tokio::test(start_paused = true)]
async fn what_a_leftover_uses_goes_after_it() {
    let world = World::new();
    // The unit's create is executed twice; then the spec keeps the unit and drops its image.
    world.cloud.shared.lock().unwrap().faults.insert(2, Fault::Doubled);
    world.apply(SERVED).await.unwrap();
    assert_eq!(world.cloud.names("unit").len(), 2, "the server did it twice");
    let alone = "[resource.unit.chat]\nname = \"chat\"\n";
    let text = world.plan_text(alone).await;
    insta::assert_snapshot!(text, @r#"
    delete image.base []
    delete unit.chat (deposed) []
    s0 = drain unit.chat (unit-3)
    s1 = delete unit.chat (unit-3) after s0
    s2 = delete image.base (image-1) after s1
    warning:1: `image_id` is no longer managed, stays "image-1"
    "#);
    world.cloud.take_log();
    world.apply(alone).await.unwrap();
    let log = world.cloud.take_log();
    assert_eq!(log[..2], ["drain unit", "delete unit"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_doubt_keeps_what_it_uses() {
    let world = World::new();
    let spec = |kind: &str| {
        format!("{DISK}{}disk_id = \"${{disk.d.id}}\"\n", SERVED.replace("thin", kind))
    };
    world.apply(&spec("thin")).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        // The new image is there, and the unit does not follow it yet.
        shared.faults.insert(1, Fault::Refused);
    }
    world.apply(&spec("full")).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostBefore);
        shared.reads_fail = 2;
    }
    // Nobody knows about the disk now, so the unit waits, and goes on using the old image.
    let grown = spec("full").replace("size = 10", "size = 20");
    let report = world.apply(&grown).await.unwrap();
    assert!(!report.in_doubt.is_empty(), "{report:?}");
    world.cloud.shared.lock().unwrap().reads_fail = 1;
    world.apply(&grown).await.unwrap();
    assert_eq!(world.cloud.names("image").len(), 2, "the old image is still used");
    converges(&world, &grown).await;
    assert_eq!(world.cloud.names("image"), ["base"]);
}

async fn apply_busy(world: &World, waits: Duration) -> Result<(), ApplyError> {
    let providers = world.providers_with(Arc::new(Busy::new(world, waits)));
    world.apply_through(&world.store, &providers, DISK, &Options::default()).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_its_turn_too_long_asks_again() {
    let world = World::new();
    apply_busy(&world, Duration::from_mins(2)).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d"]);

    let world = World::new();
    let (run, other) = tokio::join!(apply_busy(&world, Duration::from_mins(2)), async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        world.store.drive_out();
    });
    let ((), error) = (other, run.unwrap_err());
    assert!(matches!(error, ApplyError::Store(StoreError::Fenced(_))), "{error:?}");
    assert!(world.cloud.names("disk").is_empty(), "it had lost its place, and sent nothing");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_was_refused_because_of_itself_is_not_lost() {
    let world = World::new();
    // Executed twice, and the answer is that of the second time: the name exists already.
    world.cloud.shared.lock().unwrap().faults.insert(0, Fault::DoubledAndRefused);
    let report = world.apply(DISK).await.unwrap();
    assert_eq!(report.failures.len(), 1);
    assert_eq!(world.cloud.names("disk").len(), 1, "the first time made it");
    converges(&world, DISK).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_used_again_is_let_go_of_before_it_goes() {
    let world = World::new();
    world.apply(SERVED).await.unwrap();
    // Left out of the spec the reference stays as it is, and the state no longer knows of it.
    world.apply(&SERVED.replace("image_id = \"${image.base.id}\"", "")).await.unwrap();
    world.cloud.take_log();
    world.apply(&SERVED.replace("thin", "full")).await.unwrap();
    let log = world.cloud.take_log();
    let place = |what: &str| log.iter().position(|line| line.starts_with(what)).unwrap();
    assert!(place("update unit") < place("delete image"), "{log:?}");
}

/// Five disks, of which four go together.
fn disks(count: usize) -> String {
    let disk = |n| format!("[resource.disk.d{n}]\nname = \"d{n}\"\nsize = 10\nzone = \"eu\"\n");
    (0..count).map(disk).collect()
}

/// Takes four disks away, as deletes do that arrive at last.
fn deletes_arrive(world: &World) {
    let mut shared = world.cloud.shared.lock().unwrap();
    shared.objects.retain(|_, object| object["name"].as_str() == Some("d0"));
}

/// Removes four of five disks, and loses all answers; so many reads fail after that.
async fn lose_deletes(world: &World, reads_fail: u64) {
    world.apply(&disks(5)).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.extend((0..12).map(|call| (call, Fault::LostBefore)));
        shared.reads_fail = reads_fail;
    }
    world.apply(&disks(1)).await.unwrap();
    world.cloud.shared.lock().unwrap().faults.clear();
    assert_eq!(world.cloud.names("disk").len(), 5, "nothing has happened yet");
}

#[tokio::test(start_paused = true)]
async fn deletes_that_come_late_are_no_question() {
    // The same run believes that nothing happened.
    let world = World::new();
    lose_deletes(&world, 0).await;
    deletes_arrive(&world);
    converges(&world, &disks(5)).await;
    assert_eq!(world.cloud.names("disk").len(), 5);

    // The next one does, and keeps them.
    let world = World::new();
    lose_deletes(&world, 4).await;
    world.apply(&disks(5)).await.unwrap();
    deletes_arrive(&world);
    converges(&world, &disks(5)).await;

    // Nobody knows yet when they are gone.
    let world = World::new();
    lose_deletes(&world, 4).await;
    deletes_arrive(&world);
    world.cloud.shared.lock().unwrap().reads_fail = 4;
    world.apply(&disks(1)).await.unwrap();
    converges(&world, &disks(1)).await;
    assert_eq!(world.cloud.names("disk"), ["d0"]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_without_a_delete_of_ours_is_a_question() {
    let world = World::new();
    world.apply(&disks(5)).await.unwrap();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        // Refused is not in doubt.
        shared.faults.extend((0..12).map(|call| (call, Fault::Refused)));
    }
    world.apply(&disks(1)).await.unwrap();
    deletes_arrive(&world);
    let error = world.apply(&disks(5)).await.unwrap_err();
    assert!(matches!(error, ApplyError::Vanished { gone: 4, all: 5, .. }), "{error:?}");
}

const LOGIN: &str = r#"
[variable.pw]
type = "string"
sensitive = true

[resource.login.l]
name = "l"
password = "${var.pw}"
"#;

fn password(world: &World) -> Value {
    let shared = world.cloud.shared.lock().unwrap();
    shared.objects.values().next().unwrap()["password"].clone()
}

/// No answer shows a password, so none proves that it was changed.
#[tokio::test(start_paused = true)]
async fn a_password_whose_change_was_lost_is_sent_again() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let mut world = World::new();
        world.variables.insert("pw".to_owned(), "old".to_owned());
        world.apply(LOGIN).await.unwrap();
        world.variables.insert("pw".to_owned(), "new".to_owned());
        {
            let mut shared = world.cloud.shared.lock().unwrap();
            shared.calls = 0;
            shared.faults.insert(0, fault);
        }
        let report = world.apply(LOGIN).await.unwrap();
        assert_eq!((report.summary.updated, password(&world)), (1, Value::string("new")));
        assert_eq!(world.plan_text(LOGIN).await, "");
    }
}

/// A change of what is shown is proved by it, whatever else the object has.
#[tokio::test(start_paused = true)]
async fn a_shown_change_beside_a_password_is_not_sent_twice() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    world.cloud.take_log();
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostAfter);
    }
    world.apply(&LOGIN.replace("name = \"l\"", "name = \"m\"")).await.unwrap();
    assert_eq!(world.cloud.take_log(), ["update login"]);
}

/// A run that dies after the change of a password was sent leaves it to the next plan.
#[tokio::test(start_paused = true)]
async fn a_password_whose_change_was_cut_off_is_planned_again() {
    let mut world = World::new();
    world.variables.insert("pw".to_owned(), "old".to_owned());
    world.apply(LOGIN).await.unwrap();
    world.variables.insert("pw".to_owned(), "new".to_owned());
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostBefore);
        shared.reads_fail = 1;
    }
    assert_eq!(world.apply(LOGIN).await.unwrap().in_doubt.len(), 1);
    let text = world.plan_text(LOGIN).await;
    assert!(text.contains("update login.l [password]"), "{text}");
    converges(&world, LOGIN).await;
    assert_eq!(password(&world), Value::string("new"));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_another_try_remains_when_the_run_is_stopped() {
    let mut world = World::new();
    world.cloud.shared.lock().unwrap().faults.insert(0, Fault::LostBefore);
    let used = format!("{DISK}[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n");
    let stop = Some(world.stop.clone());
    let busy = Busy { stop, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(busy));
    let options = Options::default();
    let report = world.apply_through(&world.store, &providers, &used, &options).await.unwrap();
    assert!(report.summary.cancelled && report.failures.is_empty(), "{report:?}");
    let remaining: Vec<String> = report
        .remaining
        .iter()
        .map(|step| format!("{} {}", step.operation.word(), step.address))
        .collect();
    let all = ["create disk.d", "activate disk.d", "create unit.u", "activate unit.u"];
    assert_eq!((remaining, report.summary.skipped), (all.map(str::to_owned).to_vec(), 0));
    world.stop = CancellationToken::new();
    converges(&world, &used).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// An answer about another object says nothing about this one: neither a refresh nor a look-up
/// takes it.
#[tokio::test(start_paused = true)]
async fn an_answer_about_another_object_is_believed_by_nobody() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let shows = Some(world.cloud.put("disk", &[("name", Value::string("other"))]));
    let mixed = Busy { shows, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(mixed));
    let options = Options::default();
    let grown = DISK.replace("size = 10", "size = 20");
    {
        let mut shared = world.cloud.shared.lock().unwrap();
        shared.calls = 0;
        shared.faults.insert(0, Fault::LostAfter);
    }
    let report = world.apply_through(&world.store, &providers, &grown, &options).await.unwrap();
    assert_eq!((report.in_doubt.len(), report.summary.updated), (1, 0), "{report:?}");
    converges(&world, &grown).await;
    world.cloud.shared.lock().unwrap().objects.retain(|(_, id), _| *id.0 != *"disk-1");
    let result = world.apply_through(&world.store, &providers, &grown, &options).await;
    let error = result.unwrap_err();
    assert!(matches!(error, ApplyError::Refresh { .. }), "{error:?}");
}

/// An unkeyed digest of a weak key would let whoever has the plan guess it.
#[tokio::test(start_paused = true)]
async fn a_saved_plan_tells_accounts_apart_and_nothing_of_their_keys() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let set = |key: &str| key.clone_into(&mut world.cloud.shared.lock().unwrap().key);
    set("hunter2");
    let (plan, ..) = world.plan(&DISK.replace("size = 10", "size = 20")).await;
    let text = engine::plan::saved::write(&plan, &serde_json::Value::Null);
    let plan = engine::plan::saved::read(&text).unwrap().plan;
    let digest = engine::digest::Digest::of(b"hunter2").to_string();
    assert!(text.contains("accounts") && !text.contains(&digest), "{text}");
    let loaded = world.store.load().await.unwrap();
    let snapshot = fold(loaded, &world.host).unwrap().snapshot;
    let fits = || verify(&plan, &snapshot, &Observations::default(), &world.providers());
    fits().unwrap();
    set("another");
    assert!(fits().unwrap_err().to_string().contains("another account"));
}

/// A secret that is read while steps begin is waited for no longer than the run goes on.
#[tokio::test(start_paused = true)]
async fn a_secret_that_does_not_come_holds_up_no_stop() {
    let mut world = World::new();
    let secret = ("secret", Value::string("s3cret"));
    let attributes = [("name", Value::string("u")), ("workers", Value::Integer(0)), secret];
    let id = world.cloud.put("unit", &attributes);
    let unit = "[resource.unit.u]\nname = \"u\"\n";
    let imported = format!("{unit}[[import]]\nto = 'unit.u'\nid = '{id}'\n");
    world.apply(&imported).await.unwrap();
    let used = format!("{unit}[resource.unit.v]\nname = \"v\"\nsecret = \"${{unit.u.secret}}\"\n");
    let stop = Some(world.stop.clone());
    let busy = Busy { stop, hangs: true, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(busy));
    let options = Options::default();
    let run = world.apply_through(&world.store, &providers, &used, &options);
    let report = tokio::time::timeout(Duration::from_mins(5), run).await.unwrap().unwrap();
    assert!(report.summary.cancelled && report.failures.is_empty(), "{report:?}");
    assert_eq!(report.remaining.len(), 2, "{report:?}");
    world.stop = CancellationToken::new();
    converges(&world, &used).await;
    let shared = world.cloud.shared.lock().unwrap();
    let made = shared.objects.values().find(|unit| unit["name"] == Value::string("v")).unwrap();
    assert_eq!(made["secret"], Value::string("s3cret"));
}

/// A block that did its work stays in the spec, whatever becomes of the object.
#[tokio::test(start_paused = true)]
async fn an_import_block_that_stays_is_in_nobodys_way() {
    let world = World::new();
    let attributes =
        [("name", "d"), ("zone", "eu")].map(|(name, text)| (name, Value::string(text)));
    let id = world.cloud.put("disk", &[&attributes[..], &[("size", Value::Integer(10))]].concat());
    let moving = format!("{DISK}lifecycle = {{ allow_data_loss = true }}\n");
    let taken = format!("{moving}[[import]]\nto = 'disk.d'\nid = '{id}'\n");
    world.apply(&taken).await.unwrap();
    // Replaced, as the spec asks; and then deleted by somebody.
    let moved = taken.replace("eu", "us");
    world.apply(&moved).await.unwrap();
    assert_eq!(
        world.plan_text(&moved).await,
        format!("warning:8: the import of {id} does nothing\n")
    );
    world.cloud.shared.lock().unwrap().objects.clear();
    world.apply(&moved).await.unwrap();
    assert_eq!(
        world.plan_text(&moved).await,
        format!("warning:8: the import of {id} does nothing\n")
    );
    assert_eq!(world.cloud.names("disk"), ["d"]);
}
