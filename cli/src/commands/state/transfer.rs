//! `plumb state pull` and `plumb state push`: the state as a whole.

use std::io::Read as _;
use std::path::Path;

use engine::state::Snapshot;

use crate::error::{CommandError, Kind};
use crate::output::Output;
use crate::session::{self, Folder, System};
use crate::stored;

/// The largest state that is read, in bytes.
const BYTES_MAX: u64 = 4 << 30;

pub(super) fn pull(folder: &Folder, output: &Output) -> Result<(), CommandError> {
    let snapshot = stored::read_some(folder)?;
    output.data(&render::json::pretty(&snapshot));
    Ok(())
}

pub(super) fn push(
    base: &Path,
    folder: &Folder,
    file: &Path,
    force: bool,
    output: &Output,
) -> Result<(), CommandError> {
    let text = read(base, file)?;
    let snapshot: Snapshot = serde_json::from_str(&text).map_err(|error| {
        let place = file.display();
        let (line, column) = (error.line(), error.column());
        CommandError::new(format!(
            "{place} is not what `plumb state pull` prints ({line}:{column})"
        ))
    })?;
    let store = folder.store();
    let holder = System::holder("state push");
    session::runtime()?.block_on(async {
        if !force {
            fits(&snapshot, store.load().await?.snapshot.as_ref())?;
        }
        store.restore(&holder, &snapshot).await?;
        Ok::<(), CommandError>(())
    })?;
    output.talk(&format!("put the state in place: {} addresses\n", snapshot.entries.len()));
    Ok(())
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

fn read(base: &Path, file: &Path) -> Result<String, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", file.display()), &error)
    };
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
        return Ok(text);
    }
    let opened = std::fs::File::open(base.join(file)).map_err(fail)?;
    opened.take(BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}
