//! `plumb resolve`: a person decides what became of a call in doubt.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apply::resolve::{Doubt, ResolveError};
use apply::session::Session;
use engine::address::Address;
use engine::journal::{CallId, Pending, Record};
use engine::state::Snapshot;

use super::state::parse;
use crate::args::{Resolve, VariableArgs};
use crate::environment;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::resolved;
use crate::runtime;
use crate::stored;
use crate::system::System;

pub(crate) fn run(
    base: &Path,
    args: &Resolve,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    runtime::wait_for(async {
        match &args.address {
            None => show(&folder, output).await,
            Some(address) => {
                let asked = Asked { folder: &folder, base, args };
                decide(&asked, &parse(address)?, output).await
            }
        }
    })
}

/// What was asked for.
struct Asked<'a> {
    folder: &'a Folder,
    base: &'a Path,
    args: &'a Resolve,
}

impl<'a> Asked<'a> {
    /// The values of variables, with where the paths of their files are seen from.
    fn given(&self) -> (&'a Path, &'a VariableArgs) {
        (self.base, &self.args.variables)
    }
}

async fn show(folder: &Folder, output: &Output) -> Result<Status, CommandError> {
    let folded = stored::load(folder).await?;
    if folded.snapshot.pending.is_empty() {
        output.data("Nothing is in doubt.\n");
        return Ok(Status::Done);
    }
    for (call, pending) in &folded.snapshot.pending {
        output.data(&line(*call, pending, folded.holder.is_some()));
    }
    Ok(if folded.holder.is_some() { Status::Done } else { Status::InDoubt })
}

fn line(call: CallId, pending: &Pending, running: bool) -> String {
    let (address, operation) = (&pending.started.address, pending.started.operation.word());
    let why = match (&pending.doubt, running) {
        (_, true) => "another run may be at it".to_owned(),
        (Some(doubt), false) => doubt.clone(),
        (None, false) => "the run ended before its answer was recorded".to_owned(),
    };
    render::safe::text(&format!("{address}: {operation} ({call}): {why}")) + "\n"
}

async fn decide(
    asked: &Asked<'_>,
    address: &Address,
    output: &Output,
) -> Result<Status, CommandError> {
    let Asked { folder, args, .. } = asked;
    if args.adopt.is_none() && !args.absent {
        return Err(CommandError::new(format!("what became of the call for {address}?")).help(
            "give `--adopt ID` if an object with this id is there, or `--absent` if there is none",
        ));
    }
    let store = folder.store()?;
    let holder = System::holder("resolve");
    if store.load().await?.snapshot.is_none() {
        return Err(CommandError::new("nothing was applied yet, so nothing is in doubt"));
    }
    let mut session = Session::open(&*store, &holder, Duration::ZERO, &System, None).await?;
    match decision(asked, session.snapshot(), address, output).await {
        Ok(record) => {
            session.record(record)?;
            session.close().await?;
            output.talk(&format!(
                "decided; the next `plumb plan` shows what follows for {address}\n"
            ));
            Ok(Status::Done)
        }
        Err(error) => {
            session.close().await?;
            Err(error)
        }
    }
}

/// What the person says, as the record that decides it.
async fn decision(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    address: &Address,
    output: &Output,
) -> Result<Record, CommandError> {
    let Some(doubt) = Doubt::about(snapshot, address) else {
        return Err(CommandError::new(format!("nothing is in doubt about {address}"))
            .help("`plumb resolve` lists what is"));
    };
    let Some(id) = &asked.args.adopt else { return Ok(doubt.absent(System::now_ms())) };
    let id = super::import::id(id)?;
    // Before anything is started or called for it.
    doubt.check(&id)?;
    let named = BTreeSet::from([doubt.provider().clone()]);
    let described = resolved::named_providers(&named, asked.folder, asked.given(), output)?;
    let configured = described.connect(asked.folder, &environment::variable, output).await?;
    Ok(doubt.adopt(&id, &configured.providers).await?)
}

impl From<ResolveError> for CommandError {
    fn from(error: ResolveError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            ResolveError::Unread(error) if error.kind == provider_port::Kind::NotFound => {
                failed.help("is the id right, and the account?")
            }
            _ => failed,
        }
    }
}
