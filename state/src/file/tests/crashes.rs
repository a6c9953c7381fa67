//! Power cuts at every moment of a run. Data that was not synced is there completely, partly, as zeros, or
//! not at all; names that were not synced are the old ones or the new ones. Each such folder is built and
//! opened.
//!
//! The model: a sync makes a file's content durable, a folder's sync makes the names in it durable, and names
//! change in the order of the operations. Nothing else is durable. Data that a failed sync was to save is
//! never durable, although the next sync reports a success.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[derive(Clone, Debug)]
enum Op {
    MakeFolder,
    Create(PathBuf, Identity),
    Write(Identity, Vec<u8>),
    Sync(Identity),
    FailedSync(Identity),
    Link(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    SyncFolder(PathBuf),
}

/// Performs every operation except syncs, and records it, with the content of the lock file at that time.
#[derive(Default)]
struct Tracing {
    ops: Mutex<Vec<(Op, Vec<u8>)>>,
    lock: PathBuf,
    syncs_fail: AtomicBool,
}

impl Tracing {
    fn note<T>(&self, result: io::Result<T>, op: impl FnOnce(&T) -> Op) -> io::Result<T> {
        let value = result?;
        let lock = std::fs::read(&self.lock).unwrap_or_default();
        self.ops.lock().unwrap().push((op(&value), lock));
        Ok(value)
    }

    fn len(&self) -> usize {
        self.ops.lock().unwrap().len()
    }
}

impl Disk for Tracing {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        RealDisk.read(path, most)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.note(RealDisk.make_folder(path), |()| Op::MakeFolder)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let file = RealDisk.create(path);
        self.note(file, |file| Op::Create(path.to_owned(), identity_of(file).unwrap()))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        RealDisk.open(path)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let identity = identity_of(file)?;
        self.note(RealDisk.write(file, bytes), |()| Op::Write(identity, bytes.to_vec()))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let identity = identity_of(file)?;
        if self.syncs_fail.load(Ordering::Relaxed) {
            self.note(Ok(()), |()| Op::FailedSync(identity))?;
            return Err(io::Error::other("the disk says no"));
        }
        self.note(Ok(()), |()| Op::Sync(identity))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(RealDisk.link(from, to), |()| Op::Link(from.to_owned(), to.to_owned()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(RealDisk.rename(from, to), |()| Op::Rename(from.to_owned(), to.to_owned()))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.note(Ok(()), |()| Op::SyncFolder(path.to_owned()))
    }
}

/// A file as the kernel and as the disk has it.
#[derive(Clone, Default)]
struct Node {
    durable: Vec<u8>,
    latest: Vec<u8>,
    /// True if a sync failed and the kernel has dropped the data.
    forgotten: bool,
}

/// The part of the unsynced writes that reached the disk.
#[derive(Clone, Copy, Debug)]
enum Luck {
    All,
    Nothing,
    Half,
    /// The length reached the disk, and the content did not.
    Zeros,
}

impl Node {
    fn after_the_cut(&self, luck: Luck) -> Vec<u8> {
        let (durable, latest) = (&self.durable, &self.latest);
        if latest.len() <= durable.len() {
            return if matches!(luck, Luck::Nothing) { durable.clone() } else { latest.clone() };
        }
        let mut content = latest.clone();
        match luck {
            Luck::All => {}
            Luck::Nothing => content.truncate(durable.len()),
            Luck::Half => content.truncate(usize::midpoint(durable.len(), latest.len())),
            Luck::Zeros => content[durable.len()..].fill(0),
        }
        content
    }
}

#[derive(Clone, Debug)]
enum NameOp {
    Name(PathBuf, usize),
    Rename(PathBuf, PathBuf),
}

/// The model of a disk.
#[derive(Clone, Default)]
struct Model {
    nodes: Vec<Node>,
    by_identity: BTreeMap<Identity, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    latest_names: BTreeMap<PathBuf, usize>,
    pending: Vec<NameOp>,
    folder: PathBuf,
    folder_is_durable: bool,
}

impl Model {
    /// Returns a disk on which everything in a folder is durable.
    fn of(folder: &Folder) -> Self {
        let mut model = Self { folder: folder.path(), ..Self::default() };
        model.folder_is_durable = folder.path().exists();
        for place in [folder.path(), folder.file("backups")] {
            for entry in std::fs::read_dir(place).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() || path.file_name().is_some_and(|name| name == "lock") {
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                let node = Node { durable: bytes.clone(), latest: bytes, forgotten: false };
                model.nodes.push(node);
                model.durable_names.insert(path, model.nodes.len() - 1);
            }
        }
        model.latest_names.clone_from(&model.durable_names);
        model
    }

    fn name(&mut self, op: NameOp) {
        apply(&mut self.latest_names, &op);
        self.pending.push(op);
    }

    fn act(&mut self, op: &Op) {
        match op {
            Op::MakeFolder => {}
            Op::Create(path, identity) => {
                self.nodes.push(Node::default());
                self.by_identity.insert(*identity, self.nodes.len() - 1);
                self.name(NameOp::Name(path.clone(), self.nodes.len() - 1));
            }
            Op::Write(identity, bytes) => {
                self.nodes[self.by_identity[identity]].latest.extend_from_slice(bytes);
            }
            Op::Sync(identity) => {
                let node = &mut self.nodes[self.by_identity[identity]];
                if !node.forgotten {
                    node.durable.clone_from(&node.latest);
                }
            }
            Op::FailedSync(identity) => self.nodes[self.by_identity[identity]].forgotten = true,
            Op::Link(from, to) => {
                let node = self.latest_names[from];
                self.name(NameOp::Name(to.clone(), node));
            }
            Op::Rename(from, to) => self.name(NameOp::Rename(from.clone(), to.clone())),
            Op::SyncFolder(path) if *path == self.folder => {
                self.durable_names.clone_from(&self.latest_names);
                self.pending.clear();
            }
            Op::SyncFolder(path) => {
                assert_eq!(Some(&**path), self.folder.parent());
                self.folder_is_durable = true;
            }
        }
    }

    /// Builds the folder that a cut leaves if the first `names` changes of names reached the disk.
    fn build(&self, into: &Folder, luck: Luck, names: usize, lock: &[u8]) {
        if !self.folder_is_durable && matches!(luck, Luck::Nothing) {
            return;
        }
        let mut map = self.durable_names.clone();
        self.pending[..names].iter().for_each(|op| apply(&mut map, op));
        std::fs::create_dir_all(into.file("backups")).unwrap();
        for (path, node) in &map {
            let path = into.path().join(path.strip_prefix(&self.folder).unwrap());
            std::fs::write(path, self.nodes[*node].after_the_cut(luck)).unwrap();
        }
        if !lock.is_empty() && !matches!(luck, Luck::Nothing) {
            into.write("lock", lock);
        }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, op: &NameOp) {
    match op {
        NameOp::Name(path, node) => {
            names.insert(path.clone(), *node);
        }
        NameOp::Rename(from, to) => {
            // A left-over name that was not durable cannot be renamed.
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
    }
}

/// Runs the script; returns the content that was acknowledged after each number of operations.
async fn traced(folder: &Folder) -> (Arc<Tracing>, Vec<(usize, Content)>) {
    let disk = Arc::new(Tracing { lock: folder.file("lock"), ..Tracing::default() });
    let store = FileStore::on(disk.clone(), folder.path());
    let mut done = vec![(0, (None, Vec::new()))];
    let mut version = Version::none();
    for (index, act) in SCRIPT.into_iter().enumerate() {
        // A new lock is taken at some points, as a new run does.
        let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
        let next = act.after(&done[index].1);
        act.run(&mut *held, &mut version).await.unwrap();
        done.push((disk.len(), next));
    }
    (disk, done)
}

#[tokio::test]
async fn a_power_cut_at_any_moment_leaves_the_old_or_the_new() {
    let folder = Folder::new();
    let (disk, done) = traced(&folder).await;
    let ops = disk.ops.lock().unwrap().clone();
    let mut model = Model { folder: folder.path(), ..Model::default() };
    let mut states = 0;
    for (index, (op, lock)) in ops.iter().enumerate() {
        model.act(op);
        let acknowledged = done.iter().rposition(|(at, _)| *at <= index + 1).unwrap();
        let allowed = &done[acknowledged..done.len().min(acknowledged + 2)];
        for names in 0..=model.pending.len() {
            for luck in [Luck::All, Luck::Nothing, Luck::Half, Luck::Zeros] {
                let cut = Folder::new();
                model.build(&cut, luck, names, lock);
                let case = format!("after {index} {op:.80?}, {luck:?}, {names} names");
                let found = cut.store().load().await.unwrap_or_else(|e| panic!("{case}: {e}"));
                let found = content(found);
                assert!(allowed.iter().any(|(_, one)| *one == found), "{case}: {found:#?}");
                assert_eq!(content(cut.lock().await.loaded().clone()), found, "{case}");
                states += 1;
            }
        }
    }
    assert!(states > 300, "only {states} states were tried");
}

#[tokio::test]
async fn a_power_cut_while_a_state_is_put_in_place_leaves_the_old_or_the_new() {
    let mut states = 0;
    for before in BEFORE {
        let (folder, new) = (before.folder().await, before.restored());
        let old = outcome(&folder).await;
        let mut model = Model::of(&folder);
        let disk = Arc::new(Tracing { lock: folder.file("lock"), ..Tracing::default() });
        FileStore::on(disk.clone(), folder.path()).restore(&holder(), &new).await.unwrap();
        let ops = disk.ops.lock().unwrap().clone();
        for (index, (op, lock)) in ops.iter().enumerate() {
            model.act(op);
            for names in 0..=model.pending.len() {
                for luck in [Luck::All, Luck::Nothing, Luck::Half, Luck::Zeros] {
                    let cut = Folder::new();
                    model.build(&cut, luck, names, lock);
                    let case = format!("{before:?}, {index} {op:.80?}, {luck:?}, {names} names");
                    let found = outcome(&cut).await;
                    assert!(
                        is_old_or_new(found.as_ref(), old.as_ref(), &new),
                        "{case}: {found:#?}"
                    );
                    // From each such folder, a person can reach a good state.
                    if matches!(luck, Luck::Half) {
                        cut.store().restore(&holder(), &new).await.unwrap();
                        let after = outcome(&cut).await;
                        assert!(
                            after.is_some() && is_old_or_new(after.as_ref(), None, &new),
                            "{case}"
                        );
                    }
                    states += 1;
                }
            }
        }
        let found = outcome(&folder).await;
        assert!(found.is_some() && is_old_or_new(found.as_ref(), None, &new), "{before:?}");
    }
    assert!(states > 500, "only {states} states were tried");
}

#[tokio::test]
async fn names_that_a_killed_run_left_are_made_durable_before_they_are_built_on() {
    let folder = Folder::new();
    folder.lock().await.initialise(&snapshot(0)).await.unwrap();
    let disk = Arc::new(Tracing { lock: folder.file("lock"), ..Tracing::default() });
    let store = FileStore::on(disk.clone(), folder.path());
    let held = store.lock(&holder(), Duration::ZERO).await.unwrap();
    let ops = disk.ops.lock().unwrap().clone();
    for path in [folder.path(), folder.path().parent().unwrap().to_owned()] {
        let synced = |op: &Op| matches!(op, Op::SyncFolder(own) if *own == path);
        assert!(ops.iter().any(|(op, _)| synced(op)), "{ops:?}");
    }
    drop(held);
}

/// If a sync fails and the kernel reports the next one as a success, a later save does not rely on data that
/// only the memory has.
#[tokio::test]
async fn frames_that_may_not_be_durable_are_written_anew_before_they_are_built_on() {
    let folder = Folder::new();
    let disk = Arc::new(Tracing { lock: folder.file("lock"), ..Tracing::default() });
    let store = FileStore::on(disk.clone(), folder.path());
    let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
    let version = held.initialise(&snapshot(0)).await.unwrap();
    disk.syncs_fail.store(true, Ordering::Relaxed);
    held.append(&records(0..2)).await.unwrap_err();
    drop(held);
    disk.syncs_fail.store(false, Ordering::Relaxed);
    let mut held = store.lock(&holder(), Duration::ZERO).await.unwrap();
    assert_eq!(held.loaded().records.len(), 2, "who reads them from memory");
    held.save(&snapshot(1), &version).await.unwrap();
    drop(held);
    let ops = disk.ops.lock().unwrap().clone();
    let mut model = Model { folder: folder.path(), ..Model::default() };
    for (index, (op, lock)) in ops.iter().enumerate() {
        model.act(op);
        for names in 0..=model.pending.len() {
            for luck in [Luck::All, Luck::Nothing, Luck::Half, Luck::Zeros] {
                let cut = Folder::new();
                model.build(&cut, luck, names, lock);
                let case = format!("after {index} {op:.80?}, {luck:?}, {names} names");
                cut.store().load().await.unwrap_or_else(|error| panic!("{case}: {error}"));
            }
        }
    }
}
