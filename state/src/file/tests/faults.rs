//! Every file operation fails once, or from some moment on, before or after its effect or in the middle.
//! Afterwards a fresh read finds the old or the new data, and everything that was acknowledged.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// The operation has no effect, and returns an error.
    Before,
    /// The operation writes half of its data, and returns an error.
    Within,
    /// The operation has its effect, and still returns an error.
    After,
}

/// The error number of a full disk.
const ENOSPC: i32 = 28;
/// The error numbers of interrupted calls, of a second name on another device, and of too many names.
const OTHERS: [i32; 3] = [4, 18, 31];

/// Fails at the `at`-th operation; with `forever`, at all later ones, too, as if the machine had stopped.
#[derive(Debug)]
pub(super) struct Faulty {
    at: u64,
    when: When,
    forever: bool,
    errno: i32,
    count: AtomicU64,
}

impl Faulty {
    fn new(at: u64, when: When, forever: bool) -> Arc<Self> {
        Self::saying(ENOSPC, at, when, forever)
    }

    fn saying(errno: i32, at: u64, when: When, forever: bool) -> Arc<Self> {
        Arc::new(Self { at, when, forever, errno, count: AtomicU64::new(0) })
    }

    pub(super) fn never() -> Arc<Self> {
        Self::new(u64::MAX, When::Before, false)
    }

    fn was_reached(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.at
    }

    fn act<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count < self.at || (count > self.at && !self.forever) {
            return work();
        }
        if count == self.at && self.when == When::After {
            work()?;
        }
        Err(io::Error::from_raw_os_error(self.errno))
    }
}

impl Disk for Faulty {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.act(|| RealDisk.read(path, most))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.act(|| RealDisk.make_folder(path))
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        self.act(|| RealDisk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        self.act(|| RealDisk.open(path))
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        if self.when == When::Within && self.count.load(Ordering::Relaxed) + 1 == self.at {
            RealDisk.write(file, &bytes[..bytes.len() / 2])?;
        }
        self.act(|| RealDisk.write(file, bytes))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        // A stopped process loses no data that the kernel has; `crashes` tests power cuts.
        self.act(|| file.metadata().map(drop))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|| RealDisk.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|| RealDisk.rename(from, to))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.act(|| path.metadata().map(drop))
    }
}

/// Runs the script until an operation fails; returns the acknowledged content, and the content that was being
/// written.
async fn run(folder: &Folder, disk: Arc<Faulty>) -> (Content, Option<Content>) {
    let store = FileStore::on(disk, folder.path());
    let mut done: Content = (None, Vec::new());
    let Ok(mut held) = store.lock(&holder(), Duration::ZERO).await else {
        return (done, None);
    };
    let mut version = Version::none();
    for act in SCRIPT {
        let next = act.after(&done);
        match act.run(&mut *held, &mut version).await {
            Ok(()) => done = next,
            Err(error) => {
                assert!(matches!(error, StoreError::Failed { source: Some(_), .. }), "{error:?}");
                assert_poisoned(&mut *held, &version).await;
                return (done, Some(next));
            }
        }
    }
    (done, None)
}

async fn assert_poisoned(held: &mut dyn LockedStore, version: &Version) {
    held.initialise(&snapshot(0)).await.unwrap_err();
    held.append(&records(90..91)).await.unwrap_err();
    held.save(&snapshot(99), version).await.unwrap_err();
}

async fn check(disk: Arc<Faulty>) -> bool {
    let case = format!("{disk:?}");
    let folder = Folder::new();
    let (done, next) = run(&folder, disk.clone()).await;
    let found = folder.store().load().await.unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = content(found);
    assert!(found == done || Some(&found) == next.as_ref(), "{case}: {found:#?}");

    // The next run continues from there.
    let mut held = folder.lock().await;
    assert_eq!(content(held.loaded().clone()), found, "{case}");
    assert_eq!(folder.read(".gitignore"), b"*\n", "{case}");
    if found.0.is_none() {
        held.initialise(&snapshot(0)).await.unwrap();
    }
    held.append(&records(50..51)).await.unwrap();
    drop(held);
    let after = folder.load().await.records;
    assert_eq!(after, [found.1, records(50..51)].concat(), "{case}");
    disk.was_reached()
}

#[tokio::test]
async fn whatever_fails_nothing_acknowledged_is_lost() {
    for forever in [false, true] {
        for when in [When::Before, When::Within, When::After] {
            let mut at = 1;
            while check(Faulty::new(at, when, forever)).await {
                at += 1;
            }
            assert!(at > 50, "only {at} operations were counted");
        }
    }
}

/// A rare error of the system, once, does not lose acknowledged data either. If a backup cannot get a second
/// name, it becomes a copy.
#[tokio::test]
async fn whatever_is_interrupted_or_has_no_second_name_nothing_acknowledged_is_lost() {
    for errno in OTHERS {
        for when in [When::Before, When::After] {
            let mut at = 1;
            while check(Faulty::saying(errno, at, when, false)).await {
                at += 1;
            }
            assert!(at > 50, "only {at} operations were counted");
        }
    }
}

/// The same is true if the run begins with a torn journal, or with one that was folded in already.
#[tokio::test]
async fn whatever_fails_when_a_killed_run_is_cleaned_up_nothing_is_lost() {
    for unfolded in [false, true] {
        let expected = if unfolded { records(3..5) } else { Vec::new() };
        for at in 1.. {
            let folder = after_a_kill(unfolded).await;
            let disk = Faulty::new(at, When::Within, false);
            let store = FileStore::on(disk.clone(), folder.path());
            let result = store.lock(&holder(), Duration::ZERO).await;
            drop(result);
            assert_eq!(folder.load().await.records, expected, "operation {at} fails");
            drop(folder.lock().await);
            assert_eq!(folder.load().await.records, expected, "operation {at} fails");
            if !disk.was_reached() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn whatever_fails_while_a_state_is_put_in_place_the_old_or_the_new_is_there() {
    let ways = [
        (When::Before, false),
        (When::Within, false),
        (When::After, false),
        (When::Before, true),
        (When::After, true),
    ];
    for before in BEFORE {
        let template = before.folder().await;
        for (when, forever) in ways {
            let mut at = 1;
            while check_restore(before, &template, (at, when, forever)).await {
                at += 1;
            }
            assert!(at > 10, "only {at} operations were counted");
        }
    }
}

async fn check_restore(before: Before, template: &Folder, fault: (u64, When, bool)) -> bool {
    let (folder, new) = (template.copied(), before.restored());
    let old = outcome(&folder).await;
    let disk = Faulty::new(fault.0, fault.1, fault.2);
    let store = FileStore::on(disk.clone(), folder.path());
    let done = store.restore(&holder(), &new).await;
    let case = format!("{before:?}, {fault:?}: {done:?}");
    let found = outcome(&folder).await;
    assert!(is_old_or_new(found.as_ref(), old.as_ref(), &new), "{case}: {found:#?}");
    assert!(done.is_err() || is_old_or_new(found.as_ref(), None, &new), "{case}: {found:#?}");
    // From there, a person can restore a state.
    folder.store().restore(&holder(), &new).await.unwrap();
    folder.lock().await.append(&records(0..1)).await.unwrap();
    disk.was_reached()
}

async fn after_a_kill(unfolded: bool) -> Folder {
    let folder = Folder::lived().await;
    let journal = folder.read("journal");
    if unfolded {
        folder.write("journal", [&journal[..], b"PLJ1torn"].concat());
    } else {
        let mut held = folder.lock().await;
        let version = held.loaded().version.clone();
        held.save(&snapshot(3), &version).await.unwrap();
        drop(held);
        folder.write("journal", journal);
    }
    folder
}

#[tokio::test]
async fn a_failed_sync_is_not_tried_again() {
    let folder = Folder::lived().await;
    let store = |disk| FileStore::on(disk, folder.path());
    // The lock makes two folders, reads three files, syncs two folders, opens the journal, reads it and
    // writes it again (five more operations); then the append writes and syncs.
    let disk = Faulty::new(16, When::Before, false);
    let mut held = store(disk.clone()).lock(&holder(), Duration::ZERO).await.unwrap();
    let error = held.append(&records(5..6)).await.unwrap_err();
    let text = error.to_string().replace(&folder.path().display().to_string(), ".plumb");
    assert_eq!(text, "cannot sync .plumb/journal");
    let error = held.append(&records(5..6)).await.unwrap_err();
    let text = error.to_string().replace(&folder.path().display().to_string(), ".plumb");
    assert_eq!(
        text,
        "nothing more is written, because an earlier write failed: cannot sync .plumb/journal"
    );
    assert_eq!(disk.count.load(Ordering::Relaxed), 16);
}
