//! `plumb.lock`: the digest of each repository that modules and descriptors come from. `plumb init` writes
//! the file, and every other command compares the fetched files with it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use engine::config::modules::source::Repository;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::spec_text::inside;

/// The name of the file, beside the spec.
const NAME: &str = "plumb.lock";
/// The first lines of the file.
const HEAD: &str = "# The content of the repositories that the spec uses. `plumb init` writes this file: commit it.\n\n";
/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// The content of `plumb.lock`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lock(BTreeMap<Repository, Locked>);

/// The commit and the files of a repository as they were fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locked {
    /// The commit that was fetched.
    pub(crate) commit: String,
    /// The digest of the names and contents of its files.
    pub(crate) digest: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Earlier versions wrote `module`.
    #[serde(default, rename = "repository", alias = "module")]
    repositories: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    source: String,
    revision: String,
    commit: String,
    digest: String,
}

impl Lock {
    /// Reads the lock file of a spec's folder. Without a file, returns an empty lock.
    pub(crate) fn read(folder: &Path) -> Result<Self, CommandError> {
        let path = inside(folder, NAME);
        let fail = |error: std::io::Error| {
            CommandError::caused(format_args!("cannot read {}", path.display()), &error)
        };
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(fail(error)),
            Ok(found) if found.len() > BYTES_MAX => {
                return Err(CommandError::new(format!("{} is larger than 1 MiB", path.display())));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&path).map_err(fail)?;
        let file: File = toml::from_str(&text).map_err(|error| {
            CommandError::new(format!("{} cannot be read: {}", path.display(), error.message()))
                .help("restore it from version control, or remove it and run `plumb init`")
        })?;
        let entry = |row: Row| {
            let repository = Repository { url: row.source, revision: row.revision };
            (repository, Locked { commit: row.commit, digest: row.digest })
        };
        Ok(Self(file.repositories.into_iter().map(entry).collect()))
    }

    /// Writes the lock file, completely or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), CommandError> {
        let row = |(repository, locked): (&Repository, &Locked)| Row {
            source: repository.url.clone(),
            revision: repository.revision.clone(),
            commit: locked.commit.clone(),
            digest: locked.digest.clone(),
        };
        let file = File { repositories: self.0.iter().map(row).collect() };
        let text = toml::to_string(&file).map_err(|error| CommandError::new(error.to_string()))?;
        let path = inside(folder, NAME);
        let fail = |error: std::io::Error| {
            CommandError::caused(format_args!("cannot write {}", path.display()), &error)
        };
        let temporary = inside(folder, format!("{NAME}.new"));
        std::fs::write(&temporary, format!("{HEAD}{text}")).map_err(fail)?;
        std::fs::rename(&temporary, &path).map_err(fail)
    }

    /// Returns the entry of a repository.
    pub(crate) fn get(&self, repository: &Repository) -> Option<&Locked> {
        self.0.get(repository)
    }

    /// Adds the entry of a repository.
    pub(crate) fn insert(&mut self, repository: Repository, locked: Locked) {
        self.0.insert(repository, locked);
    }

    /// Removes the repositories that the spec no longer uses.
    pub(crate) fn keep(&mut self, used: &std::collections::BTreeSet<Repository>) {
        self.0.retain(|repository, _| used.contains(repository));
    }
}

/// Returns the digest of a folder: of the paths and contents of its files, and of the targets of its links.
/// Leaves out folders named `.git`.
pub(crate) fn digest(folder: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    let mut files = BTreeMap::new();
    while let Some((path, name)) = open.pop() {
        for entry in std::fs::read_dir(&path)? {
            let entry = entry?;
            let own = entry.file_name().to_string_lossy().into_owned();
            let full = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && own != ".git" {
                open.push((entry.path(), full));
            } else if kind.is_symlink() {
                let to = std::fs::read_link(entry.path())?.to_string_lossy().into_owned();
                files.insert(full, (b'l', to.into_bytes()));
            } else if kind.is_file() {
                files.insert(full, (b'f', std::fs::read(entry.path())?));
            }
        }
    }
    for (name, (kind, content)) in files {
        hasher.update(&[kind]);
        for part in [name.as_bytes(), &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(format!("blake3:{}", hasher.finalize().to_hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Lock::read(folder.path()).unwrap(), Lock::default());
        let repository =
            Repository { url: "https://git.example/x.git".to_owned(), revision: "v1".to_owned() };
        let locked = Locked { commit: "c0ffee".to_owned(), digest: "blake3:00".to_owned() };
        let mut lock = Lock::default();
        lock.insert(repository.clone(), locked.clone());
        lock.write(folder.path()).unwrap();
        let read = Lock::read(folder.path()).unwrap();
        assert_eq!(read.get(&repository), Some(&locked));
        let text = std::fs::read_to_string(folder.path().join(NAME)).unwrap();
        let earlier = text.replace("[[repository]]", "[[module]]");
        assert!(earlier != text);
        std::fs::write(folder.path().join(NAME), earlier).unwrap();
        assert_eq!(Lock::read(folder.path()).unwrap(), lock);
        std::fs::write(folder.path().join(NAME), "[[module]]\nsource = 1\n").unwrap();
        assert!(Lock::read(folder.path()).unwrap_err().message.contains("cannot be read"));
    }

    #[test]
    fn a_digest_changes_with_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a", "x");
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let first = digest(folder.path()).unwrap();
        write(".git/HEAD", "anything");
        assert_eq!(digest(folder.path()).unwrap(), first);
        write("a", "y");
        let second = digest(folder.path()).unwrap();
        write("a", "x");
        write("b", "");
        let third = digest(folder.path()).unwrap();
        assert!(first != second && first != third && second != third);
    }
}
