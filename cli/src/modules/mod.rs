//! The places of modules, and of descriptors in repositories: which places may be read, where they are on
//! disk, and how `plumb init` fetches the repositories.

mod fetch;
mod lock;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine::config::modules::source::{DescriptorInRepository, Repository};
use engine::config::{Document, ModuleSource};

use self::lock::{Lock, digest};
use crate::error::CommandError;
use crate::folder::STATE_FOLDER;
use crate::output::Output;
use crate::spec_text::{self, inside};

/// The places of the modules of one spec.
pub(crate) struct Places<'a> {
    folder: &'a Path,
    /// The folder that must contain the modules beside the spec: the root of the git repository around the
    /// spec, else the folder of the spec.
    root: PathBuf,
    lock: Result<Lock, CommandError>,
    /// The repositories whose files were compared with the lock.
    proven: BTreeSet<Repository>,
}

impl<'a> Places<'a> {
    /// Returns the places for the modules of the spec in a folder.
    pub(crate) fn new(folder: &'a Path) -> Self {
        let own = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let is_repository = |path: &&Path| path.join(".git").exists();
        let root = own.ancestors().find(is_repository).map_or(own.clone(), Path::to_owned);
        Self { folder, root, lock: Lock::read(folder), proven: BTreeSet::new() }
    }

    /// Returns the folder of a module, in the form in which the user wrote the spec's folder, or why it
    /// cannot be read.
    pub(crate) fn of(&mut self, source: &ModuleSource) -> Result<PathBuf, String> {
        if let Some(repository) = &source.repository {
            self.prove(repository)?;
        }
        let place = inside(self.folder, source.place());
        let found =
            place.canonicalize().map_err(|error| format!("cannot read the folder: {error}"))?;
        if !found.is_dir() {
            return Err("it is not a folder".to_owned());
        }
        let root = match &source.repository {
            None => self.root.clone(),
            Some(repository) => {
                let root = inside(self.folder, repository.place());
                root.canonicalize().map_err(|error| format!("cannot read the folder: {error}"))?
            }
        };
        if found.starts_with(&root) {
            return Ok(place);
        }
        Err(match &source.repository {
            Some(_) => "it leads out of its repository".to_owned(),
            None if root.join(".git").exists() => format!(
                "it lies outside of {}, the root of the git repository that the spec is in",
                root.display()
            ),
            None => "it lies outside of the spec's folder, which is in no git repository: \
                     modules above the spec are read inside its repository only"
                .to_owned(),
        })
    }

    /// Compares the fetched files of a repository with the lock. The error says why the repository cannot be
    /// used.
    pub(crate) fn prove(&mut self, repository: &Repository) -> Result<(), String> {
        if self.proven.contains(repository) {
            return Ok(());
        }
        let lock = self.lock.as_ref().map_err(|error| error.message.clone())?;
        let place = inside(self.folder, repository.place());
        let (Some(locked), true) = (lock.get(repository), place.is_dir()) else {
            return Err("it was not fetched yet: run `plumb init`".to_owned());
        };
        let found = digest(&place).map_err(|error| format!("cannot read the folder: {error}"))?;
        if found != locked.digest {
            return Err("what was fetched is not what plumb.lock says: run `plumb init`".to_owned());
        }
        self.proven.insert(repository.clone());
        Ok(())
    }
}

/// Fetches the repositories of a spec's modules and descriptors, and writes `plumb.lock`. Returns their
/// number.
pub(crate) fn fetch(folder: &Path, output: &Output) -> Result<usize, CommandError> {
    let (mut lock, mut used) = (Lock::read(folder)?, BTreeSet::new());
    // The modules that a fetched module calls are known only after the fetch.
    while let Some(text) = spec_text::read(folder)? {
        let open: BTreeSet<Repository> =
            repositories(&text.document).difference(&used).cloned().collect();
        if open.is_empty() {
            break;
        }
        for repository in open {
            fetch_one(folder, &repository, &mut lock, output)?;
            used.insert(repository);
        }
        lock.write(folder)?;
    }
    if !used.is_empty() {
        lock.keep(&used);
        lock.write(folder)?;
    }
    Ok(used.len())
}

/// Returns the repositories of a document: those of its modules, which may call others, and those of its
/// descriptors.
fn repositories(document: &Document) -> BTreeSet<Repository> {
    let modules = engine::config::modules::sources(document).into_iter();
    let descriptors = document.providers.values();
    let descriptors = descriptors.filter_map(|raw| DescriptorInRepository::of(raw).ok().flatten());
    let descriptors = descriptors.map(|descriptor| descriptor.repository);
    modules.filter_map(|it| it.repository).chain(descriptors).collect()
}

/// Fetches one repository, unless it is there with the digest in the lock.
fn fetch_one(
    folder: &Path,
    repository: &Repository,
    lock: &mut Lock,
    output: &Output,
) -> Result<(), CommandError> {
    let place = inside(folder, repository.place());
    let locked = lock.get(repository).cloned();
    if let (Some(locked), Ok(found)) = (&locked, digest(&place))
        && locked.digest == found
    {
        return Ok(());
    }
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write {}", place.display()), &error)
    };
    let new = inside(folder, format!("{STATE_FOLDER}/modules/new-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&new));
    let fetched = fetch::fetch(repository, &new);
    let fetched = match (fetched, locked) {
        (Ok(fetched), Some(locked)) if fetched != locked => {
            let Repository { url, revision } = repository;
            let message = format!("{url} at {revision} is not what plumb.lock says");
            Err(CommandError::new(message).help(format!(
                "it was commit {} and is {} now; if that is right, remove its entry from plumb.lock and run `plumb init` again",
                locked.commit, fetched.commit
            )))
        }
        (fetched, _) => fetched,
    };
    let fetched = match fetched {
        Ok(fetched) => fetched,
        Err(error) => {
            drop(std::fs::remove_dir_all(&new));
            return Err(error);
        }
    };
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(fail)?;
    }
    std::fs::rename(&new, &place).map_err(fail)?;
    let Repository { url, revision } = repository;
    let line = format!("fetched {url} at {revision} (commit {})", fetched.commit);
    output.talk(&format!("{}\n", render::safe::text(&line)));
    lock.insert(repository.clone(), fetched);
    Ok(())
}
