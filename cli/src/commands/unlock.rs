//! `plumb unlock`: about a lock that seems to be left behind.
//!
//! A lock of the file backend is the kernel's and ends with the process that holds it, so there is
//! never one to take away; what remains is to say who holds it.

use std::path::Path;

use crate::args::Unlock;
use crate::error::{CommandError, Kind, Status};
use crate::output::Output;
use crate::session::Folder;
use crate::stored;

pub(crate) fn run(base: &Path, args: &Unlock, output: &Output) -> Result<Status, CommandError> {
    let loaded = stored::read(&Folder::new(base, None)?)?;
    let Some(holder) = loaded.holder else {
        output.talk("nobody holds the lock: a lock here ends with the process that holds it\n");
        return Ok(Status::Done);
    };
    if holder.run != args.run {
        return Err(CommandError::new(format!(
            "the lock is held by run {}, not by {}",
            holder.run, args.run
        ))
        .kind(Kind::Locked));
    }
    Err(CommandError::new(format!(
        "run {} is alive: process {} on {} holds the lock",
        holder.run, holder.pid, holder.host
    ))
    .kind(Kind::Locked)
    .help("wait for it, or end that process: its lock ends with it, and the next apply goes on from there"))
}
