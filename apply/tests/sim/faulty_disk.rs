//! A disk under the file store: real files, a model of what would survive a power cut, and operations that
//! fail.
//!
//! The model: a sync of a file makes its content durable, and a sync of a folder makes the names in it
//! durable. Names change in the order in which they were changed. Nothing else is durable. Content that a
//! failed sync was to save never becomes durable, though every later sync reports success, and though
//! everybody can read the content until the power goes. After a cut, content that was not synced is there, or
//! not, or in part, or as zeros.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use state::disk::{Disk, RealDisk};
use tempfile::TempDir;

use crate::bugs::Bug;
use crate::rng::Rng;
use crate::runner::Runner;

/// A folder, and the model of what in it is durable.
pub(crate) struct FaultyDisk {
    folder: TempDir,
    model: Mutex<Model>,
}

#[derive(Default)]
struct Model {
    nodes: Vec<Node>,
    /// The node of each file by its inode number. The number of a file that is gone is given to a new file.
    by_inode: BTreeMap<u64, usize>,
    durable: BTreeMap<PathBuf, usize>,
    /// The changes of names that no sync of a folder has made durable: the new name, the old name (None for a
    /// new file), and the node.
    pending: Vec<(PathBuf, Option<PathBuf>, usize)>,
}

/// The content of a file, as the disk has it (`durable`) and as the kernel has it (`latest`).
#[derive(Clone, Default)]
struct Node {
    durable: Vec<u8>,
    latest: Vec<u8>,
    /// True if a sync failed: the kernel has forgotten what it was to save.
    forgotten: bool,
}

impl Model {
    fn add(&mut self, inode: u64, node: Node) -> usize {
        self.nodes.push(node);
        self.by_inode.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn node(&mut self, file: &File) -> io::Result<&mut Node> {
        let inode = file.metadata()?.ino();
        let known = self.by_inode.get(&inode).copied();
        let node = known.unwrap_or_else(|| self.add(inode, Node::default()));
        Ok(&mut self.nodes[node])
    }

    fn named(&self, path: &Path) -> io::Result<usize> {
        Ok(self.by_inode[&path.metadata()?.ino()])
    }
}

impl FaultyDisk {
    pub(crate) fn new() -> Arc<Self> {
        let builder = tempfile::Builder::new();
        // A folder in memory, if the system has one: the model alone decides what is durable.
        let folder = builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap();
        Arc::new(Self { folder, model: Mutex::default() })
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns the contents of the files in the folder.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        let Ok(files) = std::fs::read_dir(self.folder()) else { return Vec::new() };
        files.filter_map(|file| std::fs::read(file.ok()?.path()).ok()).collect()
    }

    /// Replaces the path of the folder in a text: the path differs from run to run, and traces must not.
    pub(crate) fn without_path(&self, text: &str) -> String {
        text.replace(&self.folder().display().to_string(), "STATE")
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    /// Cuts the power, and restores it. No process has the folder open.
    pub(crate) fn cut(&self, rng: &mut Rng) {
        let mut model = self.model();
        let kept = rng.index(model.pending.len() + 1);
        let mut names = std::mem::take(&mut model.durable);
        for (name, from, node) in model.pending.drain(..).take(kept) {
            if let Some(from) = from {
                names.remove(&from);
            }
            names.insert(name, node);
        }
        let folder = self.folder();
        for place in [folder.clone(), folder.join("backups")] {
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                // The model leaves the lock alone: the lock is a hint, and has a sector of its own.
                if entry.path().is_file() && entry.file_name() != "lock" {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
        }
        let nodes = std::mem::take(&mut model.nodes);
        model.by_inode.clear();
        for (name, node) in names {
            let content = nodes[node].after_the_cut(rng);
            std::fs::write(&name, &content).unwrap();
            let inode = name.metadata().unwrap().ino();
            let node = model
                .add(inode, Node { durable: content.clone(), latest: content, forgotten: false });
            model.durable.insert(name, node);
        }
    }
}

impl Node {
    fn after_the_cut(&self, rng: &mut Rng) -> Vec<u8> {
        let (durable, latest) = (&self.durable, &self.latest);
        let luck = rng.below(4);
        if latest.len() <= durable.len() {
            return if luck == 0 { durable.clone() } else { latest.clone() };
        }
        let mut content = latest.clone();
        match luck {
            0 => content.truncate(durable.len()),
            1 => content.truncate(durable.len() + rng.index(latest.len() - durable.len())),
            2 => content[durable.len()..].fill(0),
            _ => {}
        }
        content
    }
}

/// The disk as one process sees it.
pub(crate) struct DiskOfRunner {
    pub(crate) disk: Arc<FaultyDisk>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) bug: Option<Bug>,
}

fn no_space<T>() -> io::Result<T> {
    Err(io::Error::new(ErrorKind::StorageFull, "no space left on device"))
}

impl DiskOfRunner {
    /// Performs one operation. It may fail before or after its effect, or be the last thing that the process
    /// does.
    fn act<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let runner = &self.runner;
        if runner.counts_boundary("a disk operation") {
            return no_space();
        }
        let rate = runner.rates.write_fails / 2;
        if runner.strikes("disk before", rate) {
            return no_space();
        }
        let value = work()?;
        if runner.strikes("disk after", rate) { no_space() } else { Ok(value) }
    }
}

impl DiskOfRunner {
    /// Appends the torn end of a file to the copy that takes its place, if that is the bug.
    fn keep_torn_end(&self, copy: &Path, original: &Path) -> io::Result<()> {
        if self.bug != Some(Bug::TornEndsStay) || !original.exists() {
            return Ok(());
        }
        let (old, new) = (std::fs::read(original)?, std::fs::read(copy)?);
        let Some(torn) = old.strip_prefix(&*new) else { return Ok(()) };
        RealDisk.write(&RealDisk.open(copy)?, torn)?;
        let mut model = self.disk.model();
        let copied = model.named(copy)?;
        model.nodes[copied].latest.extend_from_slice(torn);
        model.nodes[copied].durable.extend_from_slice(torn);
        Ok(())
    }
}

impl Disk for DiskOfRunner {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        RealDisk.read(path, most)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.act(|| RealDisk.make_folder(path))
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        self.act(|| {
            let file = RealDisk.create(path)?;
            let (inode, mut model) = (file.metadata()?.ino(), self.disk.model());
            let node = model.add(inode, Node::default());
            model.pending.push((path.to_owned(), None, node));
            Ok(file)
        })
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        self.act(|| RealDisk.open(path))
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let put = |bytes: &[u8]| {
            RealDisk.write(file, bytes)?;
            self.disk.model().node(file)?.latest.extend_from_slice(bytes);
            Ok(())
        };
        let runner = &self.runner;
        if runner.counts_boundary("a write")
            || runner.strikes("disk within", runner.rates.write_fails / 2)
        {
            let part = runner.with_rng(|rng| rng.index(bytes.len() + 1));
            put(&bytes[..part])?;
            return if self.bug == Some(Bug::ShortWritesAreWrites) { Ok(()) } else { no_space() };
        }
        self.act(|| put(bytes))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        if self.bug == Some(Bug::NoSync) {
            return Ok(());
        }
        let synced = self.act(|| {
            let mut model = self.disk.model();
            let node = model.node(file)?;
            if !node.forgotten {
                node.durable.clone_from(&node.latest);
            }
            Ok(())
        });
        if synced.is_err() {
            self.disk.model().node(file)?.forgotten = true;
        }
        synced
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|| {
            RealDisk.link(from, to)?;
            let mut model = self.disk.model();
            let node = model.named(to)?;
            model.pending.push((to.to_owned(), None, node));
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|| {
            self.keep_torn_end(from, to)?;
            RealDisk.rename(from, to)?;
            let mut model = self.disk.model();
            let node = model.named(to)?;
            model.pending.push((to.to_owned(), Some(from.to_owned()), node));
            Ok(())
        })
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        if self.bug == Some(Bug::NoFolderSync) {
            return Ok(());
        }
        self.act(|| {
            let mut model = self.disk.model();
            // The names of one folder become durable; changes of others stay in their order.
            let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut model.pending)
                .into_iter()
                .partition(|(name, ..)| name.parent() == Some(path));
            model.pending = others;
            for (name, from, node) in own {
                if let Some(from) = from {
                    model.durable.remove(&from);
                }
                model.durable.insert(name, node);
            }
            Ok(())
        })
    }
}
