mod cases;
mod crashes;
mod faults;
mod links;
mod sealed;

use engine::journal::Record;

use std::fs::File;
use std::path::Path;

use super::files::{Identity, identity_at, identity_of};
use super::*;
use crate::conformance::{self, records, snapshot};

/// A folder for one test.
struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(".plumb")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path()).unwrap();
        std::fs::write(self.file(name), bytes).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.file(name)).unwrap();
    }

    /// Returns a store that does not wait for the disk: only a power cut loses data that is not synced.
    fn store(&self) -> FileStore {
        FileStore::on(faults::Faulty::never(), self.path())
    }

    /// Returns another folder with the same content.
    fn copied(&self) -> Self {
        let copy = Self::new();
        for place in [self.path(), self.file("backups")].into_iter().filter(|path| path.exists()) {
            let to = copy.path().join(place.strip_prefix(self.path()).unwrap());
            std::fs::create_dir(&to).unwrap();
            let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap());
            for file in entries.filter(|entry| entry.path().is_file()) {
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        copy
    }

    async fn lock(&self) -> Box<dyn LockedStore> {
        self.store().lock(&holder(), Duration::ZERO).await.unwrap()
    }

    async fn load(&self) -> Loaded {
        self.store().load().await.unwrap()
    }

    /// Returns the error of `load`, without the folder's name, and checks that `lock` has the same.
    async fn refused(&self) -> String {
        let refused = |error| match error {
            StoreError::Suspicious { what, help } | StoreError::Missing { what, help } => {
                (what, help)
            }
            other => panic!("{other:?}"),
        };
        let (what, help) = refused(self.store().load().await.unwrap_err());
        let locked = self.store().lock(&holder(), Duration::ZERO).await.map(|_| ());
        assert_eq!(what, refused(locked.unwrap_err()).0);
        let folder = self.path().display().to_string();
        format!("{what}\n{help}").replace(&folder, ".plumb")
    }

    /// Returns a store with a history: serial 2, an older one among the backups, two records since.
    async fn lived() -> Self {
        let folder = Self::new();
        let mut held = folder.lock().await;
        let first = held.initialise(&snapshot(0)).await.unwrap();
        held.append(&records(0..2)).await.unwrap();
        let second = held.save(&snapshot(1), &first).await.unwrap();
        held.append(&records(2..3)).await.unwrap();
        held.save(&snapshot(2), &second).await.unwrap();
        held.append(&records(3..4)).await.unwrap();
        held.append(&records(4..5)).await.unwrap();
        held.release().await.unwrap();
        folder
    }
}

fn holder() -> Holder {
    Holder { run: "test".to_owned(), command: "apply".to_owned(), pid: 1, ..Holder::default() }
}

/// The content of a store, for comparisons.
type Content = (Option<Snapshot>, Vec<Record>);

fn content(loaded: Loaded) -> Content {
    (loaded.snapshot, loaded.records)
}

/// One operation of a run on a store.
#[derive(Clone, Copy, Debug)]
enum Act {
    Initialise,
    Append(u64, u64),
    Save(u64),
}

/// A run with every kind of operation.
const SCRIPT: [Act; 9] = [
    Act::Initialise,
    Act::Append(0, 2),
    Act::Append(2, 3),
    Act::Save(1),
    Act::Append(3, 5),
    Act::Append(5, 30),
    Act::Save(2),
    Act::Save(3),
    Act::Append(30, 31),
];

impl Act {
    /// Returns the content of the store afterwards.
    fn after(self, before: &Content) -> Content {
        match self {
            Self::Initialise => (Some(snapshot(0)), Vec::new()),
            Self::Append(from, to) => {
                (before.0.clone(), [&before.1[..], &records(from..to)].concat())
            }
            Self::Save(serial) => (Some(snapshot(serial)), Vec::new()),
        }
    }

    async fn run(
        self,
        held: &mut dyn LockedStore,
        version: &mut Version,
    ) -> Result<(), StoreError> {
        match self {
            Self::Initialise => *version = held.initialise(&snapshot(0)).await?,
            Self::Append(from, to) => held.append(&records(from..to)).await?,
            Self::Save(serial) => *version = held.save(&snapshot(serial), version).await?,
        }
        Ok(())
    }
}

/// The content of a folder before a person restores a state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    Lived,
    OtherLineage,
    Torn,
    Without(&'static str),
    Garbage(&'static str),
    GarbageAlone,
}

const BEFORE: [Before; 9] = [
    Before::Nothing,
    Before::Lived,
    Before::OtherLineage,
    Before::Torn,
    Before::Without("state.json"),
    Before::Without("journal"),
    Before::Garbage("state.json"),
    Before::Garbage("journal"),
    Before::GarbageAlone,
];

impl Before {
    async fn folder(self) -> Folder {
        let garbage = "garbage, more than a header has, so that it is no torn one";
        if self == Self::Nothing {
            return Folder::new();
        }
        let folder = Folder::lived().await;
        match self {
            Self::Nothing | Self::Lived | Self::OtherLineage => {}
            Self::Torn => {
                let journal = folder.read("journal");
                folder.write("journal", &journal[..journal.len() - 3]);
            }
            Self::Without(name) => folder.remove(name),
            Self::Garbage(name) => folder.write(name, garbage),
            Self::GarbageAlone => {
                std::fs::remove_dir_all(folder.path()).unwrap();
                std::fs::create_dir(folder.path()).unwrap();
                folder.write("journal", garbage);
            }
        }
        folder
    }

    /// Returns the snapshot that is restored.
    fn restored(self) -> Snapshot {
        match self {
            Self::OtherLineage => Snapshot { lineage: "lineage-2".to_owned(), ..snapshot(1) },
            _ => snapshot(1),
        }
    }
}

/// Returns the content of a folder; none if it is refused.
async fn outcome(folder: &Folder) -> Option<Content> {
    match folder.store().load().await {
        Ok(loaded) => Some(content(loaded)),
        Err(StoreError::Suspicious { .. } | StoreError::Missing { .. }) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns true if a folder has its old content, or the restored one.
fn is_old_or_new(found: Option<&Content>, old: Option<&Content>, new: &Snapshot) -> bool {
    let is_new = |(state, records): &Content| {
        let state = state.as_ref();
        records.is_empty()
            && state.is_some_and(|it| *it == Snapshot { serial: it.serial, ..new.clone() })
    };
    found == old || found.is_some_and(is_new)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let root = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::run(|| {
        count.set(count.get() + 1);
        let folder = root.path().join(count.get().to_string());
        Box::new(move || Box::new(FileStore::new(folder.clone())))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_with_a_key() {
    let root = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::run(|| {
        count.set(count.get() + 1);
        let folder = root.path().join(count.get().to_string());
        Box::new(move || Box::new(FileStore::new(folder.clone()).sealed(sealed::key('a'))))
    })
    .await;
}
