//! Sources: the places of modules, and of descriptors in repositories.

use std::fmt;

use super::super::{RawBlock, diagnostics as say};
use super::diagnostics as told;
use crate::address::Name;
use crate::config::checker::place;
use crate::config::constant::constant;
use crate::diagnostics::{Diagnostic, Span};
use crate::digest::Digest;
use crate::secret_words::has_url_password;
use crate::value::Value;

/// The source of a module: a folder, beside the spec or in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleSource {
    /// The repository; none for a folder beside the spec.
    pub repository: Option<Repository>,
    /// The folder, relative to the folder of the spec or to the root of the repository, without `.` in it;
    /// empty for that folder itself.
    pub folder: String,
}

/// A git repository at a tag, branch or commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    /// The address that `git` gets.
    pub url: String,
    /// The tag, the branch, or the hash of a commit.
    pub revision: String,
}

impl Repository {
    /// Reads the revision for an address; `at` is the place of the address.
    fn of(raw: &RawBlock, url: &str, at: Span) -> Result<Self, Box<Diagnostic>> {
        if has_url_password(url) {
            return Err(told::secret_in_source(at).into());
        }
        let Some((revision, _)) = text(raw, "revision")? else {
            return Err(told::no_revision(at).into());
        };
        Ok(Self { url: url.to_owned(), revision: revision.to_string() })
    }

    /// Returns the folder that the repository is fetched into, relative to the folder of the spec.
    pub fn place(&self) -> String {
        let digest = Digest::of(format!("{}@{}", self.url, self.revision).as_bytes()).to_string();
        format!(".plumb/modules/{}", digest.rsplit(':').next().unwrap_or_default())
    }
}

/// The descriptor of a provider in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorInRepository {
    /// The repository.
    pub repository: Repository,
    /// The path of the file in it.
    pub file: String,
    /// The place of the address in the spec.
    pub at: Span,
}

impl DescriptorInRepository {
    /// The keys of a `[provider.NAME]` block that describe the descriptor's source.
    pub const KEYS: [&str; 3] = ["source", "revision", "file"];

    /// Reads the source that a `[provider.NAME]` block gives; none if it is no plain address of a repository.
    pub fn of(raw: &RawBlock) -> Result<Option<Self>, Box<Diagnostic>> {
        let Some(Ok(Some((source, at)))) = raw.items.get("source").map(|_| text(raw, "source"))
        else {
            return Ok(None);
        };
        if !is_repository(&source) {
            return Ok(None);
        }
        let repository = Repository::of(raw, &source, at)?;
        let Some(file) = inside(raw, "file")?.filter(|file| !file.is_empty()) else {
            return Err(told::no_file(at).into());
        };
        Ok(Some(Self { repository, file, at }))
    }

    /// Returns the path of the descriptor's text, relative to the folder of the spec.
    pub fn place(&self) -> String {
        joined(&self.repository.place(), &self.file)
    }
}

/// Returns true if a source is the address of a repository.
pub fn is_repository(source: &str) -> bool {
    source.contains("://") || source.starts_with("git@")
}

impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repository {
            None => f.write_str(&self.folder),
            Some(Repository { url, revision }) => write!(f, "{url}@{revision}//{}", self.folder),
        }
    }
}

impl ModuleSource {
    /// Reads the source that a `[module.NAME]` block gives; `from` is the source of the document with the
    /// block.
    pub fn of(raw: &RawBlock, from: &Self) -> Result<Self, Box<Diagnostic>> {
        let Some((source, at)) = text(raw, "source")? else {
            return Err(say::missing_key("this module", "source", raw.header).into());
        };
        let revision = text(raw, "revision")?;
        if source.starts_with("./")
            || source.starts_with("../")
            || &*source == "."
            || &*source == ".."
        {
            if let Some((_, at)) = revision {
                return Err(told::revision_of_a_folder(at).into());
            }
            let folder = joined(&from.folder, &source);
            if from.repository.is_some() && folder.starts_with("..") {
                return Err(told::outside_its_repository(at).into());
            }
            return Ok(Self { repository: from.repository.clone(), folder });
        }
        if !is_repository(&source) {
            return Err(told::no_source(&source, at).into());
        }
        let repository = Repository::of(raw, &source, at)?;
        let folder = inside(raw, "folder")?.unwrap_or_default();
        Ok(Self { repository: Some(repository), folder })
    }

    /// Returns the folder of the module's text, relative to the folder of the spec. A repository is fetched
    /// into Plumb's own folder.
    pub fn place(&self) -> String {
        match &self.repository {
            None => self.folder.clone(),
            Some(repository) => joined(&repository.place(), &self.folder),
        }
    }
}

/// Returns the path under a key, which must not leave its repository.
fn inside(raw: &RawBlock, key: &str) -> Result<Option<String>, Box<Diagnostic>> {
    let Some((path, at)) = text(raw, key)? else { return Ok(None) };
    let path = joined("", &path);
    if path.starts_with("..") {
        return Err(told::outside_its_repository(at).into());
    }
    Ok(Some(path))
}

/// The plain text under a key, with its place.
fn text(raw: &RawBlock, key: &str) -> Result<Option<(Name, Span)>, Box<Diagnostic>> {
    let Some(item) = raw.items.get(key) else { return Ok(None) };
    let at = place(item.value.span.file, item.value.expr.range);
    match constant(&item.value.expr) {
        Some(Value::String(text)) => Ok(Some((text, item.value.span))),
        _ => Err(say::not_constant(&format!("`{key}`"), at).into()),
    }
}

/// Returns the path of something relative to a folder, without `.`, and with `..` only at its beginning.
pub(super) fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            (part, _) => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn paths_are_joined_without_detours() {
        for (folder, path, expected) in [
            ("", "./modules/x", "modules/x"),
            ("modules/x", "../y", "modules/y"),
            ("modules/x", "../../../y", "../y"),
            ("../common", "./a//b/.", "../common/a/b"),
            ("", ".", ""),
        ] {
            assert_eq!(joined(folder, path), expected, "{folder} {path}");
        }
    }
}
