//! `plumb import`: takes an existing object over into the state, and shows what the next plan would change.

use std::path::Path;
use std::sync::Arc;

use apply::planning::{Request, make};
use apply::session::Session;
use engine::address::Address;
use engine::plan::input::Options;
use engine::state::ObjectId;

use super::plan;
use super::state::parse;
use crate::args::{Import, PlanFormat};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::planning::{self, Made};
use crate::resolved::{self, Resolved};
use crate::running::{Teller, recover_open, seal_plain};
use crate::runtime;
use crate::stored_state;
use crate::system::System;

pub(crate) fn run(
    base: &Path,
    args: &Import,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    let (address, id) = (parse(&args.address)?, id(&args.id)?);
    runtime::wait_for(import(&folder, base, (&address, &id), args, output))
}

/// Parses an id that the user typed.
pub(crate) fn id(text: &str) -> Result<ObjectId, CommandError> {
    ObjectId::typed(text).map_err(|why| {
        let shown = render::safe::text(text);
        CommandError::new(format!("`{shown}` is no id: {why}")).help("give it as the API shows it")
    })
}

async fn import(
    folder: &Folder,
    base: &Path,
    (address, id): (&Address, &ObjectId),
    args: &Import,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folded = stored_state::load(folder).await?;
    let mut resolved = resolved::read(folder, base, &args.spec, &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok(refuse(&Made::refused(resolved), output));
    }
    check_in_spec(&resolved, address)?;
    let configured = resolved.connect(folder, output).await?;
    configured.locations.refuse_elsewhere(&folded.snapshot)?;
    let options = Options::default();
    let (sources, said) = resolved.take_findings();
    let request = resolved.request(&configured, &options, true);
    if let Some(diagnostics) = planning::refuse_unreachable(&request, &configured) {
        return Ok(refuse(&Made::refused_for(sources, said, diagnostics), output));
    }
    let (store, holder) = (folder.store()?, System::holder("import"));
    let mut session = Session::open(&*store, &holder, args.lock_timeout, &System, None).await?;
    seal_plain(&mut session, folder, output).await?;
    let teller = Teller::new(output, false);
    recover_open(&mut session, &configured.providers, &request.secrets(), &teller).await?;
    for record in configured.locations.records(session.snapshot()) {
        session.record(record)?;
    }
    let taken = take_over(&mut session, &request, address, id).await;
    let next = match &taken {
        Ok(found) if !found.has_errors() => Some(make(session.snapshot(), &request).await),
        _ => None,
    };
    session.close().await?;
    let Some(next) = next else {
        return Ok(refuse(&Made::refused_for(sources, said, taken?), output));
    };
    let (shown, id) =
        (render::safe::text(&address.to_string()), render::safe::text(&id.to_string()));
    output.talk(&format!("{shown} stands for {id} now\n"));
    let (plan, found) = next?;
    let made = planning::made(&resolved.config, &configured, (sources, said), plan, found);
    plan::print(&made, PlanFormat::Text, false, output);
    Ok(Status::Done)
}

async fn take_over(
    session: &mut Session,
    request: &Request<'_>,
    address: &Address,
    id: &ObjectId,
) -> Result<engine::diagnostics::Diagnostics, CommandError> {
    let entry = session.snapshot().entries.get(address);
    if let Some(current) = entry.and_then(|entry| entry.current.as_ref()) {
        let address_text = address.to_string();
        return Err(CommandError::new(format!(
            "{address_text} is in the state already, as {}",
            render::safe::text(&current.id.to_string())
        ))
        .help(format!(
            "to remove that object from the state first, without deleting it: plumb state rm '{address_text}'"
        )));
    }
    Ok(apply::import::import(session, request, address, id).await?)
}

/// Fails if the spec does not have the address: the next apply would delete the object.
fn check_in_spec(resolved: &Resolved, address: &Address) -> Result<(), CommandError> {
    if resolved.config.resources.contains_key(&address.block) {
        return Ok(());
    }
    let block = &address.block;
    Err(CommandError::new(format!("the spec has no `{block}`"))
        .help(format!("write `[resource.{block}]` into it first: the next apply deletes what the spec does not have")))
}

fn refuse(made: &Made, output: &Output) -> Status {
    output.diagnostics(&made.diagnostics, &made.sources);
    Status::Failed
}
