//! The bytes in each network volume, counted as `df` does: in the blocks that the files take.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::app::App;
use crate::ids;
use crate::resources::volume::Volume;
use crate::store::objects;

/// The bytes of a gigabyte of a volume.
const GIGABYTE: u64 = 1_000_000_000;

/// The bytes of a block. They do not depend on the block size of the file system.
const BLOCK: u64 = 512;

/// The pause after a count lasts at least so many times as long as the count.
const SHARE: u32 = 10;

/// The level of each volume when it was last counted.
#[derive(Default)]
pub(crate) struct Usage(Mutex<BTreeMap<String, Level>>);

/// The size of a volume, and the bytes in it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Level {
    /// The size of the volume, in gigabytes.
    pub(crate) size: u64,
    /// The bytes that the volume's files take.
    pub(crate) used: u64,
}

impl Level {
    /// Returns true if the files take more than the size of the volume.
    pub(crate) fn is_full(self) -> bool {
        self.used > self.size * GIGABYTE
    }
}

impl Usage {
    /// Returns the level of a volume when it was last counted; `None` if it has not been counted.
    pub(crate) fn level(&self, volume: &str) -> Option<Level> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(volume).copied()
    }

    /// Stores a new count. Returns the volumes that have become full.
    fn replace(&self, levels: BTreeMap<String, Level>) -> Vec<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_full = |id: &String| known.get(id).is_some_and(|level| level.is_full());
        let full = levels.iter().filter(|(_, level)| level.is_full()).map(|(id, _)| id);
        let newly_full = full.filter(|id| !was_full(id)).cloned().collect();
        *known = levels;
        newly_full
    }
}

/// Counts all volumes again and again, until the service drains.
pub(crate) async fn run(app: Arc<App>) {
    let mut pause = app.options.timing.volume_count;
    loop {
        tokio::select! {
            () = app.draining.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let Ok(volumes) = app.store.read(|conn| objects::list::<Volume>(conn, 0)).await else {
            continue;
        };
        let (folder, began) = (app.options.data.join("volumes"), Instant::now());
        let counting = tokio::task::spawn_blocking(move || {
            let known = volumes.into_iter().filter(|volume| ids::is_plain(&volume.id));
            let level = |volume: Volume| {
                let size = u64::try_from(volume.size).unwrap_or(0);
                let used = used(&folder.join(&volume.id));
                (volume.id, Level { size, used })
            };
            known.map(level).collect::<BTreeMap<_, _>>()
        });
        let Ok(levels) = counting.await else { continue };
        for id in app.usage.replace(levels) {
            app.warn(&format!("network volume {id} holds more than its size"));
        }
        pause = app.options.timing.volume_count.max(began.elapsed() * SHARE);
    }
}

/// Returns the bytes that the files below a folder take. Links are not followed, and a file with
/// several names counts once.
fn used(folder: &Path) -> u64 {
    let (mut open, mut seen, mut blocks) = (vec![folder.to_owned()], BTreeSet::new(), 0);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let is_new = found.nlink() < 2 || seen.insert((found.dev(), found.ino()));
            if found.is_dir() {
                open.push(entry.path());
                blocks += found.blocks();
            } else if is_new {
                blocks += found.blocks();
            }
        }
    }
    blocks * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_take_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/file");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, vec![1; 1_000_000]).unwrap();
        let once = used(folder.path());
        assert!((1_000_000..1_100_000).contains(&once), "{once}");
        std::fs::hard_link(&file, folder.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("elsewhere")).unwrap();
        assert!(used(folder.path()) < once + 10_000);
        assert_eq!(used(&folder.path().join("nothing")), 0);
    }
}
