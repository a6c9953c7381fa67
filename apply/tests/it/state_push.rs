//! States that a person pushes by hand: a push replaces nothing in the store without a word.

use std::collections::BTreeMap;

use apply::push::{PushError, Pushed, push};
use engine::journal::{CallId, Record};
use engine::state::Snapshot;
use state::{Loaded, Store};

use crate::world::{DISK, World, holder};

const TWO: &str = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n\
                   [resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";

async fn loaded(world: &World) -> Loaded {
    world.store.load().await.unwrap()
}

/// Returns the stored state, with the journal folded in.
async fn pulled(world: &World) -> Snapshot {
    let Loaded { snapshot, records, .. } = loaded(world).await;
    let mut snapshot = snapshot.unwrap();
    for record in &records {
        snapshot.fold(record).unwrap();
    }
    snapshot
}

async fn forced(world: &World, new: &Snapshot, force: bool) -> Result<Pushed, PushError> {
    push(&world.store, &holder(), new, force).await
}

/// Returns a world in which `disk.d` was applied, and then a run for `disk.e` was killed after `writes`
/// writes, and the state that was pulled before that run.
async fn killed_after(writes: u64) -> (World, Snapshot) {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let file = pulled(&world).await;
    world.store.fail_after(Some(writes));
    world.apply(TWO).await.unwrap_err();
    world.store.fail_after(None);
    (world, file)
}

#[tokio::test]
async fn records_of_a_killed_run_are_not_put_away() {
    let mut tried = 0;
    for writes in 1..20 {
        let (world, file) = killed_after(writes).await;
        let (before, now) = (loaded(&world).await, pulled(&world).await);
        if now == file {
            continue;
        }
        tried += 1;
        let refused = forced(&world, &file, false).await;
        assert!(matches!(refused, Err(PushError::WouldLose(_))), "{writes}: {refused:?}");
        let after = loaded(&world).await;
        assert_eq!((after.snapshot, after.records), (before.snapshot, before.records));
        // A state that was pulled after the kill has all records, so its push is accepted.
        assert_eq!(forced(&world, &now, false).await.unwrap(), Pushed::default());
        world.apply(TWO).await.unwrap();
        assert_eq!(world.cloud.names("disk").len(), 2, "{writes}");
        if tried == 3 {
            return;
        }
    }
    panic!("only {tried} kills left records");
}

#[tokio::test]
async fn by_force_calls_under_way_are_carried_over() {
    for writes in 1..20 {
        let (world, file) = killed_after(writes).await;
        let now = pulled(&world).await;
        if now.pending.is_empty() {
            continue;
        }
        let pushed = forced(&world, &file, true).await.unwrap();
        let after = pulled(&world).await;
        let call = *now.pending.keys().next().unwrap();
        assert!(after.pending.contains_key(&call), "{after:?}");
        let told = format!("call {call} about disk.e, whose outcome is not known");
        assert_eq!(pushed, Pushed { carried: vec![told], lost: Vec::new() });
        world.apply(TWO).await.unwrap();
        assert_eq!(world.cloud.names("disk").len(), 2, "what it made is not an orphan");
        return;
    }
    panic!("no kill left a call under way");
}

#[tokio::test]
async fn by_force_what_is_lost_is_named_and_kept_among_the_older_states() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let file = pulled(&world).await;
    world.apply(TWO).await.unwrap();
    let now = pulled(&world).await;
    assert!(forced(&world, &file, false).await.unwrap_err().to_string().contains("it is older"));
    let id = &now.entries[&"disk.e".parse().unwrap()].current.as_ref().unwrap().id;
    let pushed = forced(&world, &file, true).await.unwrap();
    assert_eq!(pushed.lost, [format!("disk.e ({id})")]);
    let after = pulled(&world).await;
    assert!(after.serial > now.serial && after.next_call == now.next_call, "{after:?}");
}

#[tokio::test]
async fn another_state_takes_its_place_by_force_only() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let now = pulled(&world).await;
    let other = Snapshot { lineage: "another".to_owned(), entries: BTreeMap::default(), ..now };
    let refused = forced(&world, &other, false).await.unwrap_err().to_string();
    assert!(refused.starts_with("the file is of lineage another, and"), "{refused}");
    assert_eq!(forced(&world, &other, true).await.unwrap().lost.len(), 1);
    assert_eq!(pulled(&world).await.lineage, "another");
}

#[tokio::test]
async fn where_nothing_was_saved_a_state_is_put_in_place() {
    let (from, to) = (World::new(), World::new());
    from.apply(DISK).await.unwrap();
    let file = pulled(&from).await;
    assert_eq!(forced(&to, &file, false).await.unwrap(), Pushed::default());
    let after = pulled(&to).await;
    assert_eq!(Snapshot { serial: file.serial, ..after.clone() }, file);
    assert!(after.serial > file.serial);
}

#[tokio::test]
async fn a_journal_that_contradicts_itself_is_replaced_by_force_only() {
    let world = World::new();
    world.apply(DISK).await.unwrap();
    let file = pulled(&world).await;
    let wrong = Record::Doubted { call: CallId(99), reason: "none".to_owned(), accepted: false };
    let store = state::memory::MemoryStore::with(&file, &[wrong]);
    let world = World { store, ..world };
    let refused = forced(&world, &file, false).await;
    assert!(matches!(refused, Err(PushError::Journal(_))), "{refused:?}");
    forced(&world, &file, true).await.unwrap();
    assert!(loaded(&world).await.records.is_empty());
}
