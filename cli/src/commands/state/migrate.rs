//! `plumb state migrate`: the state moves to where `[state]` says, from where it was until now.
//!
//! Both places are locked. The state is copied, read back and compared, and only then is the old
//! place marked as left; nothing of it is removed. Cut short anywhere, the command goes on when it
//! is run again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::spec::settings::StateSettings;
use engine::state::Snapshot;
use state::{Holder, Store, StoreError};

use crate::error::{CommandError, Kind};
use crate::folder::Folder;
use crate::output::Output;
use crate::place;
use crate::runtime;
use crate::spec_text;
use crate::stored;
use crate::system::System;

pub(super) fn run(
    base: &Path,
    folder: &Folder,
    from: &str,
    output: &Output,
) -> Result<(), CommandError> {
    let old = folder.store_at(&settings(base, from)?)?;
    let new = folder.any_store()?;
    let (from, to) = (old.place(), new.place());
    if from == to {
        return Err(CommandError::new(format!("the state is to move from {from} to itself")).help(
            "change `[state]` of the spec to where it shall be first, and name where it was with \
             `--from`",
        ));
    }
    let holder = System::holder("state migrate");
    let moved = runtime::wait_for(async { migrate(&old, &new, &holder).await })?;
    output.talk(&match moved {
        Some(count) => format!(
            "moved the state from {from} to {to}: {count} addresses\n\
             {from} is marked as left: whoever still uses it is told where the state is\n"
        ),
        None => format!("the state was moved from {from} to {to} already\n"),
    });
    Ok(())
}

/// Where the state was: `file`, or a file with the `[state]` that was, such as the spec of before.
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
    place::settings(&spec_text::read_one(&path)?)
}

/// Says how many addresses were moved; none if they were before.
async fn migrate(
    old: &Arc<dyn Store>,
    new: &Arc<dyn Store>,
    holder: &Holder,
) -> Result<Option<usize>, CommandError> {
    if was_moved(old, new).await? {
        return Ok(None);
    }
    let mut source = old.lock(holder, Duration::ZERO).await?;
    let snapshot = stored::folded(source.loaded().clone())?.snapshot;
    let Some(snapshot) = snapshot else {
        source.release().await?;
        return Err(CommandError::new(format!("there is no state in {}", old.place()))
            .help("nothing was changed; `plumb state init` makes a first one"));
    };
    let mut target = new.lock(holder, Duration::ZERO).await?;
    match stored::folded(target.loaded().clone())?.snapshot {
        None => drop(target.initialise(&snapshot).await?),
        // An earlier attempt was cut short behind this.
        Some(there) if there == snapshot => {}
        Some(there) => return Err(taken(&there, &snapshot, &new.place())),
    }
    let back = stored::folded(new.load().await?)?.snapshot;
    if back.as_ref() != Some(&snapshot) {
        return Err(CommandError::new(format!(
            "what was written to {} is not what is read from it",
            new.place()
        ))
        .kind(Kind::StoreFailed)
        .help("the state is where it was, and stays the one that counts"));
    }
    source.retire(&new.place()).await?;
    target.release().await?;
    source.release().await?;
    Ok(Some(snapshot.entries.len()))
}

/// Whether the old place is marked as left for the new one, which has a state.
async fn was_moved(old: &Arc<dyn Store>, new: &Arc<dyn Store>) -> Result<bool, CommandError> {
    match old.load().await {
        Err(StoreError::Moved { to, .. }) if to == new.place() => {
            Ok(new.load().await?.snapshot.is_some())
        }
        _ => Ok(false),
    }
}

fn taken(there: &Snapshot, snapshot: &Snapshot, place: &str) -> CommandError {
    let why = if there.lineage == snapshot.lineage {
        format!("there is another version of this state in {place}: serial {}", there.serial)
    } else {
        format!("there is another state in {place}: lineage {}", there.lineage)
    };
    CommandError::new(why)
        .kind(Kind::Suspicious)
        .help("nothing was changed; choose another place, or move what is there away first")
}
