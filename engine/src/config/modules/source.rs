//! Sources: where the text of a module is.

use std::fmt;

use super::super::{RawBlock, diagnostics as say};
use super::diagnostics as told;
use crate::address::Name;
use crate::config::checker::place;
use crate::config::constant::constant;
use crate::diagnostics::{Diagnostic, Span};
use crate::digest::Digest;
use crate::value::Value;

/// The source of a module: a folder, beside the spec or in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleSource {
    /// The repository; none for a folder beside the spec.
    pub repository: Option<Repository>,
    /// The folder, relative to the one of the spec or to the root of the repository, without `.` in it; empty for these
    /// themselves.
    pub folder: String,
}

/// A git repository at a tag or revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    /// The address that `git` is given.
    pub url: String,
    /// The tag, or the hash of a commit.
    pub revision: String,
}

impl Repository {
    /// The folder that it is fetched into, relative to the one of the spec.
    pub fn place(&self) -> String {
        let digest = Digest::of(format!("{}@{}", self.url, self.revision).as_bytes()).to_string();
        format!(".plumb/modules/{}", digest.rsplit(':').next().unwrap_or_default())
    }
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
    /// Reads the source that a `[module.NAME]` block gives; `from` is the source of the document that it stands in.
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
        let is_repository = source.contains("://") || source.starts_with("git@");
        if !is_repository {
            return Err(told::no_source(&source, at).into());
        }
        if source.split_once("://").is_some_and(|(_, rest)| holds_a_password(rest)) {
            return Err(told::secret_in_source(at).into());
        }
        let Some((revision, _)) = revision else { return Err(told::no_revision(at).into()) };
        let folder = match text(raw, "folder")? {
            None => String::new(),
            Some((folder, at)) => {
                let folder = joined("", &folder);
                if folder.starts_with("..") {
                    return Err(told::outside_its_repository(at).into());
                }
                folder
            }
        };
        let repository = Repository { url: source.to_string(), revision: revision.to_string() };
        Ok(Self { repository: Some(repository), folder })
    }

    /// The folder that its text is read from, relative to the one of the spec. A repository is fetched into Plumb's own.
    pub fn place(&self) -> String {
        match &self.repository {
            None => self.folder.clone(),
            Some(repository) => joined(&repository.place(), &self.folder),
        }
    }
}

fn holds_a_password(rest: &str) -> bool {
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// The plain text under a key, with its place.
fn text(raw: &RawBlock, key: &str) -> Result<Option<(Name, Span)>, Box<Diagnostic>> {
    let Some(item) = raw.items.get(key) else { return Ok(None) };
    let at = place(item.value.span.file, item.value.expr.range);
    match constant(&item.value.expr) {
        Some(Value::String(text)) => Ok(Some((text, item.value.span))),
        _ => Err(say::not_constant(&format!("`{key}` of a module"), at).into()),
    }
}

/// Returns a path below a folder, without `.` and with `..` only at its beginning.
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
