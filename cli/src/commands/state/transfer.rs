//! `plumb state pull` and `plumb state push`: the state as a whole.

use std::io::Read as _;
use std::path::Path;

use engine::state::Snapshot;
use state::StoreError;

use crate::environment;
use crate::error::{CommandError, Kind};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::stored;
use crate::system::System;

/// The largest state that is read, in bytes.
const BYTES_MAX: u64 = 4 << 30;

pub(super) fn pull(
    folder: &Folder,
    serial: Option<u64>,
    output: &Output,
) -> Result<(), CommandError> {
    let snapshot = match serial {
        Some(serial) => past(folder, serial)?,
        None => stored::read_some(folder)?,
    };
    output.data(&render::json::pretty(&snapshot));
    Ok(())
}

fn past(folder: &Folder, serial: u64) -> Result<Snapshot, CommandError> {
    let store = folder.any_store()?;
    let found = runtime::wait_for(async { Ok(store.past(serial).await?) })?;
    found.ok_or_else(|| {
        CommandError::new(format!("no state of serial {serial} is kept in {}", store.place()))
            .help("`plumb state history` lists which are")
    })
}

pub(super) fn push(
    base: &Path,
    folder: &Folder,
    file: &Path,
    force: bool,
    output: &Output,
) -> Result<(), CommandError> {
    let snapshot = parse(&read(base, file)?, file)?;
    let store = folder.store()?;
    let holder = System::holder("state push");
    runtime::wait_for(async {
        if !force {
            match store.load().await {
                Ok(loaded) => fits(&snapshot, loaded.snapshot.as_ref())?,
                // Nothing is there: putting something there is what push is for.
                Err(StoreError::Missing { .. }) => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        store.restore(&holder, &snapshot).await?;
        Ok::<(), CommandError>(())
    })?;
    output.talk(&format!("put the state in place: {} addresses\n", snapshot.entries.len()));
    Ok(())
}

/// Reads what `plumb state pull` printed, or a file of the state's own, such as a backup.
fn parse(bytes: &[u8], file: &Path) -> Result<Snapshot, CommandError> {
    let opened = environment::cipher()?.open(state::cipher::STATE, bytes).map_err(|error| {
        CommandError::new(format!("{} cannot be read: {error}", file.display()))
            .kind(Kind::Suspicious)
            .help("nothing was changed; a state is read with the key that it was written with")
    })?;
    let bytes = &*opened;
    if let Ok((_, snapshot)) = state::format::decode(bytes) {
        return Ok(snapshot);
    }
    let place = file.display();
    let no_state = |why: String| {
        CommandError::new(format!("{place} is no state: {why}"))
            .help("give a file that `plumb state pull` printed, or a backup")
    };
    let snapshot: Snapshot = serde_json::from_slice(bytes).map_err(|error| {
        no_state(format!("it cannot be read at {}:{}", error.line(), error.column()))
    })?;
    state::format::check_numbers(&snapshot).map_err(|error| no_state(error.to_string()))?;
    Ok(snapshot)
}

/// What is there cannot be read, so nobody knows what would be lost, or put away in clear.
fn unreadable(error: StoreError) -> CommandError {
    let error = CommandError::from(error);
    if error.kind != Kind::Suspicious {
        return error;
    }
    error.help(
        "nothing was changed; mend that first, or give `--force` if you are sure: what is there is \
         then kept aside where that is possible",
    )
}

/// Whether a state may replace another without being forced to.
fn fits(new: &Snapshot, old: Option<&Snapshot>) -> Result<(), CommandError> {
    let Some(old) = old else { return Ok(()) };
    let refuse = |why: String| {
        Err(CommandError::new(why)
            .kind(Kind::Suspicious)
            .help("give `--force` if you are sure; the state that is there is kept as a backup"))
    };
    if new.lineage != old.lineage {
        return refuse(format!(
            "the file is of lineage {}, and the state here of lineage {}",
            new.lineage, old.lineage
        ));
    }
    if new.serial < old.serial {
        return refuse(format!(
            "the file has serial {}, and the state here serial {}: it is older",
            new.serial, old.serial
        ));
    }
    Ok(())
}

fn read(base: &Path, file: &Path) -> Result<Vec<u8>, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", file.display()), &error)
    };
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().take(BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
        return Ok(bytes);
    }
    let opened = std::fs::File::open(base.join(file)).map_err(fail)?;
    opened.take(BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}
