//! A state that moves to another store, cut short.

use std::time::Duration;

use apply::migrate::{MigrateError, Migrated, migrate};
use engine::plan::input::Options;
use engine::state::Snapshot;
use state::file::FileStore;
use state::{Store, StoreError};
use tempfile::TempDir;

use crate::world::{DISK, World, holder};

const TWO: &str = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n\
                   [resource.disk.e]\nname = \"e\"\nsize = 10\nzone = \"eu\"\n";

/// An old place in which `disk.d` was applied, and a new one to which that was copied by a command
/// that was killed before it marked the old one as left.
async fn cut_short() -> (World, TempDir, FileStore, FileStore) {
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
async fn a_move_that_was_cut_short_is_finished_after_the_new_place_was_used() {
    let (world, _root, old, new) = cut_short().await;
    world.apply_on(&new, TWO, &Options::default()).await.unwrap();
    let there = new.load().await.unwrap().snapshot;
    assert_eq!(migrate(&old, &new, &holder()).await.unwrap(), Migrated::Moved(1));
    assert_eq!(new.load().await.unwrap().snapshot, there);
    assert!(matches!(old.load().await, Err(StoreError::Moved { .. })));
    assert_eq!(migrate(&old, &new, &holder()).await.unwrap(), Migrated::Before);
}

#[tokio::test]
async fn where_both_places_were_used_since_neither_is_given_up() {
    let (world, _root, old, new) = cut_short().await;
    world.apply_on(&new, TWO, &Options::default()).await.unwrap();
    world.apply_on(&old, "", &Options::default()).await.unwrap();
    let refused = migrate(&old, &new, &holder()).await;
    assert!(matches!(refused, Err(MigrateError::AnotherVersion { .. })), "{refused:?}");
    assert!(old.load().await.is_ok() && new.load().await.is_ok());
}
