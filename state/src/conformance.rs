//! The conformance suite: the behaviour of every store, as tests that each backend runs.
//!
//! [`run`] panics if a store does not conform. A store that passes may still lose data when the machine
//! stops: the tests of each backend cover crashes.

use std::ops::Range;
use std::time::{Duration, Instant};

use engine::digest::{Digest, SealKey};
use engine::journal::Record;
use engine::sorted::Set;
use engine::state::{Entry, Object, ObjectId, Snapshot};
use engine::stored::{Stored, from_json};

use crate::error::StoreError;
use crate::holder::Holder;
use crate::mark::{Mark, Purpose};
use crate::store::{Loaded, LockedStore, Store, Version};

/// Opens a new handle to one store, as a new process would.
pub type OpenStore = Box<dyn Fn() -> Box<dyn Store>>;

/// Runs the suite; `make` makes a new, empty place each time.
pub async fn run(make: impl Fn() -> OpenStore) {
    nothing_is_a_first_run(make()).await;
    a_lock_alone_leaves_a_first_run(make()).await;
    initialising_happens_once(make()).await;
    nothing_is_written_before_the_first_state(make()).await;
    records_survive_without_a_save(make()).await;
    saving_starts_a_new_journal(make()).await;
    values_come_back_as_they_were(make()).await;
    only_the_expected_version_is_replaced(make()).await;
    serials_only_grow(make()).await;
    a_foreign_lineage_is_refused(make()).await;
    one_holds_the_lock(make()).await;
    waiting_ends_when_the_lock_is_free(make()).await;
    loading_needs_no_lock(make()).await;
    restoring_begins_anew(make()).await;
    a_place_that_was_left_says_where_to(make()).await;
    a_place_that_was_left_takes_its_state_back(make()).await;
    a_place_that_a_state_arrives_at_is_read_and_not_used(make()).await;
}

/// Returns a snapshot with some content, for tests of stores.
pub fn snapshot(serial: u64) -> Snapshot {
    let mut snapshot = Snapshot::new("lineage-1".to_owned(), SealKey::from_random([7; 32]));
    snapshot.serial = serial;
    for n in 0..serial.min(5) {
        let address = format!("value.v[\"k{n}\"]").parse().expect("it is an address");
        snapshot.entries.insert(address, entry(serial * 100 + n));
    }
    snapshot
}

fn entry(n: u64) -> Entry {
    let json = serde_json::json!({
        "name": format!("n-{n} \u{0}\u{1b}\"\\\u{2028}ü"),
        "float": 0.1 + 0.2, "large": 1e300, "small": -5e-324, "integer": i64::MIN,
        "nested": {"list": [null, true, {"": []}]},
    });
    let object = Object {
        id: ObjectId(format!("id-{n}").into()),
        progress: engine::state::Progress::Ready,
        attributes: Stored { json: from_json(&json), ..Stored::default() },
        managed: ["name".into()].into(),
        sensitive: engine::value::Paths::none(),
        delete_sent_ms: None,
        made_with: std::collections::BTreeMap::new(),
        input_fingerprints: std::collections::BTreeMap::new(),
    };
    Entry {
        provider: "builtin".into(),
        current: Some(object),
        deposed: Vec::new(),
        dependencies: Set::new(),
    }
}

/// Returns records that are all different, for tests of stores, which do not interpret records.
pub fn records(numbers: Range<u64>) -> Vec<Record> {
    let plan = Digest::of(b"plan");
    let record =
        |n| Record::RunOpened { run: format!("run-{n}"), serial: n, plan: plan.clone(), at_ms: n };
    numbers.map(record).collect()
}

fn holder(run: &str) -> Holder {
    Holder { run: run.to_owned(), command: "apply".to_owned(), pid: 7, ..Holder::default() }
}

async fn locked(place: &OpenStore, run: &str) -> Box<dyn LockedStore> {
    let result = place().lock(&holder(run), Duration::ZERO).await;
    result.expect("the lock is free")
}

async fn loaded(place: &OpenStore) -> Loaded {
    place().load().await.expect("the state is readable")
}

/// Makes the first state and releases the lock.
async fn initialised(place: &OpenStore) -> Version {
    let mut held = locked(place, "first").await;
    held.initialise(&snapshot(0)).await.expect("nothing is there yet")
}

async fn nothing_is_a_first_run(place: OpenStore) {
    let loaded = loaded(&place).await;
    assert!(loaded.snapshot.is_none() && loaded.records.is_empty() && loaded.holder.is_none());
    assert_eq!(loaded.version, Version::none());
    assert!(!place().place().is_empty());
}

async fn a_lock_alone_leaves_a_first_run(place: OpenStore) {
    let held = locked(&place, "a").await;
    assert!(held.loaded().snapshot.is_none());
    held.release().await.expect("it is held");
    assert!(loaded(&place).await.snapshot.is_none());
}

async fn initialising_happens_once(place: OpenStore) {
    let mut held = locked(&place, "a").await;
    let version = held.initialise(&snapshot(0)).await.expect("nothing is there yet");
    assert_ne!(version, Version::none());
    let again = held.initialise(&snapshot(0)).await;
    assert!(matches!(again, Err(StoreError::Fenced(_))), "{again:?}");
    drop(held);
    let mut held = locked(&place, "b").await;
    assert_eq!(held.loaded().snapshot, Some(snapshot(0)));
    assert_eq!(held.loaded().version, version);
    let again = held.initialise(&snapshot(0)).await;
    assert!(matches!(again, Err(StoreError::Fenced(_))), "{again:?}");
}

async fn nothing_is_written_before_the_first_state(place: OpenStore) {
    let mut held = locked(&place, "a").await;
    assert!(held.append(&records(0..1)).await.is_err());
    assert!(held.save(&snapshot(1), &Version::none()).await.is_err());
    drop(held);
    assert!(loaded(&place).await.snapshot.is_none());
}

async fn records_survive_without_a_save(place: OpenStore) {
    let version = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    let before = held.journal_bytes();
    held.append(&records(0..3)).await.expect("the lock is held");
    held.append(&[]).await.expect("nothing is written");
    held.append(&records(3..4)).await.expect("the lock is held");
    assert!(held.journal_bytes() > before);
    drop(held);
    let mut held = locked(&place, "b").await;
    assert_eq!(held.loaded().records, records(0..4));
    assert_eq!(held.loaded().version, version);
    held.append(&records(4..5)).await.expect("the lock is held");
    drop(held);
    let loaded = loaded(&place).await;
    assert_eq!((loaded.snapshot, loaded.records), (Some(snapshot(0)), records(0..5)));
}

async fn saving_starts_a_new_journal(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    held.append(&records(0..3)).await.expect("the lock is held");
    let before = held.journal_bytes();
    let second = held.save(&snapshot(3), &first).await.expect("the version is right");
    assert_ne!(first, second);
    assert!(held.journal_bytes() < before);
    let now = loaded(&place).await;
    assert_eq!((now.snapshot, now.version), (Some(snapshot(3)), second.clone()));
    assert!(now.records.is_empty());
    held.append(&records(7..8)).await.expect("the lock is held");
    let third = held.save(&snapshot(4), &second).await.expect("the version is right");
    held.append(&records(8..9)).await.expect("the lock is held");
    drop(held);
    let now = loaded(&place).await;
    assert_eq!((now.snapshot, now.version), (Some(snapshot(4)), third));
    assert_eq!(now.records, records(8..9));
}

async fn values_come_back_as_they_were(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    held.save(&snapshot(5), &first).await.expect("the version is right");
    drop(held);
    assert_eq!(loaded(&place).await.snapshot, Some(snapshot(5)));
}

async fn only_the_expected_version_is_replaced(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    let second = held.save(&snapshot(1), &first).await.expect("the version is right");
    for wrong in [first, Version::none(), Version("x".to_owned())] {
        let result = held.save(&snapshot(2), &wrong).await;
        assert!(matches!(result, Err(StoreError::Fenced(_))), "{result:?}");
    }
    // The wrong version was the caller's mistake and nothing was written, so a save with the right one still
    // works.
    held.save(&snapshot(2), &second).await.expect("the version is right");
}

async fn serials_only_grow(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    let second = held.save(&snapshot(2), &first).await.expect("the version is right");
    for serial in [2, 1] {
        let result = held.save(&snapshot(serial), &second).await;
        assert!(matches!(result, Err(StoreError::Fenced(_))), "{result:?}");
    }
    assert_eq!(loaded(&place).await.snapshot, Some(snapshot(2)));
}

async fn a_foreign_lineage_is_refused(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    let foreign = Snapshot { lineage: "lineage-2".to_owned(), ..snapshot(1) };
    let result = held.save(&foreign, &first).await;
    assert!(matches!(result, Err(StoreError::Suspicious { .. })), "{result:?}");
    assert_eq!(loaded(&place).await.snapshot, Some(snapshot(0)));
}

async fn one_holds_the_lock(place: OpenStore) {
    let held = locked(&place, "a").await;
    let Err(StoreError::Locked(other)) = place().lock(&holder("b"), Duration::ZERO).await else {
        panic!("two hold the lock");
    };
    assert_eq!(*other, holder("a"));
    let waited = Instant::now();
    let wait = Duration::from_millis(150);
    let result = place().lock(&holder("b"), wait).await;
    assert!(matches!(result, Err(StoreError::Locked(_))), "two hold the lock");
    assert!(waited.elapsed() >= wait);
    let result = place().restore(&holder("b"), &snapshot(1)).await;
    assert!(matches!(result, Err(StoreError::Locked(_))), "two hold the lock");
    drop(held);
    drop(locked(&place, "b").await);
}

async fn waiting_ends_when_the_lock_is_free(place: OpenStore) {
    let held = locked(&place, "a").await;
    let store = place();
    let second = holder("b");
    let wait = store.lock(&second, Duration::from_secs(30));
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        held.release().await
    };
    let started = Instant::now();
    let (waited, released) = tokio::join!(wait, release);
    released.expect("it is held");
    waited.expect("the lock became free");
    assert!(started.elapsed() < Duration::from_secs(10));
}

async fn loading_needs_no_lock(place: OpenStore) {
    initialised(&place).await;
    let mut held = locked(&place, "a").await;
    held.append(&records(0..2)).await.expect("the lock is held");
    let seen = loaded(&place).await;
    assert_eq!(seen.holder, Some(holder("a")));
    assert_eq!(seen.records, records(0..2));
    held.append(&records(2..3)).await.expect("loading disturbs nobody");
    drop(held);
    assert_eq!(loaded(&place).await.holder, None);
}

async fn restoring_begins_anew(place: OpenStore) {
    let first = initialised(&place).await;
    let mut held = locked(&place, "a").await;
    held.save(&snapshot(4), &first).await.expect("the version is right");
    held.append(&records(0..2)).await.expect("the lock is held");
    drop(held);
    let version = place().restore(&holder("b"), &snapshot(2)).await.expect("the lock is free");
    let now = loaded(&place).await;
    let restored = now.snapshot.expect("it was put in place");
    assert_eq!(restored, Snapshot { serial: restored.serial, ..snapshot(2) });
    assert!(restored.serial > 4, "{} was used before", restored.serial);
    assert_eq!((now.version, now.holder), (version, None));
    assert!(now.records.is_empty());
}

fn left_for(to: &str) -> Mark {
    Mark::Left { to: to.to_owned(), run: "mover".to_owned() }
}

fn arriving_from(from: &str) -> Mark {
    Mark::Arriving { from: from.to_owned(), run: "mover".to_owned() }
}

async fn a_place_that_was_left_says_where_to(place: OpenStore) {
    initialised(&place).await;
    let mut held = locked(&place, "a").await;
    let mark = left_for("s3://bucket/prefix");
    held.set_mark(Some(&mark)).await.expect("the lock is held");
    held.release().await.expect("it is held");
    let lock = place().lock(&holder("b"), Duration::ZERO).await.map(drop);
    for result in [place().load().await.map(drop), lock] {
        let Err(StoreError::Moved { to, .. }) = result else { panic!("{result:?}") };
        assert_eq!(to, "s3://bucket/prefix");
    }
    place().restore(&holder("c"), &snapshot(3)).await.expect("a person decided it");
    assert!(loaded(&place).await.snapshot.is_some());
    drop(locked(&place, "d").await);
}

/// A migration may bring a state back to a location that it left.
async fn a_place_that_was_left_takes_its_state_back(place: OpenStore) {
    initialised(&place).await;
    let mut held = locked(&place, "a").await;
    held.set_mark(Some(&left_for("there"))).await.expect("the lock is held");
    held.release().await.expect("it is held");
    let mut held = to_move(&place).await;
    assert_eq!(held.loaded().mark, Some(left_for("there")));
    let back = Snapshot { serial: 7, ..held.loaded().snapshot.clone().expect("it was left") };
    let arriving = arriving_from("there");
    held.set_mark(Some(&arriving)).await.expect("the lock is held");
    let version = held.loaded().version.clone();
    held.save(&back, &version).await.expect("the version is right");
    let now = loaded(&place).await;
    assert_eq!((now.snapshot.as_ref(), now.mark), (Some(&back), Some(arriving)));
    held.set_mark(None).await.expect("the lock is held");
    held.release().await.expect("it is held");
    assert_eq!(locked(&place, "b").await.loaded().snapshot, Some(back));
}

/// A location at which a state arrives can be read and not used, from before there is a state until the mark
/// is removed.
async fn a_place_that_a_state_arrives_at_is_read_and_not_used(place: OpenStore) {
    let mark = arriving_from("/srv/x/.plumb");
    let mut held = to_move(&place).await;
    assert_eq!(held.loaded().mark, None);
    held.set_mark(Some(&mark)).await.expect("the lock is held");
    held.release().await.expect("it is held");
    let arriving = |result: Result<(), StoreError>| {
        let Err(StoreError::Arriving { from, to }) = result else { panic!("{result:?}") };
        assert_eq!((&*from, to), ("/srv/x/.plumb", place().place()));
    };
    arriving(place().load().await.map(drop));
    arriving(place().lock(&holder("b"), Duration::ZERO).await.map(drop));
    let mut held = to_move(&place).await;
    assert_eq!((&held.loaded().snapshot, &held.loaded().mark), (&None, &Some(mark.clone())));
    let first = held.initialise(&snapshot(0)).await.expect("nothing is there yet");
    held.save(&snapshot(1), &first).await.expect("the version is right");
    held.release().await.expect("it is held");
    let now = loaded(&place).await;
    assert_eq!((now.snapshot, now.mark), (Some(snapshot(1)), Some(mark.clone())));
    arriving(place().lock(&holder("c"), Duration::ZERO).await.map(drop));
    let mut held = to_move(&place).await;
    assert_eq!(held.loaded().snapshot, Some(snapshot(1)));
    assert_eq!(held.loaded().mark, Some(mark));
    held.set_mark(None).await.expect("the lock is held");
    drop(held);
    assert_eq!(loaded(&place).await.mark, None);
    assert_eq!(locked(&place, "d").await.loaded().mark, None);
}

async fn to_move(place: &OpenStore) -> Box<dyn LockedStore> {
    let result = place().lock_for(Purpose::Move, &holder("mover"), Duration::ZERO).await;
    result.expect("the lock is free")
}
