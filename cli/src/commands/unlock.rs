//! `plumb unlock`: for a lock that seems to be left behind.
//!
//! Locks end by themselves in every backend: with the holder's process, with its connection, or after a time
//! without a sign of it. So no lock has to be removed. But a process that hangs keeps its connection. In a
//! database, that process can be driven out: its later writes are refused. For all other locks, this command
//! shows who holds the lock and when it ends.

use std::path::Path;

use state::open::{LockEnds, lock_ends};
use state::{Holder, Store};

use crate::args::Unlock;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;

pub(crate) fn run(base: &Path, args: &Unlock, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    let ends = lock_ends(folder.settings()?);
    // Neither the content of the store nor its readability matters here: a hanging process may be the reason
    // for both.
    let store = folder.any_store()?;
    let Some(holder) = runtime::wait_for(async { Ok(store.holder().await?) })? else {
        output.talk(&format!("no run holds the lock: a lock here ends {}\n", when(ends)));
        return Ok(Status::Done);
    };
    if holder.run != args.run {
        return Err(CommandError::new(format!(
            "the lock is held by run {}, not by {}",
            holder.run, args.run
        ))
        .status(Status::Locked));
    }
    match held(&holder, ends) {
        Some((found, help)) => Err(CommandError::new(found).status(Status::Locked).help(help)),
        None => drive_out(&*store, &holder, output),
    }
}

fn drive_out(store: &dyn Store, holder: &Holder, output: &Output) -> Result<Status, CommandError> {
    let driven_out = runtime::wait_for(async { Ok(store.drive_out(&holder.run).await?) })?;
    // The store has what the holder says of itself, and others may write there.
    let (run, host) = (render::safe::text(&holder.run), render::safe::text(&holder.host));
    if !driven_out {
        output.talk(&format!("run {run} holds the lock no more\n"));
        return Ok(Status::Done);
    }
    output.talk(&format!(
        "run {run} (process {} on {host}) was driven out: the lock is free\n\
         If that run is alive, it can write nothing any more, calls nothing more and ends with exit \
         status 6.\nThe next apply looks up what it had under way.\n",
        holder.pid
    ));
    Ok(Status::Done)
}

fn when(ends: LockEnds) -> &'static str {
    match ends {
        LockEnds::WithProcess => "with the process that holds it",
        LockEnds::WithConnection => "with the connection of the process that holds it",
        LockEnds::AfterSilence => "once its holder has been silent for one and a half lifetimes",
    }
}

/// Returns the facts about a holder, and the advice; `None` if the holder can be driven out.
fn held(holder: &Holder, ends: LockEnds) -> Option<(String, &'static str)> {
    let Holder { run, pid, host, .. } = holder;
    let who = format!("process {pid} on {host}");
    let said = match ends {
        LockEnds::WithConnection => return None,
        LockEnds::WithProcess => (
            format!("run {run} is alive: {who} holds the lock"),
            "wait for it, or end that process: its lock ends with it, and the next apply goes on \
             from there",
        ),
        LockEnds::AfterSilence => (
            format!("run {run} holds the lock, as far as the store tells: {who} took it"),
            "wait for it, or end that process. Nothing has to be removed if it is gone: the next \
             apply watches the lock, and takes it once its holder has been silent for one and a \
             half lifetimes (`lock_ttl`, 15 seconds unless `[state]` says otherwise)",
        ),
    };
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_true_of_the_backend() {
        let holder =
            Holder { run: "r1".to_owned(), host: "m".to_owned(), pid: 7, ..Holder::default() };
        let said = |ends| held(&holder, ends).unwrap().0;
        assert_eq!(said(LockEnds::WithProcess), "run r1 is alive: process 7 on m holds the lock");
        // An object store does not show if a holder is alive.
        assert!(!said(LockEnds::AfterSilence).contains("alive"));
        assert!(!when(LockEnds::AfterSilence).contains("process"));
    }
}
