//! `plumb state pull` and `plumb state push`: print and replace the whole state.

use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use apply::ApplyError;
use apply::push::{self, PushError};
use engine::state::Snapshot;

use crate::environment;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::stored_state;
use crate::system::System;

/// The largest state that is read, in bytes.
const BYTES_MAX: u64 = 4 << 30;

/// The maximum number of characters in a line about an object.
const LINE_MAX: usize = 2_000;

pub(super) fn pull(
    folder: &Folder,
    serial: Option<u64>,
    output: &Output,
) -> Result<(), CommandError> {
    let snapshot = match serial {
        Some(serial) => past(folder, serial)?,
        None => stored_state::read_some(folder)?,
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
    let pushed = runtime::wait_for(async {
        let pushed = push::push(&*store, &holder, &snapshot, force).await;
        pushed.map_err(|error| if force { error.into() } else { refused(error) })
    })?;
    output.talk(&format!("put the state in place: {} addresses\n", snapshot.entries.len()));
    tell(output, "the file did not know of these, and they are kept:", &pushed.carried);
    tell(output, "these are no longer in the state, if they exist:", &pushed.lost);
    Ok(())
}

/// Shows lines about objects. Lines are cut only at a great length: ids come from APIs and keys from specs,
/// and an object that no state has any more can be found only by this line.
fn tell(output: &Output, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let lines: Vec<_> = lines.iter().map(|line| render::safe::capped(line, LINE_MAX)).collect();
        output.talk(&format!("{title}\n  {}\n", lines.join("\n  ")));
    }
}

/// Reads the output of `plumb state pull`, or a file of the state itself, such as a backup.
fn parse(bytes: &[u8], file: &Path) -> Result<Snapshot, CommandError> {
    let opened = environment::cipher()?.open(state::cipher::STATE, bytes).map_err(|error| {
        CommandError::new(format!("{} cannot be read: {error}", file.display()))
            .status(Status::Suspicious)
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

impl From<PushError> for CommandError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Store(error) => error.into(),
            PushError::Journal(error) => ApplyError::from(error).into(),
            PushError::WouldLose(why) => Self::new(why).status(Status::Suspicious).help(
                "nothing was changed; `plumb apply` finishes what was begun, and `plumb state pull` \
                 has all of it; or give `--force` if you are sure: the state that is there is kept as \
                 a backup",
            ),
        }
    }
}

/// Returns the error of a push. If the stored state cannot be read, the advice is a special one: it is
/// unknown what the push would lose, or store in clear.
fn refused(error: PushError) -> CommandError {
    let would_lose = matches!(error, PushError::WouldLose(_));
    let error = CommandError::from(error);
    if would_lose || error.status != Status::Suspicious {
        return error;
    }
    error.help(
        "nothing was changed; fix that first, or give `--force` if you are sure: what is there is \
         then kept aside where that is possible",
    )
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
    let kind = opened.metadata().map_err(fail)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        // Reading some devices never ends.
        return Err(CommandError::new(format!("{} is a device", file.display()))
            .help("give a file that `plumb state pull` printed, or a backup"));
    }
    opened.take(BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}
