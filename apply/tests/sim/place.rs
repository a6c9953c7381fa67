//! The place of a schedule's state: in memory, or in the file store on a simulated disk.

use std::sync::Arc;

use state::file::FileStore;
use state::memory::MemoryStore;
use state::{Loaded, Store, StoreError};

use crate::bugs::Bug;
use crate::faulty_disk::{DiskOfRunner, FaultyDisk};
use crate::runner::Runner;
use crate::schedule::StoreKind;
use crate::secrets;

/// The place of the state for all runs of a schedule.
pub(crate) enum Place {
    Memory(MemoryStore),
    Disk(Arc<FaultyDisk>),
}

impl Place {
    pub(crate) fn new(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Memory => Self::Memory(MemoryStore::new()),
            StoreKind::File => Self::Disk(FaultyDisk::new()),
        }
    }

    /// Returns the store as the process of a runner sees it.
    pub(crate) fn of(&self, runner: &Arc<Runner>, bug: Option<Bug>) -> Box<dyn Store> {
        match self {
            Self::Memory(store) => Box::new(store.clone()),
            Self::Disk(disk) => {
                let own = DiskOfRunner { disk: disk.clone(), runner: runner.clone(), bug };
                Box::new(FileStore::on(Arc::new(own), disk.folder()))
            }
        }
    }

    /// Loads what the store holds, as a reader finds it while no run is active.
    pub(crate) async fn load(&self) -> Result<Loaded, StoreError> {
        match self {
            Self::Memory(store) => store.load().await,
            Self::Disk(disk) => FileStore::new(disk.folder()).load().await,
        }
    }

    /// Returns true if anything that the store keeps contains a secret.
    pub(crate) async fn shows_a_secret(&self) -> bool {
        match self {
            Self::Memory(store) => {
                let loaded = store.load().await.unwrap();
                let kept = serde_json::to_vec(&(loaded.snapshot, loaded.records)).unwrap();
                secrets::shows(&kept)
            }
            Self::Disk(disk) => disk.files().iter().any(|file| secrets::shows(file)),
        }
    }

    pub(crate) fn without_path(&self, text: &str) -> String {
        match self {
            Self::Disk(disk) => disk.without_path(text),
            Self::Memory(_) => text.to_owned(),
        }
    }

    /// Lets another run take over from one that stands still. Only the store in memory has a way to do so.
    pub(crate) fn drive_out(&self) {
        if let Self::Memory(store) = self {
            store.drive_out();
        }
    }
}
