//! Moves of a state to another store, killed at every write: there are never two stores that can be used,
//! nothing is lost, and a second move finishes the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apply::migrate::{MigrateError, Migrated, migrate};
use async_trait::async_trait;
use engine::digest::Digest;
use engine::journal::Record;
use engine::plan::input::Options;
use engine::state::Snapshot;
use state::file::FileStore;
use state::mark::{Mark, Purpose};
use state::memory::MemoryStore;
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};
use tempfile::TempDir;

use crate::world::{DISK, World, holder};

const TWO: &str = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n\
                   [resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";

/// A process that is killed at a write of a move: `left` counts the writes down to it. The process dies after
/// the write if `behind` is true, and before it otherwise.
struct Killed {
    left: AtomicU64,
    behind: bool,
}

impl Killed {
    fn at(write: u64, behind: bool) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(write), behind })
    }

    fn was_reached(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    async fn act<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let dead = || StoreError::Failed { what: "killed".to_owned(), source: None };
        match self.left.load(Ordering::Relaxed) {
            0 => Err(dead()),
            left => {
                self.left.store(left - 1, Ordering::Relaxed);
                if left > 1 {
                    return work.await;
                }
                if self.behind {
                    work.await?;
                }
                Err(dead())
            }
        }
    }
}

/// A store that fails once that process is killed.
struct Mortal<'a> {
    store: &'a dyn Store,
    killed: Arc<Killed>,
}

#[async_trait]
impl Store for Mortal<'_> {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        assert_eq!(purpose, Purpose::Move);
        let held = self.store.lock_for(purpose, holder, wait).await?;
        Ok(Box::new(MortalHeld { held, killed: self.killed.clone() }))
    }

    async fn restore(&self, _: &Holder, _: &Snapshot) -> Result<Version, StoreError> {
        panic!("a move replaces nothing by force")
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        self.store.past(serial).await
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

struct MortalHeld {
    held: Box<dyn LockedStore>,
    killed: Arc<Killed>,
}

#[async_trait]
impl LockedStore for MortalHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.killed.act(self.held.initialise(snapshot)).await
    }

    async fn append(&mut self, _: &[Record]) -> Result<(), StoreError> {
        panic!("a move makes no record")
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        self.killed.act(self.held.save(snapshot, expected)).await
    }

    async fn set_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        self.killed.act(self.held.set_mark(mark)).await
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}

/// Returns pairs of empty stores, in each combination of a file and memory.
fn pairs(root: &TempDir) -> Vec<(Box<dyn Store>, Box<dyn Store>)> {
    let count = std::fs::read_dir(root.path()).unwrap().count();
    let folder = root.path().join(count.to_string());
    std::fs::create_dir(&folder).unwrap();
    let file = |name: &str| -> Box<dyn Store> { Box::new(FileStore::new(folder.join(name))) };
    let memory = || -> Box<dyn Store> { Box::new(MemoryStore::new()) };
    vec![(memory(), file("a")), (file("b"), memory()), (file("c"), file("d")), (memory(), memory())]
}

/// Returns true if a run can lock the store and finds a state there. Panics if the lock is refused for
/// another reason than a move.
async fn is_live(store: &dyn Store) -> bool {
    match store.lock(&holder(), Duration::ZERO).await {
        Ok(held) => held.loaded().snapshot.is_some(),
        Err(StoreError::Moved { .. } | StoreError::Arriving { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

async fn snapshot_of(store: &dyn Store) -> Snapshot {
    apply::session::fold_if_any(&store.load().await.unwrap()).unwrap().unwrap()
}

/// Returns the states that can be read in the two stores. The first of them is the one that counts.
async fn snapshots(old: &dyn Store, new: &dyn Store) -> Vec<Snapshot> {
    let mut seen = Vec::new();
    for store in [old, new] {
        if store.load().await.is_ok_and(|loaded| loaded.snapshot.is_some()) {
            seen.push(snapshot_of(store).await);
        }
    }
    seen
}

/// Returns a world whose state is in `old`. If `torn` is true, the journal has a record that no snapshot has.
async fn applied(old: &dyn Store, torn: bool) -> World {
    let world = World::new();
    world.apply_on(old, DISK, &Options::default()).await.unwrap();
    if torn {
        let mut held = old.lock(&holder(), Duration::ZERO).await.unwrap();
        let plan = Digest::of(b"plan");
        let opened = Record::RunOpened { run: "killed".to_owned(), serial: 1, plan, at_ms: 1 };
        held.append(&[opened]).await.unwrap();
    }
    world
}

/// Kills a move at one write, and checks both stores. Returns true if the move reached that write.
async fn cut_short(
    world: &World,
    (old, new): (&dyn Store, &dyn Store),
    (write, behind): (u64, bool),
) -> bool {
    let before = snapshots(old, new).await.swap_remove(0).entries;
    let killed = Killed::at(write, behind);
    let mortal = |store| Mortal { store, killed: killed.clone() };
    let done = migrate(&mortal(old), &mortal(new), &holder()).await;
    if !killed.was_reached() {
        assert!(matches!(done, Ok(Migrated::Moved(_))), "{done:?}");
        return false;
    }
    done.unwrap_err();
    let case = format!("write {write}, behind it: {behind}");
    let live = (is_live(old).await, is_live(new).await);
    assert!(live != (true, true), "{case}: two places can be used");
    // At least one store shows the whole state to a reader.
    let seen = snapshots(old, new).await;
    assert!(!seen.is_empty() && seen[0].entries == before, "{case}");
    // A store that can be used is used, before somebody moves the state again.
    for (store, is_live) in [(old, live.0), (new, live.1)] {
        if is_live {
            world.apply_on(store, TWO, &Options::default()).await.unwrap();
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_at_any_write_leaves_one_place_and_is_finished() {
    let root = tempfile::tempdir().unwrap();
    for torn in [false, true] {
        for pair in 0..pairs(&root).len() {
            let mut points = 0;
            for (write, behind) in (1..).flat_map(|write| [(write, false), (write, true)]) {
                let (old, new) = pairs(&root).swap_remove(pair);
                let world = applied(&*old, torn).await;
                if !cut_short(&world, (&*old, &*new), (write, behind)).await {
                    break;
                }
                points += 1;
                finish(&world, &*old, &*new).await;
            }
            assert_eq!(points, if torn { 10 } else { 8 }, "pair {pair}");
        }
    }
}

/// Moves the state again, and checks that only the new store can be used and that it has the whole state.
async fn finish(world: &World, old: &dyn Store, new: &dyn Store) {
    let done = migrate(old, new, &holder()).await.unwrap();
    assert!(matches!(done, Migrated::Moved(_) | Migrated::Before), "{done:?}");
    assert_eq!((is_live(old).await, is_live(new).await), (false, true));
    assert!(matches!(old.load().await, Err(StoreError::Moved { .. })));
    assert_eq!(migrate(old, new, &holder()).await.unwrap(), Migrated::Before);
    // The state has every live object, and no other.
    world.apply_on(new, TWO, &Options::default()).await.unwrap();
    assert_eq!(snapshot_of(new).await.entries.len(), 2);
    assert_eq!(world.cloud.names("disk").len(), 2);
}

/// A state moves back to its first store, over the rest that was left there. The move is killed at any write,
/// and finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_moves_back_to_where_it_was() {
    let root = tempfile::tempdir().unwrap();
    for is_used in [false, true] {
        for pair in 0..pairs(&root).len() {
            for (write, behind) in (1..).flat_map(|write| [(write, false), (write, true)]) {
                let (first, second) = pairs(&root).swap_remove(pair);
                let world = applied(&*first, false).await;
                migrate(&*first, &*second, &holder()).await.unwrap();
                if is_used {
                    world.apply_on(&*second, TWO, &Options::default()).await.unwrap();
                }
                let is_cut = cut_short(&world, (&*second, &*first), (write, behind)).await;
                finish(&world, &*second, &*first).await;
                if !is_cut {
                    assert!(write > 3, "pair {pair}: it ended at write {write}");
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_left_is_overwritten_by_no_other_state() {
    let root = tempfile::tempdir().unwrap();
    let [left, second, other] =
        ["left", "second", "other"].map(|name| FileStore::new(root.path().join(name)));
    let world = applied(&left, false).await;
    migrate(&left, &second, &holder()).await.unwrap();
    let another = Snapshot { lineage: "another".to_owned(), ..snapshot_of(&second).await };
    other.restore(&holder(), &another).await.unwrap();
    let refused = migrate(&other, &left, &holder()).await;
    assert!(matches!(refused, Err(MigrateError::AnotherState { .. })), "{refused:?}");
    assert!(is_live(&other).await && !is_live(&left).await);
    finish(&world, &second, &left).await;
}

/// A move is killed again and again, and runs use the old store in between, while it can be used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_may_be_killed_many_times() {
    let root = tempfile::tempdir().unwrap();
    for (old, new) in pairs(&root) {
        let world = applied(&*old, true).await;
        for point in [(1, true), (2, true), (1, true), (2, false), (1, false), (2, true)] {
            if !cut_short(&world, (&*old, &*new), point).await {
                break;
            }
            world.apply_on(&*old, DISK, &Options::default()).await.ok();
        }
        finish(&world, &*old, &*new).await;
    }
}

/// Two stores have one name, as a tunnel may lead to different places. The state was copied to one of them
/// before it moved to the other. The copy is not put in use because of its name.
#[tokio::test]
async fn a_move_goes_on_only_to_the_place_that_it_began_with() {
    let root = tempfile::tempdir().unwrap();
    let (old, wrong, right) =
        (FileStore::new(root.path().join("old")), MemoryStore::new(), MemoryStore::new());
    let world = applied(&old, false).await;
    let attempt = async |new: &MemoryStore, run: &str, write: u64| {
        let killed = Killed::at(write, true);
        let mortal = |store| Mortal { store, killed: killed.clone() };
        let holder = Holder { run: run.to_owned(), ..holder() };
        migrate(&mortal(&old), &mortal(new), &holder).await
    };
    // The first move is killed after its copy. The second, to the other store, is killed after it left the
    // old store.
    attempt(&wrong, "first", 2).await.unwrap_err();
    attempt(&right, "second", 3).await.unwrap_err();
    assert!(!is_live(&old).await && !is_live(&right).await);
    let refused = attempt(&wrong, "third", 99).await;
    assert!(matches!(refused, Err(MigrateError::AnotherPlace { .. })), "{refused:?}");
    assert!(!is_live(&wrong).await);
    finish(&world, &old, &right).await;
    let refused = attempt(&wrong, "fourth", 99).await;
    assert!(matches!(refused, Err(MigrateError::AnotherPlace { .. })), "{refused:?}");
    assert!(!is_live(&wrong).await && is_live(&right).await);
}

#[tokio::test]
async fn what_arrived_is_overwritten_by_no_other_state() {
    let (world, root) = (World::new(), tempfile::tempdir().unwrap());
    let [old, new, other] =
        ["old", "new", "other"].map(|name| FileStore::new(root.path().join(name)));
    world.apply_on(&old, DISK, &Options::default()).await.unwrap();
    let killed = Killed::at(3, true);
    let mortal = |store| Mortal { store, killed: killed.clone() };
    migrate(&mortal(&old), &mortal(&new), &holder()).await.unwrap_err();
    let arrived = snapshot_of(&new).await;
    // A later version of this state is refused, and so is another state.
    let mut later = arrived.clone();
    later.serial += 7;
    other.restore(&holder(), &later).await.unwrap();
    let refused = migrate(&other, &new, &holder()).await;
    assert!(matches!(refused, Err(MigrateError::AnotherVersion { .. })), "{refused:?}");
    later.lineage = "another".to_owned();
    other.restore(&holder(), &later).await.unwrap();
    let refused = migrate(&other, &new, &holder()).await;
    assert!(matches!(refused, Err(MigrateError::AnotherState { .. })), "{refused:?}");
    assert_eq!(snapshot_of(&new).await, arrived);
    // A state that is still arriving cannot be moved on.
    let refused = migrate(&new, &FileStore::new(root.path().join("next")), &holder()).await;
    let arriving = matches!(refused, Err(MigrateError::Store(StoreError::Arriving { .. })));
    assert!(arriving, "{refused:?}");
    // The old store is gone: a push by force puts the state that arrived in use.
    std::fs::remove_dir_all(root.path().join("old")).unwrap();
    apply::push::push(&new, &holder(), &arrived, false).await.unwrap_err();
    apply::push::push(&new, &holder(), &arrived, true).await.unwrap();
    world.apply_on(&new, DISK, &Options::default()).await.unwrap();
    assert_eq!(world.cloud.names("disk").len(), 1);
}

/// Returns a store in which `disk.d` was applied, and another one to which a person has copied that state.
async fn copied_by_hand() -> (World, TempDir, FileStore, FileStore) {
    let (world, root) = (World::new(), tempfile::tempdir().unwrap());
    let (old, new) =
        (FileStore::new(root.path().join("old")), FileStore::new(root.path().join("new")));
    world.apply_on(&old, DISK, &Options::default()).await.unwrap();
    let snapshot: Snapshot = old.load().await.unwrap().snapshot.unwrap();
    let mut held = new.lock(&holder(), Duration::ZERO).await.unwrap();
    held.initialise(&snapshot).await.unwrap();
    held.release().await.unwrap();
    (world, root, old, new)
}

#[tokio::test]
async fn where_both_places_were_used_since_neither_is_given_up() {
    let (world, _root, old, new) = copied_by_hand().await;
    world.apply_on(&new, TWO, &Options::default()).await.unwrap();
    world.apply_on(&old, "", &Options::default()).await.unwrap();
    let refused = migrate(&old, &new, &holder()).await;
    assert!(matches!(refused, Err(MigrateError::AnotherVersion { .. })), "{refused:?}");
    assert!(old.load().await.is_ok() && new.load().await.is_ok());
}
