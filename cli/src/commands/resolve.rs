//! `plumb resolve`: a person decides what became of a call in doubt.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apply::session::Session;
use engine::address::Address;
use engine::journal::{CallId, Pending, Record, Resolution, Seen};
use engine::state::Snapshot;
use engine::stored::Stored;
use engine::value::{Datum, Path as ValuePath, Value};

use super::state::parse;
use crate::args::{Resolve, VariableArgs};
use crate::environment;
use crate::error::{CommandError, Kind, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::planning;
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
    let resolution = resolution(asked, session.snapshot(), address, output).await;
    match resolution {
        Ok((call, resolution)) => {
            session.record(Record::Resolved { call, resolution })?;
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

async fn resolution(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    address: &Address,
    output: &Output,
) -> Result<(CallId, Resolution), CommandError> {
    let found = snapshot.pending.iter().find(|(_, pending)| pending.started.address == *address);
    let Some((call, pending)) = found else {
        return Err(CommandError::new(format!("nothing is in doubt about {address}"))
            .help("`plumb resolve` lists what is"));
    };
    let is_create = pending.started.object.is_none();
    let resolution = match &asked.args.adopt {
        Some(id) => adopt(asked, snapshot, pending, id, output).await?,
        None if is_create => Resolution::Absent { at_ms: System::now_ms() },
        None => Resolution::Gone,
    };
    Ok((*call, resolution))
}

/// Reads the object that a person says is the one, so that the state knows what it is.
async fn adopt(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    pending: &Pending,
    id: &str,
    output: &Output,
) -> Result<Resolution, CommandError> {
    let started = &pending.started;
    let id = super::import::id(id)?;
    if started.object.as_ref().is_some_and(|own| *own != id) {
        return Err(CommandError::new(format!("{} stands for another object", started.address)));
    }
    let owned = |entry: &engine::state::Entry| entry.object(&id).is_some();
    let mut others = snapshot.entries.iter().filter(|(address, _)| **address != started.address);
    if let Some((owner, _)) = others.find(|(_, entry)| owned(entry)) {
        return Err(CommandError::new(format!("{owner} stands for this object already")));
    }
    let named = BTreeSet::from([started.provider.clone()]);
    let described = planning::named_providers(&named, asked.folder, asked.given(), output)?;
    let configured = described.connect(asked.folder, &environment::variable, output).await?;
    let provider = configured
        .providers
        .get(&started.provider)
        .ok_or_else(|| CommandError::new(format!("there is no provider `{}`", started.provider)))?;
    let ty = &started.address.block.ty;
    let object = provider.read(ty, &id).await.map_err(|error| {
        let failed = CommandError::new(format!("cannot read the object: {error}"));
        match error.kind {
            provider_port::Kind::NotFound => failed.help("is the id right, and the account?"),
            _ => failed.kind(Kind::Failed),
        }
    })?;
    let mut sensitive = started.sensitive.clone();
    if let Some(schema) = provider.schema().types.get(ty) {
        sensitive.extend_below(&ValuePath::root(), &schema.sensitive());
    }
    let datum = Datum { value: Value::map(object.attributes), sensitive };
    let attributes = Stored::new(&datum, &snapshot.seal_key);
    Ok(Resolution::Found { object: Seen { id: object.id, attributes } })
}
