//! `plumb lsp`: the language server, over stdin and stdout.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use editor::{OpenTexts, PlannedChanges, Spec, Workspace};
use engine::address::{Block, Name};
use engine::config::{Config, Document};
use engine::diagnostics::{Diagnostics, Sources};
use engine::plan::Plan;
use engine::schema::ProviderSchema;
use engine::state::Snapshot;

use render::markdown;
use render::view::{ChangeView, Changes, Place, Units};

use crate::args::SpecArgs;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::resolved::{self, Resolved};
use crate::{runtime, stored_state};

pub(crate) fn run() -> Result<Status, CommandError> {
    editor::serve(Box::<Shell>::default()).map_err(CommandError::new)?;
    Ok(Status::Done)
}

/// Access to files, environment and state, for the language server.
#[derive(Default)]
struct Shell {
    /// The state that was read last. So a large state is not read again for every key press.
    state: Mutex<Option<(Stamp, Option<Arc<Snapshot>>)>>,
}

/// The folder of a state, and the sizes and times of the files in it.
type Stamp = (std::path::PathBuf, Vec<(u64, Option<SystemTime>)>);

impl Workspace for Shell {
    fn read(&self, folder: &Path, open: &OpenTexts) -> Result<Arc<dyn Spec>, String> {
        let said = |error: CommandError| match error.help {
            Some(help) => format!("{}\nhelp: {help}", error.message),
            None => error.message,
        };
        let folder = Folder::new(folder, None).map_err(said)?.with_open(open.clone());
        let spec = SpecArgs { unset: true, ..SpecArgs::default() };
        let state = stored_state::no_state();
        let resolved = resolved::read_with_document(&folder, folder.path(), &spec, &state);
        Ok(Arc::new(resolved.map_err(said)?))
    }

    fn state(&self, folder: &Path) -> Option<Arc<Snapshot>> {
        let folder = Folder::new(folder, None).ok()?;
        // A remote state would be requested at every pause in typing.
        if state::open::is_remote(folder.settings().ok()?) {
            return None;
        }
        let stamp = stamp(&folder)?;
        let mut kept = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, state)) = kept.as_ref().filter(|(known, _)| *known == stamp) {
            debug_assert_eq!(known.0, folder.plumb());
            return state.clone();
        }
        let state = stored_state::read(&folder).ok().and_then(|stored| stored.snapshot);
        let state = state.map(Arc::new);
        *kept = Some((stamp, state.clone()));
        state
    }
}

/// Returns the sizes and times of the files of a state; `None` if there is no state.
fn stamp(folder: &Folder) -> Option<Stamp> {
    let place = folder.plumb();
    let mut files: Vec<_> = std::fs::read_dir(&place).ok()?.flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let files = files.iter().filter_map(|file| file.metadata().ok());
    let files = files.filter(std::fs::Metadata::is_file);
    Some((place, files.map(|it| (it.len(), it.modified().ok())).collect()))
}

impl Spec for Resolved {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn document(&self) -> &Document {
        self.document()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn providers(&self) -> &BTreeMap<Name, Arc<ProviderSchema>> {
        self.schemas()
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn rules(&self) -> Diagnostics {
        if !has_values(self) {
            return Diagnostics::new();
        }
        // If the rules cannot be checked here, the next plan reports why.
        runtime::wait_for(resolved::check_rules(self)).unwrap_or_default()
    }

    fn changes(&self, state: &Snapshot) -> Option<Arc<dyn PlannedChanges>> {
        if !has_values(self) {
            return None;
        }
        let (plan, units) = runtime::wait_for(resolved::plan_unseen(self, state)).ok()??;
        Some(Arc::new(Planned { plan, units, sources: self.sources.clone() }))
    }
}

/// Returns true if every variable has a value. Without values, most rules cannot be checked, and most changes
/// are unknown.
fn has_values(resolved: &Resolved) -> bool {
    resolved.config.variables.values().all(|variable| variable.value.value.is_known())
}

/// A plan, shown when the user hovers over a resource.
struct Planned {
    plan: Plan,
    units: Units,
    sources: Sources,
}

impl PlannedChanges for Planned {
    fn of_block(&self, block: &Block, most: usize) -> (Vec<String>, usize) {
        let changes = Changes::of_plan(&self.plan, &self.sources).with_units(&self.units);
        let mut changes = changes.of_block(block);
        let shown = |change: Cow<'_, ChangeView>| {
            let mut change = change.into_owned();
            // The user is at that place already.
            change.causes.iter_mut().for_each(|cause| cause.place = Place::default());
            markdown::change(&change)
        };
        let shown: Vec<_> = changes.by_ref().take(most).map(shown).collect();
        let all = shown.len() + changes.count();
        (shown, all)
    }
}
