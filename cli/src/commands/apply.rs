//! `plumb apply` and `plumb destroy`: a plan is made under the lock, shown, confirmed and run; or a
//! saved plan is run, exactly it or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use apply::planning::{Request, make};
use apply::session::Session;
use apply::verify::{look_and_verify, verify_secrets};
use apply::{Host as _, Moment, Providers};
use engine::address::Name;
use engine::config::Config;
use engine::config::resolve::Given;
use engine::config::settings::provider_variables;
use engine::diagnostics::{Diagnostics, Sources};
use engine::plan::Plan;
use engine::plan::file::SavedPlan;
use engine::stored::KnownSecrets;
use state::Holder;

use super::{plan, plan_origin, saved_plan};
use crate::args::{Apply, Destroy, PlanFormat, Planning, Running};
use crate::checks::{self, Outcome, Turns, World};
use crate::environment;
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
use crate::variables;

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
    if let Some(file) = given.filter(|path| path.is_file()) {
        return runtime::wait_for(of_file(base, &file, args, output));
    }
    let folder = Folder::new(base, args.path.as_deref())?;
    let (running, planning) = (&args.running, &args.planning);
    let asked = Asked { folder: &folder, base, running, planning, checks: !args.no_checks };
    runtime::wait_for(of_spec(&asked, output))
}

pub(crate) fn destroy(
    base: &Path,
    args: &Destroy,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let planning = args.planning();
    let (folder, running, planning) = (&folder, &args.running, &planning);
    runtime::wait_for(of_spec(&Asked { folder, base, running, planning, checks: false }, output))
}

/// What was asked for.
struct Asked<'a> {
    folder: &'a Folder,
    base: &'a Path,
    running: &'a Running,
    planning: &'a Planning,
    /// True if the checks run afterwards.
    checks: bool,
}

/// A plan that was made under the lock.
struct Opened {
    session: Session,
    plan: Plan,
    found: Diagnostics,
    /// When what is live was looked at for it.
    looked_at: Moment,
}

impl Asked<'_> {
    /// Takes the lock, looks up what is open, and plans.
    async fn open(
        &self,
        holder: &Holder,
        (request, locations): (&Request<'_>, &Locations),
        teller: &Teller,
    ) -> Result<Opened, CommandError> {
        let store = self.folder.store()?;
        let wait = self.planning.pace.lock_timeout;
        let mut session = Session::open(&*store, holder, wait, &System, None).await?;
        if let Err(elsewhere) = locations.refuse_elsewhere(session.snapshot()) {
            session.close().await?;
            return Err(elsewhere);
        }
        let with_another_key = locations.with_another_key(session.snapshot());
        seal_plain(&mut session, self.folder, teller.output()).await?;
        recover_open(&mut session, request.providers, &request.secrets(), teller).await?;
        let looked_at = System.clock().moment();
        let planning = make(session.snapshot(), request);
        let (plan, mut found) = planning::patiently(teller.output(), planning).await?;
        found.extend(locations::another_account(&plan, &with_another_key));
        Ok(Opened { session, plan, found, looked_at })
    }

    /// The checks to run afterwards. A plan that leaves something out may leave out what they need.
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

/// Plans under the lock, shows, asks, runs.
#[expect(clippy::too_many_lines, reason = "the order of an apply, from the spec to its end")]
async fn of_spec(asked: &Asked<'_>, output: &Arc<Output>) -> Result<Status, CommandError> {
    let Asked { folder, base, running, planning, .. } = *asked;
    let stop = Stopping::listen(output)?;
    let teller = Teller::new(output, running.json);
    let options = planning::options(planning)?;
    let folded = stop.unless(stored_state::load_if_told(folder)).await?;
    let mut resolved = resolved::read(folder, base, &planning.selection.spec, &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok(refuse(&Made::refused(resolved), &teller, output));
    }
    refuse_unasked(running)?;
    let variables = resolved.variables();
    let configured = stop.unless(resolved.connect(folder, output)).await?;
    let request = resolved.request(&configured, &options, !planning.no_refresh);
    if let Some(diagnostics) = planning::refuse_unreachable(&request, &configured) {
        let made = Made::refused_for(resolved, diagnostics);
        return Ok(refuse(&made, &teller, output));
    }
    let holder = System::holder(if planning.destroy { "destroy" } else { "apply" });
    let opening = asked.open(&holder, (&request, &configured.locations), &teller);
    let Opened { mut session, plan, found, looked_at } = stop.unless(opening).await?;
    let checks = asked.checks(&resolved.config, output);
    let secrets = request.refresh.then(|| request.secrets());
    let mut made = planning::finish(resolved, &configured, plan, found)
        .asked_for(&options, !planning.no_refresh);
    if teller.is_json() {
        made = made.with_digest();
    }
    let Some(plan) = &made.plan else {
        session.close().await?;
        return Ok(refuse(&made, &teller, output));
    };
    let shown = Shown { made: &made, running, teller: &teller, stop: &stop, output };
    let planned = plan::status(&made, false);
    let decision = shown.decide().await?;
    if decision == Decision::Declined {
        session.close().await?;
        output.talk("Nothing was applied.\n");
        return Ok(Status::Cancelled);
    }
    let ended = if decision == Decision::Run {
        for record in configured.locations.records(session.snapshot()) {
            session.record(record)?;
        }
        let (session, looked_at) = match &secrets {
            Some(secrets) => {
                let (session, again) =
                    shown.verified(session, &configured.providers, secrets).await?;
                (session, Some(again.unwrap_or(looked_at)))
            }
            None => (session, None),
        };
        let run = Run {
            plan,
            providers: &configured.providers,
            variables: &variables,
            parallelism: planning.pace.parallelism,
            name: &holder.run,
            looked_at,
            onward: onward(planning),
        };
        running::run(session, run, &teller, &stop).await?.or(planned)
    } else {
        teller.nothing_to_run(session.snapshot())?;
        session.close().await?;
        planned
    };
    match checks {
        Some(config) if ended == Status::Done => {
            let (config, sources, configured) = (&config, &made.sources, &configured);
            let turns = Turns::default();
            let world = World { config, sources, configured, output, stop: stop.token(), turns };
            check(&world, folder, &teller, &stop).await
        }
        _ => Ok(ended),
    }
}

/// What goes on where such a run was stopped.
fn onward(planning: &Planning) -> Onward {
    match (planning.selection.is_narrowed(), planning.destroy) {
        (true, _) => Onward::Same,
        (false, true) => Onward::Destroy,
        (false, false) => Onward::Apply,
    }
}

/// Refuses an apply that could not ask for confirmation, before anything is planned or called.
fn refuse_unasked(running: &Running) -> Result<(), CommandError> {
    if running.yes || (!running.json && std::io::stdin().is_terminal()) {
        return Ok(());
    }
    let why = if running.json { "`--json` cannot ask for it" } else { "there is no terminal" };
    Err(CommandError::new(format!("apply needs confirmation, and {why}"))
        .help("give `--yes`, or save a plan with `plumb plan --out FILE` and apply that file"))
}

/// Runs the checks after an apply that ended well. Whatever becomes of them, it is done.
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
    // By itself it says that nothing was begun.
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
    /// It runs.
    Run,
    /// It has nothing to do.
    Nothing,
    /// The user did not confirm it.
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
    /// Shows it, and asks whether to run it. A plan that does nothing but take into the state what
    /// is live needs no yes.
    async fn decide(&self) -> Result<Decision, CommandError> {
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
        if running.yes || plan.is_empty() || confirm(QUESTION, stop, output).await? {
            return Ok(Decision::Run);
        }
        Ok(Decision::Declined)
    }

    /// What somebody said yes to runs where it still fits what is live, as a saved plan does: nobody knows
    /// how long the question stood there. With when that was looked at, where it was.
    async fn verified(
        &self,
        session: Session,
        providers: &Providers,
        secrets: &KnownSecrets,
    ) -> Result<(Session, Option<Moment>), CommandError> {
        let was_asked = |plan: &&Plan| !self.running.yes && !plan.is_empty();
        let Some(plan) = self.made.plan.as_ref().filter(was_asked) else {
            return Ok((session, None));
        };
        let looked_at = System.clock().moment();
        let looking =
            async { Ok(look_and_verify(plan, session.snapshot(), providers, secrets).await?) };
        match self.stop.unless(looking).await {
            Ok(()) => Ok((session, Some(looked_at))),
            Err(why) => {
                session.close().await?;
                Err(why)
            }
        }
    }
}

fn refuse(made: &Made, teller: &Teller, output: &Output) -> Status {
    output.diagnostics(&made.diagnostics, &made.sources);
    teller.plan(&made.view());
    Status::Failed
}

/// Runs a saved plan, exactly it or nothing. Of the spec, if there is one, only the provider blocks
/// are read: where their APIs are, and how they are called.
async fn of_file(
    base: &Path,
    file: &Path,
    args: &Apply,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let stop = Stopping::listen(output)?;
    let teller = Teller::new(output, args.running.json);
    refuse_planning(&args.planning)?;
    let saved = saved_plan::read(file)?;
    refuse_variables(&saved.plan, &Folder::new(base, None)?, &args.planning)?;
    plan_origin::refuse_elsewhere(&saved, base, args.path.as_deref().unwrap_or(file))?;
    let folder = Folder::new(base, None)?;
    let folded = stop.unless(stored_state::load(&folder)).await?;
    if folded.first_run {
        plan_origin::refuse_without_state(&saved, &folder)?;
    }
    let mut names: BTreeSet<_> = saved.plan.base.providers.keys().cloned().collect();
    names.extend(crate::providers::names(&folded.snapshot));
    let given = (base, &args.planning.selection.spec);
    let described = resolved::named_providers(&names, &folder, given, output)?;
    let local = args.planning.selection.spec.local || saved_plan::is_local(&saved);
    let described = described.with_local(local);
    let connecting = described.connect(&folder, &environment::variable, output);
    let configured = stop.unless(connecting).await?;
    if configured.missing.has_errors() {
        let (missing, sources) = (configured.missing, Sources::default());
        return Ok(refuse(&Made::without_plan(sources, missing), &teller, output));
    }
    let sources = Sources::default();
    let view = saved_plan::view(&saved, &sources);
    configured.locations.refuse_plan_of(&view.locations)?;
    configured.locations.refuse_elsewhere(&folded.snapshot)?;
    teller.plan(&view);
    if !teller.is_json() {
        let steps = args.running.steps;
        plan::data(&view, PlanFormat::Text, steps, output);
    }
    let plan = &saved.plan;
    let given = variables::given(
        plan.base.secrets.keys(),
        &args.planning.selection.spec,
        base,
        &environment::variable,
    )?;
    let asked = (args, &given);
    let checked = stop.unless(open_checked(&folder, &saved, asked, &configured, &teller));
    let (mut session, holder, looked_at) = checked.await?;
    for record in configured.locations.records(session.snapshot()) {
        session.record(record)?;
    }
    let variables = variables::secrets(&given, &plan.base);
    if let Err(error) = verify_secrets(plan, &variables, session.snapshot()) {
        session.close().await?;
        return Err(error.into());
    }
    let run = Run {
        plan,
        providers: &configured.providers,
        variables: &variables,
        parallelism: args.planning.pace.parallelism,
        name: &holder,
        looked_at: Some(looked_at),
        onward: Onward::NewPlan,
    };
    // What the plan showed in doubt, and what still is, needs a decision as it does without a file.
    let planned =
        if session.snapshot().pending.is_empty() { Status::Done } else { Status::InDoubt };
    Ok(running::run(session, run, &teller, &stop).await?.or(planned))
}

/// Takes the lock and checks that a saved plan still fits what is live.
async fn open_checked(
    folder: &Folder,
    saved: &SavedPlan,
    (args, given): (&Apply, &BTreeMap<Name, Given>),
    configured: &Configured,
    teller: &Teller,
) -> Result<(Session, String, Moment), CommandError> {
    let holder = System::holder("apply");
    let base = &saved.plan.base;
    let origin = base.first_key.clone().map(|key| (base.lineage.clone(), key));
    let store = folder.store()?;
    let wait = args.planning.pace.lock_timeout;
    let mut session = Session::open(&*store, &holder, wait, &System, origin).await?;
    seal_plain(&mut session, folder, teller.output()).await?;
    let providers = &configured.providers;
    let secrets = KnownSecrets::of(variables::secrets(given, base).values());
    recover_open(&mut session, providers, &secrets, teller).await?;
    let (snapshot, looked_at) = (session.snapshot(), System.clock().moment());
    if let Err(error) = look_and_verify(&saved.plan, snapshot, providers, &secrets).await {
        session.close().await?;
        return Err(error.into());
    }
    Ok((session, holder.run, looked_at))
}

/// A saved plan has its values: a variable that neither it asks for nor a provider block needs
/// would change nothing, and who gives it means something.
fn refuse_variables(plan: &Plan, folder: &Folder, planning: &Planning) -> Result<(), CommandError> {
    let given = planning.selection.spec.variables.iter().map(|(name, _)| name.as_str());
    let mut open = given.filter(|name| !plan.base.secrets.contains_key(*name)).peekable();
    if open.peek().is_none() {
        return Ok(());
    }
    let text = folder.spec_if_any()?;
    let needed = text.map(|text| provider_variables(&text.document)).unwrap_or_default();
    let Some(name) = open.find(|name| !needed.contains(*name)) else { return Ok(()) };
    let name = render::safe::text(name);
    Err(CommandError::new(format!("the variable `{name}` does not go with this saved plan")).help(
        "a saved plan is applied exactly as it is: it takes only its secrets, and what the \
         provider blocks of the spec need; give other variables to `plumb plan`",
    ))
}

/// A saved plan is what it is: options that would make another one are mistakes.
fn refuse_planning(planning: &Planning) -> Result<(), CommandError> {
    let given = [
        ("--target", !planning.selection.target.is_empty()),
        ("--exclude", !planning.selection.exclude.is_empty()),
        ("--replace", !planning.replace.is_empty()),
        ("--no-refresh", planning.no_refresh),
        ("--refresh-only", planning.refresh_only),
        ("--destroy", planning.destroy),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(CommandError::new(format!("{name} does not go with a saved plan"))
            .help("a saved plan is applied exactly as it is: give the option to `plumb plan`")),
        None => Ok(()),
    }
}
