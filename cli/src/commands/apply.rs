//! `plumb apply` and `plumb destroy`: make a plan under the lock, show it, ask for confirmation and run it;
//! or run a saved plan, exactly as it is or not at all.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use apply::planning::{Request, make};
use apply::saved_plan::{check_secrets, make_again};
use apply::session::Session;
use apply::{ApplyError, Host as _, Moment};
use engine::address::Name;
use engine::config::Config;
use engine::diagnostics::{Diagnostics, Sources};
use engine::plan::Plan;
use engine::plan::file::SavedPlan;
use engine::plan::input::Options;
use engine::state::Snapshot;
use engine::value::Datum;
use state::Holder;

use super::{plan, saved_plan};
use crate::args::{Apply, Destroy, PlanFormat, Planning, Running, SpecArgs};
use crate::checks::{self, Outcome, Turns, World};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::locations::{self, Locations};
use crate::output::Output;
use crate::planning::{self, Made};
use crate::providers::Configured;
use crate::resolved;
use crate::running::{self, Onward, Run, Teller, confirm, recover_open, seal_plain};
use crate::runtime;
use crate::stop_request::Stopping;
use crate::stored_state;
use crate::system::System;

const QUESTION: &str = "Apply this plan? Type yes to confirm: ";

pub(crate) fn apply(
    base: &Path,
    args: &Apply,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let given = args.path.as_ref().map(|path| base.join(path));
    if let Some(path) = given.as_ref().filter(|path| !path.exists()) {
        let message = format!("there is no folder or plan file {}", path.display());
        return Err(CommandError::new(message).help("`plumb plan --out FILE` writes plan files"));
    }
    let (running, planning) = (&args.running, &args.planning);
    if let Some(file) = given.filter(|path| path.is_file()) {
        refuse_planning(planning)?;
        let saved = saved_plan::read(&file)?;
        saved_plan::refuse_elsewhere(&saved, base, args.path.as_deref().unwrap_or(&file))?;
        let folder = &Folder::new(base, None)?.with_spec(saved.inputs.clone());
        let saved = Some(&saved);
        let asked = Asked { folder, base, running, planning, saved, checks: false };
        return runtime::wait_for(run(&asked, output));
    }
    let folder = &Folder::new(base, args.path.as_deref())?;
    let (saved, checks) = (None, !args.no_checks);
    let asked = Asked { folder, base, running, planning, saved, checks };
    runtime::wait_for(run(&asked, output))
}

pub(crate) fn destroy(
    base: &Path,
    args: &Destroy,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = &Folder::new(base, args.folder.folder.as_deref())?;
    if folder.spec_if_any().is_ok_and(|spec| spec.is_none()) {
        stored_state::read_here(folder)?;
    }
    let planning = &args.planning();
    let running = &args.running;
    let asked = Asked { folder, base, running, planning, saved: None, checks: false };
    runtime::wait_for(run(&asked, output))
}

/// The request of the user.
struct Asked<'a> {
    folder: &'a Folder,
    base: &'a Path,
    running: &'a Running,
    planning: &'a Planning,
    /// The saved plan to make again and run; `None` if a new plan is made.
    saved: Option<&'a SavedPlan>,
    /// True if the checks run afterwards.
    checks: bool,
}

impl Asked<'_> {
    /// Returns the options of the plan: those of the saved plan, else those of this command.
    fn options(&self) -> Result<Options, CommandError> {
        match self.saved {
            Some(saved) => Ok(saved.inputs.options.clone()),
            None => planning::options(self.planning),
        }
    }

    /// Returns the options for resolving the spec. A saved plan for the service on this machine is made again
    /// for that service.
    fn spec_args(&self) -> SpecArgs {
        let given = self.planning.spec();
        let local = given.local || self.saved.is_some_and(saved_plan::is_local);
        SpecArgs { local, ..given }
    }

    /// Returns true if the live objects are read. A saved plan is always compared with them, however it was
    /// made.
    fn refresh(&self) -> bool {
        self.saved.is_some() || !self.planning.no_refresh
    }

    /// Returns true if the user is asked before the run. A saved plan was reviewed before.
    fn asks(&self) -> bool {
        self.saved.is_none() && !self.running.yes
    }

    /// Fails if the command would have to ask for confirmation and cannot, before anything is planned or
    /// called.
    fn refuse_unasked(&self) -> Result<(), CommandError> {
        if !self.asks() || (!self.running.json && std::io::stdin().is_terminal()) {
            return Ok(());
        }
        let why =
            if self.running.json { "`--json` cannot ask for it" } else { "there is no terminal" };
        let (command, option) =
            if self.planning.destroy { ("destroy", " --destroy") } else { ("apply", "") };
        Err(CommandError::new(format!("{command} needs confirmation, and {why}")).help(format!(
            "give `--yes`, or save a plan with `plumb plan{option} --out FILE` and apply that file"
        )))
    }

    /// Refuses a saved plan that was made for other services or accounts than those of the providers and the
    /// state.
    fn refuse_other_places(
        &self,
        configured: &Configured,
        snapshot: &Snapshot,
    ) -> Result<(), CommandError> {
        let Some(saved) = self.saved else { return Ok(()) };
        configured.locations.refuse_plan_of(&saved_plan::locations(saved))?;
        configured.locations.refuse_elsewhere(snapshot)
    }

    /// Takes the lock and looks up the calls that earlier runs left open.
    async fn open(
        &self,
        holder: &Holder,
        (request, locations): (&Request<'_>, &Locations),
        teller: &Teller,
    ) -> Result<Session, CommandError> {
        let store = self.folder.store()?;
        let wait = self.planning.pace.lock_timeout;
        let base = self.saved.map(|saved| &saved.plan.base);
        let first = base.and_then(|base| Some((base.lineage.clone(), base.first_key.clone()?)));
        let mut session = Session::open(&*store, holder, wait, &System, first).await?;
        if let Err(elsewhere) = locations.refuse_elsewhere(session.snapshot()) {
            session.close().await?;
            return Err(elsewhere);
        }
        seal_plain(&mut session, self.folder, teller.output()).await?;
        recover_open(&mut session, request.providers, &request.secrets(), teller).await?;
        Ok(session)
    }

    /// Makes the plan under the lock. A saved plan is made again.
    async fn plan(
        &self,
        session: &Session,
        (request, locations): (&Request<'_>, &Locations),
    ) -> Result<(Plan, Diagnostics), ApplyError> {
        let snapshot = session.snapshot();
        let (plan, mut found) = match self.saved {
            Some(saved) => {
                if saved.plan.base.lineage == snapshot.lineage {
                    check_secrets(&saved.inputs.secrets, request.config, snapshot)?;
                }
                make_again(&saved.plan, snapshot, request).await?
            }
            None => make(snapshot, request).await?,
        };
        let with_another_key = locations.with_another_key(snapshot);
        found.extend(locations::another_account(&plan, &with_another_key));
        Ok((plan, found))
    }

    /// Returns the command that continues if this run is stopped.
    fn onward(&self) -> Onward {
        match (self.planning.selection.is_narrowed(), self.planning.destroy) {
            _ if self.saved.is_some() => Onward::NewPlan,
            (true, _) => Onward::Same,
            (false, true) => Onward::Destroy,
            (false, false) => Onward::Apply,
        }
    }

    /// Returns the checks to run afterwards. Returns `None` for a narrowed plan, as it may leave out what
    /// they need.
    fn checks(&self, config: &Config, output: &Output) -> Option<Config> {
        let planning = self.planning;
        let wanted = self.checks && !planning.destroy && !planning.refresh_only;
        let checks = checks::of(config).filter(|_| wanted)?;
        if !planning.selection.is_narrowed() {
            return Some(checks);
        }
        output.talk("the plan leaves something out, so no checks run; `plumb check` runs them\n");
        None
    }
}

/// Makes a plan under the lock, shows it, asks for confirmation and runs it.
async fn run(asked: &Asked<'_>, output: &Arc<Output>) -> Result<Status, CommandError> {
    let Asked { folder, base, running, planning, saved, .. } = *asked;
    let stop = Stopping::listen(output)?;
    let teller = Teller::new(output, running.json);
    let (options, refresh) = (asked.options()?, asked.refresh());
    let folded = stop.unless(stored_state::load_if_told(folder)).await?;
    if folded.first_run {
        saved.map_or(Ok(()), |saved| saved_plan::refuse_without_state(saved, folder))?;
    }
    let mut resolved = resolved::read(folder, base, &asked.spec_args(), &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok(refuse(&Made::refused(resolved), &teller, output));
    }
    asked.refuse_unasked()?;
    let configured = stop.unless(resolved.connect(folder, output)).await?;
    let (sources, said) = resolved.take_findings();
    let request = resolved.request(&configured, &options, refresh);
    if let Some(diagnostics) = planning::refuse_unreachable(&request, &configured) {
        return Ok(refuse(&Made::refused_for(sources, said, diagnostics), &teller, output));
    }
    let holder = System::holder(if planning.destroy { "destroy" } else { "apply" });
    asked.refuse_other_places(&configured, &folded.snapshot)?;
    let about = (&request, &configured.locations);
    let session = stop.unless(asked.open(&holder, about, &teller)).await?;
    let looked_at = refresh.then(|| System.clock().moment());
    let work = planning::patiently(output, asked.plan(&session, about));
    let (plan, found) = match stop.unless(async { Ok(work.await) }).await? {
        Ok(planned) => planned,
        Err(why) => return give_up(session, why, sources, &teller, output).await,
    };
    let made = planning::made(&resolved.config, &configured, (sources, said), plan, found)
        .asked_for(&options, refresh);
    let shows_digest = teller.is_json() || saved.is_some();
    let made = if shows_digest { made.with_digest() } else { made };
    let Some(plan) = &made.plan else {
        session.close().await?;
        return Ok(refuse(&made, &teller, output));
    };
    let shown = Shown { made: &made, running, teller: &teller, stop: &stop, output };
    let planned = plan::status(&made, false);
    let ended = match shown.decide(asked.asks()).await? {
        Decision::Declined => return decline(session, output).await,
        Decision::Nothing => {
            teller.nothing_to_run(session.snapshot())?;
            session.close().await?;
            planned
        }
        Decision::Run => {
            let variables = &resolved.variables();
            let run = Approved {
                asked,
                made: &made,
                plan,
                request: &request,
                configured: &configured,
                variables,
            };
            run.go(session, (&holder, looked_at), &teller, &stop).await?.or(planned)
        }
    };
    let Some(config) = asked.checks(&resolved.config, output).filter(|_| ended == Status::Done)
    else {
        return Ok(ended);
    };
    let (config, sources, configured, turns) =
        (&config, &made.sources, &configured, Turns::default());
    let world = World { config, sources, configured, output, stop: stop.token(), turns };
    check(&world, folder, &teller, &stop).await
}

async fn decline(session: Session, output: &Output) -> Result<Status, CommandError> {
    session.close().await?;
    output.talk("Nothing was applied.\n");
    Ok(Status::Cancelled)
}

/// A plan that is about to run.
struct Approved<'a> {
    asked: &'a Asked<'a>,
    made: &'a Made,
    plan: &'a Plan,
    request: &'a Request<'a>,
    configured: &'a Configured,
    variables: &'a BTreeMap<Name, Datum>,
}

impl Approved<'_> {
    /// Runs the plan. If the user was asked, time went by: then the plan is made again and compared first,
    /// and the run is refused if the new plan differs.
    async fn go(
        &self,
        mut session: Session,
        (holder, looked_at): (&Holder, Option<Moment>),
        teller: &Teller,
        stop: &Stopping,
    ) -> Result<Status, CommandError> {
        let Self { asked, made, plan, request, configured, variables } = self;
        let (mut again, mut looked_at) = (None, looked_at);
        if asked.asks() && request.refresh && !plan.is_empty() {
            looked_at = Some(System.clock().moment());
            let work = make_again(plan, session.snapshot(), request);
            match stop.unless(async { Ok(work.await) }).await? {
                Ok((plan, _)) => again = Some(plan.with_places(&made.sources)),
                Err(why) => {
                    let sources = made.sources.clone();
                    return give_up(session, why, sources, teller, teller.output()).await;
                }
            }
        }
        for record in configured.locations.records(session.snapshot()) {
            session.record(record)?;
        }
        let run = Run {
            plan: again.as_ref().unwrap_or(plan),
            providers: &configured.providers,
            variables,
            parallelism: asked.planning.pace.parallelism,
            name: &holder.run,
            looked_at,
            onward: asked.onward(),
        };
        running::run(session, run, teller, stop).await
    }
}

/// Ends a command whose plan cannot be made, or not made again.
async fn give_up(
    session: Session,
    why: ApplyError,
    sources: Sources,
    teller: &Teller,
    output: &Output,
) -> Result<Status, CommandError> {
    session.close().await?;
    match &why {
        ApplyError::Unplannable(found) => output.diagnostics(found, &sources),
        ApplyError::Stale(differences) => output.talk(&render::differences::text(differences)),
        _ => return Err(why.into()),
    }
    let error = CommandError::from(why);
    teller.plan(&Made::without_plan(sources, planning::as_diagnostics(&error)).view());
    Err(error)
}

/// Runs the checks after a successful apply. Whatever their results are, the apply is done.
async fn check(
    world: &World<'_>,
    folder: &Folder,
    teller: &Teller,
    stop: &Stopping,
) -> Result<Status, CommandError> {
    let status = check_all(world, folder, teller, stop).await;
    if !matches!(status, Ok(Status::Done)) {
        world.output.talk("The apply itself is done; `plumb check` runs the checks again.\n");
    }
    status
}

async fn check_all(
    world: &World<'_>,
    folder: &Folder,
    teller: &Teller,
    stop: &Stopping,
) -> Result<Status, CommandError> {
    // The message of `begin` would say that nothing was begun.
    stop.begin().map_err(|_| checks::stopped())?;
    let snapshot = stored_state::load(folder).await?.snapshot;
    let mut told = |outcome: &Outcome| teller.check(outcome);
    let outcomes = world.run(snapshot, &mut told).await?;
    world.output.talk(&checks::summary(&outcomes));
    Ok(checks::status(&outcomes))
}

/// The decision about a plan that was shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// The plan runs.
    Run,
    /// The plan has nothing to do.
    Nothing,
    /// The user did not confirm the plan.
    Declined,
}

/// A plan that is shown before it runs.
struct Shown<'a> {
    made: &'a Made,
    running: &'a Running,
    teller: &'a Teller,
    stop: &'a Stopping,
    output: &'a Arc<Output>,
}

impl Shown<'_> {
    /// Shows the plan, and asks for confirmation. A plan that only takes live values into the state needs
    /// none.
    async fn decide(&self, asks: bool) -> Result<Decision, CommandError> {
        let Self { made, running, teller, stop, output } = self;
        teller.plan(&made.view());
        if !running.json {
            let steps = running.steps;
            plan::print(made, PlanFormat::Text, steps, output);
        }
        let Some(plan) = &made.plan else { return Ok(Decision::Nothing) };
        if plan.is_empty() && plan.seen.is_empty() {
            return Ok(Decision::Nothing);
        }
        if !asks || plan.is_empty() || confirm(QUESTION, stop, output).await? {
            return Ok(Decision::Run);
        }
        Ok(Decision::Declined)
    }
}

/// Shows the errors, and the plan if only policies deny it.
fn refuse(made: &Made, teller: &Teller, output: &Output) -> Status {
    teller.plan(&made.view());
    if teller.is_json() {
        output.diagnostics(&made.diagnostics, &made.sources);
    } else {
        plan::print(made, PlanFormat::Text, false, output);
    }
    Status::Failed
}

/// Refuses options that would change a saved plan.
fn refuse_planning(planning: &Planning) -> Result<(), CommandError> {
    let given = [
        ("--target", !planning.selection.target.is_empty()),
        ("--exclude", !planning.selection.exclude.is_empty()),
        ("--replace", !planning.replace.is_empty()),
        ("--no-refresh", planning.no_refresh),
        ("--refresh-only", planning.refresh_only),
        ("--destroy", planning.destroy),
        ("--policy", !planning.policy.policies.is_empty()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(CommandError::new(format!("{name} does not go with a saved plan"))
            .help("a saved plan is applied exactly as it is: give the option to `plumb plan`")),
        None => Ok(()),
    }
}
