//! The port of the language server: what it asks the shell, which has files, environment and state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::address::{Block, Name};
use engine::config::{Config, Document};
use engine::diagnostics::{Diagnostics, Sources};
use engine::schema::ProviderSchema;
use engine::state::Snapshot;

/// The texts that an editor has open, by path: they count in place of the files.
pub type OpenTexts = BTreeMap<PathBuf, Arc<str>>;

/// The shell. It is asked by one thread, which answers no requests meanwhile.
pub trait Workspace: Send {
    /// Reads and resolves the spec of a folder, without values for its variables. Source paths are absolute.
    ///
    /// # Errors
    ///
    /// Says why the folder cannot be read.
    fn read(&self, folder: &Path, open: &OpenTexts) -> Result<Arc<dyn Spec>, String>;

    /// The state of a folder, if it lies in files and can be read.
    fn state(&self, folder: &Path) -> Option<Arc<Snapshot>>;
}

/// A spec that was read and resolved, as far as that could be done.
pub trait Spec: Send + Sync {
    /// The files.
    fn sources(&self) -> &Sources;
    /// The syntax of them.
    fn document(&self) -> &Document;
    /// The meaning; empty where a file could not be read whole.
    fn config(&self) -> &Config;
    /// The schemas of the provider instances.
    fn providers(&self) -> &BTreeMap<Name, Arc<ProviderSchema>>;
    /// The mistakes.
    fn diagnostics(&self) -> &Diagnostics;
    /// The mistakes that only the rules of resource types find: checked once everything else is right.
    fn rules(&self) -> Diagnostics;
    /// The changes that the spec asks for, judged by a state alone; none where that cannot be said.
    fn changes(&self, state: &Snapshot) -> Option<Arc<dyn PlannedChanges>>;
}

/// The changes that a plan would make.
pub trait PlannedChanges: Send + Sync {
    /// The changes of the first instances of a block, at most `most`, each as Markdown; and the number of all of them.
    fn of_block(&self, block: &Block, most: usize) -> (Vec<String>, usize);
}
