//! The folders of pods in the data folder. Each pod has a disk for its container, and a volume if
//! it has one of its own.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::model::Pod;
use crate::ids;
use crate::own_files::make_folder;
use crate::workers::logs;
use crate::workers::volumes::Places;

/// Returns the folder of all pods.
fn all(data: &Path) -> PathBuf {
    data.join("pods")
}

/// Returns the folder of a pod.
pub(super) fn of(data: &Path, id: &str) -> PathBuf {
    all(data).join(id)
}

/// Returns the disk of the container of a pod.
fn disk(data: &Path, id: &str) -> PathBuf {
    of(data, id).join("disk")
}

/// The folders that the process of a pod gets.
pub(super) struct PodFolders {
    /// The disk of the container. It is empty at each start.
    pub(super) disk: PathBuf,
    /// The volume of the pod, with the path at which the process finds it.
    pub(super) places: Places,
}

/// Makes the folders of a pod for a start: the volume is kept, the disk is emptied.
pub(super) fn make(data: &Path, pod: &Pod) -> io::Result<PodFolders> {
    let data = std::path::absolute(data)?;
    make_folder(&data.join("logs"))?;
    make_folder(&all(&data))?;
    make_folder(&of(&data, &pod.id))?;
    let disk = disk(&data, &pod.id);
    remove(&disk)?;
    make_folder(&disk)?;
    let path = Path::new(&pod.container.volume_mount_path);
    let places = match &pod.network_volume_id {
        Some(id) => {
            make_folder(&data.join("volumes"))?;
            let folder = data.join("volumes").join(id);
            make_folder(&folder)?;
            Places::of_pod(id, folder, path)
        }
        None if pod.has_own_volume() => {
            let folder = of(&data, &pod.id).join("volume");
            make_folder(&folder)?;
            Places::of_pod(&pod.id, folder, path)
        }
        None => Places::default(),
    };
    Ok(PodFolders { disk, places })
}

/// Removes the disk of a pod that does not run any more.
pub(super) fn remove_disk(data: &Path, id: &str) -> io::Result<()> {
    remove(&disk(data, id))
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the folders and the logs of pods that are not known. Returns the ids of these pods.
pub(super) fn remove_others(data: &Path, known: &BTreeSet<String>) -> Vec<String> {
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(all(data)).into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
        // A folder whose name is not the id of a pod was not made by the service.
        if is_folder && ids::is_long(&id) && !known.contains(&id) && remove(&entry.path()).is_ok() {
            logs::remove(data, logs::POD, &id);
            removed.push(id);
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_pods_that_are_gone_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let (kept, gone) = (ids::worker(), ids::worker());
        for name in [kept.as_str(), gone.as_str(), "mine"] {
            std::fs::create_dir_all(of(data.path(), name).join("volume")).unwrap();
        }
        let known = BTreeSet::from([kept.clone()]);
        assert_eq!(remove_others(data.path(), &known), std::slice::from_ref(&gone));
        assert!(of(data.path(), &kept).exists() && of(data.path(), "mine").exists());
        assert!(!of(data.path(), &gone).exists());
    }
}
