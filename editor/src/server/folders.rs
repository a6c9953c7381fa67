//! The folders with specs of which a file is open.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::config::is_spec_file;
use engine::diagnostics::Diagnostics;
use lsp_server::Request;

use super::reading::Read;
use crate::language::{Known, diagnostics};
use crate::workspace::{OpenTexts, PlannedChanges};

/// The folders, by path.
#[derive(Default)]
pub(super) struct Folders {
    folders: BTreeMap<PathBuf, Folder>,
}

/// A folder.
#[derive(Default)]
pub(super) struct Folder {
    /// The spec as it was read last.
    pub(super) known: Option<Known>,
    /// The mistakes that the rules of resource types found, where these were checked.
    pub(super) rules: Option<Diagnostics>,
    /// The number of changes so far.
    pub(super) change: u64,
    /// The number of changes that `known` has seen.
    read: u64,
    /// The reason why the folder cannot be read.
    failure: Option<String>,
    /// The requests that wait for the spec to be read, each with the file that it is about.
    pub(super) waiting: Vec<(Request, PathBuf)>,
    /// The files that diagnostics were shown of.
    published: BTreeSet<PathBuf>,
}

/// Returns true if a file is part of the spec of its folder.
fn is_spec(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_spec_file)
}

impl Folders {
    /// The folder of a file of a spec.
    pub(super) fn of(&mut self, path: &Path) -> Option<&mut Folder> {
        if !is_spec(path) {
            return None;
        }
        self.at(path.parent()?)
    }

    pub(super) fn at(&mut self, place: &Path) -> Option<&mut Folder> {
        self.folders.get_mut(place)
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Folder> {
        self.folders.values_mut()
    }

    pub(super) fn places(&self) -> Vec<PathBuf> {
        self.folders.keys().cloned().collect()
    }

    /// Adds the folder of a file of a spec; returns it if it is a new one.
    pub(super) fn open(&mut self, path: &Path) -> Option<PathBuf> {
        let place = path.parent().filter(|_| is_spec(path))?;
        let is_new = !self.folders.contains_key(place);
        self.folders.entry(place.to_owned()).or_default();
        is_new.then(|| place.to_owned())
    }

    /// The folders that read a file: its own, those that have it as a file below them, and those that call it as a module.
    pub(super) fn reading(&self, path: &Path) -> Vec<PathBuf> {
        let reads = |(place, folder): &(&PathBuf, &Folder)| {
            let calls = folder.known.as_ref().is_some_and(|known| {
                known.latest.sources().iter().any(|source| Path::new(&source.path) == path)
            });
            calls || path.starts_with(place)
        };
        self.folders.iter().filter(reads).map(|(place, _)| place.clone()).collect()
    }

    /// Drops the folder of a file that was closed, if no other of it is open; returns the files whose diagnostics go.
    pub(super) fn close(&mut self, path: &Path, open: &OpenTexts) -> Option<BTreeSet<PathBuf>> {
        let place = path.parent().filter(|_| is_spec(path))?;
        let is_open = open.keys().any(|other| is_spec(other) && other.parent() == Some(place));
        if is_open {
            return None;
        }
        self.folders.remove(place).map(|folder| folder.published)
    }
}

impl Folder {
    /// Returns true if `known` is the spec as the editor shows it.
    pub(super) fn is_current(&self) -> bool {
        self.read == self.change && (self.known.is_some() || self.failure.is_some())
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, change: u64, read: Read) {
        self.read = change;
        // What the rules found is about the text before.
        self.rules = None;
        match read.spec {
            Ok(latest) => {
                let before = self.known.take().map(|known| known.whole);
                let is_whole = !latest.document().torn;
                let whole = before.filter(|_| !is_whole).unwrap_or_else(|| latest.clone());
                self.known = Some(Known { latest, whole, state: read.state, changes: None });
                self.failure = None;
            }
            Err(reason) => self.failure = Some(reason),
        }
    }

    /// Takes what the rules found; returns true if it is about the spec as the editor shows it.
    pub(super) fn found(&mut self, change: u64, rules: Option<Diagnostics>) -> bool {
        let is_latest = change == self.read && change == self.change;
        if is_latest {
            self.rules = rules;
        }
        is_latest
    }

    /// Takes the changes that a plan of the spec would make.
    pub(super) fn planned(&mut self, change: u64, changes: Arc<dyn PlannedChanges>) {
        if let (Some(known), true) = (&mut self.known, change == self.read) {
            known.changes = Some(changes);
        }
    }

    /// The diagnostics of each file; none of those whose diagnostics go, and none of open files without any.
    pub(super) fn shown(
        &mut self,
        place: &Path,
        open: &OpenTexts,
    ) -> BTreeMap<PathBuf, Vec<lsp_types::Diagnostic>> {
        let first = place.join("plumb.toml");
        let mut shown: BTreeMap<PathBuf, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
        if let Some(reason) = &self.failure {
            shown.insert(first, vec![failed(reason)]);
        } else if let Some(known) = &self.known {
            let mut all = known.latest.diagnostics().clone();
            all.extend(self.rules.clone().unwrap_or_default());
            all.sort();
            shown = diagnostics::by_file(&all, known.latest.sources(), &first);
        }
        for path in open.keys().filter(|path| is_spec(path) && path.parent() == Some(place)) {
            shown.entry(path.clone()).or_default();
        }
        let now: BTreeSet<PathBuf> = shown.keys().cloned().collect();
        for path in self.published.difference(&now) {
            shown.insert(path.clone(), Vec::new());
        }
        self.published = now;
        shown
    }
}

fn failed(reason: &str) -> lsp_types::Diagnostic {
    lsp_types::Diagnostic {
        severity: Some(lsp_types::DiagnosticSeverity::ERROR),
        source: Some("plumb".to_owned()),
        message: reason.to_owned(),
        ..lsp_types::Diagnostic::default()
    }
}
