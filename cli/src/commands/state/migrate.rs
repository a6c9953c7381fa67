//! `plumb state migrate`: moves the state to the place that `[state]` names, from its previous place.

use std::path::Path;

use apply::ApplyError;
use apply::migrate::{MigrateError, Migrated, migrate};
use engine::config::settings::StateSettings;

use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::spec_text;
use crate::store_location;
use crate::system::System;

pub(super) fn run(
    base: &Path,
    folder: &Folder,
    from: &str,
    output: &Output,
) -> Result<(), CommandError> {
    let old = folder.store_to_move(&settings(base, from)?)?;
    let new = folder.store_to_move(folder.settings()?)?;
    let (from, to) = (old.place(), new.place());
    if from == to {
        return Err(CommandError::new(format!("the state is to move from {from} to itself")).help(
            "change `[state]` of the spec to where it shall be first, and name where it was with \
             `--from`",
        ));
    }
    let holder = System::holder("state migrate");
    let moved = runtime::wait_for(async { Ok(migrate(&*old, &*new, &holder).await?) })?;
    let (from, to) = (render::safe::text(&from), render::safe::text(&to));
    output.talk(&match moved {
        Migrated::Moved(count) => format!(
            "moved the state from {from} to {to}: {count} addresses\n\
             {from} is marked as left: whoever still uses it is told where the state is\n"
        ),
        Migrated::Before => format!("the state was moved from {from} to {to} already\n"),
    });
    Ok(())
}

/// Reads the previous place of the state: `file`, or a file with the previous `[state]` block, such as the
/// old spec.
fn settings(base: &Path, from: &str) -> Result<StateSettings, CommandError> {
    if from == "file" {
        return Ok(StateSettings::file());
    }
    let path = base.join(from);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Err(CommandError::new(format!("`--from {from}` names no place")).help(
            "give `file` for the files in .plumb, or a TOML file with the `[state]` that was until \
             now, such as the spec of before",
        ));
    }
    store_location::settings(&spec_text::read_one(&path)?)
}

impl From<MigrateError> for CommandError {
    fn from(error: MigrateError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            MigrateError::Store(error) => error.into(),
            MigrateError::Journal(error) => ApplyError::from(error).into(),
            MigrateError::Nothing(_) => {
                failed.help("nothing was changed; `plumb state init` makes a first one")
            }
            MigrateError::AnotherVersion { .. } | MigrateError::AnotherState { .. } => {
                failed.status(Status::Suspicious).help(
                    "nothing was changed; choose another place, or move what is there away first",
                )
            }
            MigrateError::AnotherPlace { .. } => failed.status(Status::Suspicious).help(
                "nothing was changed; look where the name leads: another service, database or \
                 tunnel may answer here than when the state was moved",
            ),
            MigrateError::Changed(_) => failed
                .status(Status::StoreFailed)
                .help("the state is where it was, and stays the one that counts"),
        }
    }
}
