//! The folders of a worker: network volumes, and the cache of models.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fleet::Wanted;
use super::mounts::{Mount, is_usable};
use crate::own_files::make_folder;

/// The path at which programs of the real service look for the network volume.
const VOLUME_PATH: &str = "/runpod-volume";
/// The folder of an endpoint's volumes if there are several. Each volume has its id as name.
const VOLUMES_PATH: &str = "/runpod-volumes";
/// The mount path of a template that sets none. It is the usual one of pods.
const POD_PATH: &str = "/workspace";
/// The folder of the cache of models in the network volume, as on the real service.
const CACHE: &str = "huggingface-cache";

/// The folders of a worker.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The ids of the volumes, and their folders on this machine.
    volumes: Vec<(String, PathBuf)>,
    /// The models that the endpoint refers to, and the folder of their cache; `None` without
    /// models.
    models: Option<(String, PathBuf)>,
    /// The mounts, with the paths at which the worker shall find the folders. Parents come first.
    pub(super) mounts: Vec<Mount>,
}

impl Places {
    /// Returns the folders of a worker, and makes those that do not exist.
    pub(super) fn make(wanted: &Wanted, data: &Path) -> std::io::Result<Places> {
        let data = std::path::absolute(data)?;
        let mut places = Places::default();
        let ids = wanted.endpoint.volumes();
        if !ids.is_empty() {
            make_folder(&data.join("volumes"))?;
        }
        for id in ids {
            let folder = data.join("volumes").join(id);
            make_folder(&folder)?;
            places.volumes.push((id.to_owned(), folder));
        }
        let references = &wanted.endpoint.model_references;
        if !references.is_empty() {
            let folder = data.join("models");
            make_folder(&folder)?;
            places.models = Some((references.join(","), folder));
        }
        places.mounts = places.mounts(wanted);
        Ok(places)
    }

    /// Returns the folders of a pod: one volume, with the path at which the pod shall find it.
    pub(crate) fn of_pod(id: &str, folder: PathBuf, path: &Path) -> Places {
        let mount = Mount { source: folder.clone(), target: path.to_owned() };
        let mounts = if is_usable(path) { vec![mount] } else { Vec::new() };
        Places { volumes: vec![(id.to_owned(), folder)], models: None, mounts }
    }

    /// Returns true if there is something to mount.
    pub(crate) fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    fn mounts(&self, wanted: &Wanted) -> Vec<Mount> {
        let mut mounts = Vec::new();
        let mut add = |source: &Path, target: PathBuf| {
            mounts.push(Mount { source: source.to_owned(), target });
        };
        if let Some((_, first)) = self.volumes.first() {
            add(first, VOLUME_PATH.into());
            let path = wanted.template.as_ref().map(|template| template.volume_mount_path.as_str());
            let path = Path::new(path.unwrap_or(VOLUME_PATH));
            // This path may be the default, which nobody has chosen. A folder of this machine must
            // not be covered by it.
            let is_in_the_way = path == Path::new(POD_PATH) && path.exists();
            if path != Path::new(VOLUME_PATH) && is_usable(path) && !is_in_the_way {
                add(first, path.to_owned());
            }
        }
        if self.volumes.len() > 1 {
            for (id, folder) in &self.volumes {
                add(folder, Path::new(VOLUMES_PATH).join(id));
            }
        }
        if let Some((_, folder)) = &self.models {
            add(folder, Path::new(VOLUME_PATH).join(CACHE));
        }
        mounts
    }

    /// Returns the variables that a template may replace.
    pub(super) fn defaults(&self, are_mounted: bool) -> Vec<(&'static str, OsString)> {
        let Some((references, folder)) = &self.models else { return Vec::new() };
        let cache = Path::new(VOLUME_PATH).join(CACHE);
        let first = references.split(',').next().unwrap_or("");
        let name = first.strip_prefix("https://huggingface.co/").unwrap_or(first);
        vec![
            ("HF_HOME", if are_mounted { cache.into() } else { folder.clone().into() }),
            ("MODEL_NAME", name.into()),
            ("RUNPOD_MODEL_REFERENCES", references.into()),
        ]
    }

    /// Returns the variables that no template replaces.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Some((id, folder)) = self.volumes.first() else { return Vec::new() };
        let all = std::env::join_paths(self.volumes.iter().map(|(_, folder)| folder));
        vec![
            ("RUNPOD_VOLUME_ID", id.into()),
            ("RUNPOD_VOLUME", folder.into()),
            ("PLUMB_VOLUME", folder.into()),
            ("PLUMB_VOLUMES", all.unwrap_or_default()),
        ]
    }

    /// Returns the mounts of a container. Each folder is also mounted at its path on this machine,
    /// because variables contain that path.
    pub(crate) fn container_mounts(&self) -> Vec<Mount> {
        let folders = self.volumes.iter().map(|(_, folder)| folder);
        let folders = folders.chain(self.models.iter().map(|(_, folder)| folder));
        let same = |folder: &PathBuf| Mount { source: folder.clone(), target: folder.clone() };
        self.mounts.iter().cloned().chain(folders.map(same)).collect()
    }

    /// Links the first volume to its path, unless something else has that path. Returns the new
    /// link.
    pub(super) fn link(&self) -> Option<PathBuf> {
        let mount = self.mounts.iter().find(|mount| mount.target == Path::new(VOLUME_PATH))?;
        symlink(&mount.source, &mount.target).ok().map(|()| mount.target.clone())
    }
}
