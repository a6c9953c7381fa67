//! `plumb adopt`: writes the spec of existing objects that no state knows, and takes the objects over.
//!
//! The spec is written first, with an `[[import]]` block for each object. If the command ends there, `plumb
//! apply` can finish the work with that spec. Then the state takes the objects over, and the `[[import]]`
//! blocks are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use apply::adopt::{plan as plan_takeover, take_over, unknown_objects};
use apply::planning::{make, schemas};
use apply::session::Session;
use engine::address::{Address, Name};
use engine::adopt::{self, Draft, Found, Surroundings};
use engine::config::is_spec_file;
use engine::config::resolve::Given;
use engine::config::variables::environment_name;
use engine::plan::input::Options;
use engine::state::{ObjectId, Snapshot};

use super::plan;
use crate::args::{Adopt, PlanFormat, SpecArgs};
use crate::error::{CommandError, Status};
use crate::folder::{Draft as DraftFile, Folder};
use crate::output::Output;
use crate::planning::{self, Made};
use crate::providers::Configured;
use crate::resolved::{self, Resolved};
use crate::running::{Teller, confirm, recover_open, seal_plain};
use crate::runtime;
use crate::spec_files;
use crate::stop_request::Stopping;
use crate::stored_state;
use crate::system::System;

const QUESTION: &str = "Write this spec and take the objects over? Type yes to confirm: ";
/// The first lines of a new file.
const HEAD: &str = "# Taken over by `plumb adopt`.\n\n";

pub(crate) fn run(base: &Path, args: &Adopt, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let file = file(&folder, &args.out)?;
    if !args.dry_run && !args.yes && !std::io::stdin().is_terminal() {
        return Err(CommandError::new("adopt needs confirmation, and there is no terminal")
            .help("look at the spec with `plumb adopt --dry-run`, then give `--yes`"));
    }
    let stop = Stopping::listen(output)?;
    let asked = Asked { folder, base, args, file, stop, output };
    runtime::wait_for(adopt(&asked))
}

/// Returns the file for the new blocks. It must be a file that is read as a part of the spec.
fn file(folder: &Folder, out: &str) -> Result<DraftFile, CommandError> {
    if !is_spec_file(out) || out.contains('/') {
        let message = format!("{} is no spec file of the folder", render::safe::text(out));
        return Err(CommandError::new(message).help(
            "give a name that ends in .plumb.toml, without a folder: --out adopted.plumb.toml",
        ));
    }
    let path = folder.join(out);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(DraftFile { path, old: Some(text.clone()), text }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(DraftFile { path, old: None, text: HEAD.to_owned() })
        }
        Err(error) => {
            Err(CommandError::caused(format_args!("cannot read {}", path.display()), &error))
        }
    }
}

/// The request of the user.
struct Asked<'a> {
    folder: Folder,
    base: &'a Path,
    args: &'a Adopt,
    file: DraftFile,
    stop: Stopping,
    output: &'a Arc<Output>,
}

impl Asked<'_> {
    /// Returns the options for resolving the spec: variables may lack values, and the objects of all types
    /// are wanted.
    fn spec_args(&self) -> SpecArgs {
        SpecArgs { unset: true, all_types: true, ..self.args.spec.clone() }
    }

    /// Reads the spec, with a draft added to it.
    fn read(&self, folder: &Folder, snapshot: &Snapshot) -> Result<Resolved, CommandError> {
        resolved::read(folder, self.base, &self.spec_args(), snapshot)
    }

    /// Opens the state, and looks up the calls that earlier runs left open.
    async fn open(
        &self,
        resolved: &Resolved,
        configured: &Configured,
    ) -> Result<Session, CommandError> {
        let options = Options::default();
        let request = resolved.request(configured, &options, true);
        let (store, holder) = (self.folder.store()?, System::holder("adopt"));
        let wait = self.args.lock_timeout;
        let mut session = Session::open(&*store, &holder, wait, &System, None).await?;
        seal_plain(&mut session, &self.folder, self.output).await?;
        let teller = Teller::new(self.output, false);
        recover_open(&mut session, &configured.providers, &request.secrets(), &teller).await?;
        Ok(session)
    }

    /// Returns the objects to adopt.
    async fn found(
        &self,
        resolved: &Resolved,
        configured: &Configured,
        snapshot: &Snapshot,
    ) -> Result<Vec<Found>, CommandError> {
        let schemas = schemas(&configured.providers);
        let known: BTreeSet<&Name> =
            schemas.values().flat_map(|provider| provider.types.keys()).collect();
        for ty in &self.args.types {
            if !known.contains(&Name::from(ty.as_str())) {
                let types: Vec<&str> = known.iter().map(|name| &***name).collect();
                let message = format!("there is no resource type `{}`", render::safe::text(ty));
                return Err(
                    CommandError::new(message).help(format!("there are: {}", types.join(", ")))
                );
            }
        }
        let is_wanted =
            |ty: &Name| self.args.types.is_empty() || self.args.types.iter().any(|it| **it == **ty);
        let look = unknown_objects(snapshot, &configured.providers, &resolved.config, &is_wanted);
        let mut found = planning::patiently(self.output, look).await?;
        let surroundings = Surroundings { config: &resolved.config, snapshot, providers: &schemas };
        if let Some(glob) = &self.args.matching {
            found.retain(|it| adopt::matches(glob, &adopt::known_name(&surroundings, it)));
        }
        Ok(found)
    }
}

async fn adopt(asked: &Asked<'_>) -> Result<Status, CommandError> {
    let Asked { folder, stop, output, args, .. } = asked;
    let folded = stop.unless(stored_state::load_if_told(folder)).await?;
    let mut resolved = asked.read(folder, &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok(refuse(&Made::refused(resolved), output));
    }
    let configured = stop.unless(resolved.connect(folder, output)).await?;
    configured.locations.refuse_elsewhere(&folded.snapshot)?;
    if configured.missing.has_errors() {
        let (sources, said) = resolved.take_findings();
        return Ok(refuse(&Made::refused_for(sources, said, configured.missing), output));
    }
    if args.dry_run {
        let found = stop.unless(asked.found(&resolved, &configured, &folded.snapshot)).await?;
        let draft = draft(&resolved, &configured, &folded.snapshot, found);
        output.diagnostics(&draft.notes, &engine::diagnostics::Sources::default());
        output.data(&draft.text);
        output.talk(&format!("{} objects are known to no state\n", draft.imports.len()));
        return Ok(Status::Done);
    }
    let session = stop.unless(asked.open(&resolved, &configured)).await?;
    let work = with_session(asked, &resolved, &configured, session);
    work.await
}

/// Returns the draft of a spec for objects.
fn draft(
    resolved: &Resolved,
    configured: &Configured,
    snapshot: &Snapshot,
    found: Vec<Found>,
) -> Draft {
    let (config, providers) = (&resolved.config, &schemas(&configured.providers));
    adopt::draft(&Surroundings { config, snapshot, providers }, found)
}

/// Runs the work under the lock, and releases the lock.
async fn with_session(
    asked: &Asked<'_>,
    resolved: &Resolved,
    configured: &Configured,
    mut session: Session,
) -> Result<Status, CommandError> {
    let done = Box::pin(adopt_found(asked, resolved, configured, &mut session)).await;
    let closed = session.close().await;
    let status = done?;
    closed?;
    Ok(status)
}

async fn adopt_found(
    asked: &Asked<'_>,
    resolved: &Resolved,
    configured: &Configured,
    session: &mut Session,
) -> Result<Status, CommandError> {
    let Asked { stop, output, args, .. } = asked;
    let found = stop.unless(asked.found(resolved, configured, session.snapshot())).await?;
    let draft = draft(resolved, configured, session.snapshot(), found);
    if draft.imports.is_empty() {
        output.talk("Nothing to adopt: the state knows everything that is there.\n");
        return Ok(Status::Done);
    }
    let with_draft = |imports: bool| asked.file.with(&text(&draft, imports));
    let drafted = asked.folder.with_draft(with_draft(false));
    let mut planned = asked.read(&drafted, session.snapshot())?;
    let given = draft.variables.iter().filter_map(|variable| {
        Some((variable.name.clone(), Given::Value(variable.value.clone()?)))
    });
    planned.resolve_again(given.collect::<BTreeMap<_, _>>(), configured);
    if planned.diagnostics.has_errors() {
        return Ok(refuse(&Made::refused(planned), output));
    }
    let options = Options::default();
    let (sources, said) = planned.take_findings();
    let request = planned.request(configured, &options, true);
    let takeover = Box::pin(plan_takeover(session.snapshot(), &request, &draft.imports));
    let takeover = planning::patiently(output, takeover);
    let (plan, found) = stop.unless(async { Ok(takeover.await?) }).await?;
    if found.has_errors() {
        return Ok(refuse(&Made::refused_for(sources, said, found), output));
    }
    output.diagnostics(&draft.notes, &sources);
    output.data(&draft.text);
    output.talk(&summary(&draft.imports, &asked.file));
    if !args.yes && !confirm(QUESTION, stop, output).await? {
        output.talk("Nothing was adopted.\n");
        return Ok(Status::Cancelled);
    }
    stop.begin()?;
    for record in configured.locations.records(session.snapshot()) {
        session.record(record)?;
    }
    // A spec without the state would create everything again, and a state without the spec would delete it.
    // With its imports, the spec says itself what is left to do.
    let (unfinished, finished) = (with_draft(true), with_draft(false));
    spec_files::replace(&unfinished.path, unfinished.old.as_deref(), &unfinished.text)?;
    take_over(session, &plan, &draft.imports).await.map_err(|error| {
        let path = asked.file.path.display();
        CommandError::from(error).help(format!(
            "{path} has the spec, with an `[[import]]` block for each object: `plumb apply` takes over what is left"
        ))
    })?;
    spec_files::replace(&finished.path, Some(&unfinished.text), &finished.text)?;
    output.talk(&format!("Adopted {}.\n", objects(draft.imports.len())));
    say_variables(&draft, output);
    let next = Box::pin(make(session.snapshot(), &request));
    let next = planning::patiently(output, next).await?;
    let made = planning::made(&planned.config, configured, (sources, said), next.0, next.1);
    plan::print(&made, PlanFormat::Text, false, output);
    Ok(Status::Done)
}

/// Returns the text of a draft, with `imports` also an `[[import]]` block for each object.
fn text(draft: &Draft, imports: bool) -> String {
    let block = |(address, id): (&Address, &ObjectId)| adopt::import_block(address, id);
    let blocks = draft.imports.iter().filter(|_| imports).map(block);
    std::iter::once(draft.text.clone()).chain(blocks).collect::<Vec<_>>().join("\n")
}

/// Returns the sentence before the question.
fn summary(imports: &BTreeMap<Address, ObjectId>, file: &DraftFile) -> String {
    let mut types: BTreeMap<&Name, usize> = BTreeMap::new();
    for address in imports.keys() {
        *types.entry(&address.block.ty).or_default() += 1;
    }
    let types: Vec<String> = types.iter().map(|(ty, count)| format!("{count} {ty}")).collect();
    let verb = if file.old.is_some() { "added to" } else { "written into" };
    format!(
        "\nThis spec of {} ({}) is {verb} {}, and the state takes them over. Nothing is called that changes them.\n",
        objects(imports.len()),
        types.join(", "),
        render::safe::text(&file.path.display().to_string())
    )
}

fn objects(count: usize) -> String {
    format!("{count} {}", if count == 1 { "object" } else { "objects" })
}

/// Names the variables that the next plan needs.
fn say_variables(draft: &Draft, output: &Output) {
    if draft.variables.is_empty() {
        return;
    }
    let names: Vec<String> =
        draft.variables.iter().map(|variable| environment_name(&variable.name)).collect();
    output.talk(&format!("The next plan needs values for its variables: {}.\n", names.join(", ")));
}

fn refuse(made: &Made, output: &Output) -> Status {
    output.diagnostics(&made.diagnostics, &made.sources);
    Status::Failed
}
