//! Makes a plan from a resolved spec: the common part of `plan`, `apply`, `destroy` and `drift`.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use apply::planning::{Request, make_anyway, recover_in_memory, schemas};
use apply::session::Folded;
use engine::address::{Address, AddressError, MoveRule, Name};
use engine::config::Config;
use engine::diagnostics::{Diagnostic, Diagnostics, Sources};
use engine::digest::{Digest, SealKey};
use engine::event::Event;
use engine::plan::file::Inputs;
use engine::plan::input::{Mode, Options};
use engine::plan::{Plan, WrittenSecret, file, written_secrets};
use engine::schema::Attribute;
use render::view::{Aim, LocationView, PlanView, Units};
use state::StoreError;
use state::mark::Mark;

use crate::args::Planning;
use crate::error::CommandError;
use crate::folder::Folder;
use crate::locations;
use crate::log::Phase;
use crate::output::Output;
use crate::providers::Configured;
use crate::resolved::{self, Resolved};
use crate::stored_state;
use crate::system::System;

/// The maximum number of times that live objects are read while another run deletes them.
const LOOKS_MAX: usize = 10;

/// The maximum number of times that live objects are read while another run changes them.
const MOVES_MAX: usize = 3;

/// The note that the command no longer waits for another run.
const OVERTAKEN: &str = "note: another run is at work: what it did while this plan was made may be shown as changed \
                         outside, or as still to be done\n";

/// The time after which the user is told that an answer is awaited.
const SLOW: Duration = Duration::from_secs(5);

/// A plan with all that is shown about it. `plan` is `None` if there are errors.
pub(crate) struct Made {
    pub(crate) plan: Option<Plan>,
    /// The plan that only policies deny, to be shown.
    pub(crate) denied: Option<Plan>,
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Diagnostics,
    units: Units,
    aim: Aim,
    digest: Option<Digest>,
    locations: Vec<LocationView>,
    /// The secrets that a plan file would hold in clear.
    pub(crate) written_secrets: Vec<WrittenSecret>,
    /// The inputs of the plan, if it is to be saved.
    pub(crate) inputs: Option<Inputs>,
    /// The moves that the user may have meant by the changes of the spec.
    pub(crate) proposed_moves: Vec<MoveRule>,
}

impl Made {
    /// Adds the plan's digest to its view. The digest costs as much as writing the plan, so only formats that
    /// show it ask for it.
    pub(crate) fn with_digest(mut self) -> Self {
        self.digest = self.plan.as_ref().map(file::digest);
        self
    }

    /// Returns true if the plan only takes changes from outside into the state, and there are some.
    pub(crate) fn accepts_drift(&self) -> bool {
        self.aim == Aim::RefreshOnly
            && self.plan.as_ref().is_some_and(|plan| !plan.drift.is_empty())
    }

    /// Sets the request of the user, for the view.
    pub(crate) fn asked_for(self, options: &Options, refresh: bool) -> Self {
        Self { aim: aim(options, refresh), ..self }
    }

    /// Returns the view of the plan.
    pub(crate) fn view(&self) -> PlanView<'_> {
        let Self { plan, denied, sources, diagnostics, units, aim, digest, locations, .. } = self;
        match plan.as_ref().or(denied.as_ref()) {
            Some(plan) => PlanView::new(plan, sources, diagnostics, digest.as_ref())
                .with_units(units)
                .with_aim(*aim)
                .with_locations(locations.clone()),
            None => PlanView::refused(sources, diagnostics),
        }
    }

    /// Returns a result without a plan, with the reasons.
    pub(crate) fn without_plan(sources: Sources, diagnostics: Diagnostics) -> Self {
        let (units, aim) = (Units::new(), Aim::default());
        Self {
            plan: None,
            denied: None,
            sources,
            diagnostics,
            units,
            aim,
            digest: None,
            locations: Vec::new(),
            written_secrets: Vec::new(),
            inputs: None,
            proposed_moves: Vec::new(),
        }
    }

    /// Returns the result for a spec that cannot be planned for a reason outside the spec. `found` are the
    /// findings in the spec.
    pub(crate) fn refused_for(sources: Sources, mut found: Diagnostics, why: Diagnostics) -> Self {
        found.extend(why);
        found.sort();
        Self::without_plan(sources, found)
    }

    /// Returns the result for a spec that has errors.
    pub(crate) fn refused(resolved: Resolved) -> Self {
        let Resolved { sources, mut diagnostics, .. } = resolved;
        diagnostics.sort();
        Self::without_plan(sources, diagnostics)
    }
}

/// Makes a plan without a lock, to save it in a file: with its inputs, and with the secrets that the file
/// would hold in clear.
pub(crate) async fn plan_to_save(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<Made, CommandError> {
    let (mut made, kept, question) = make(folder, base, planning, output).await?;
    if let (Some(plan), Some(Kept { resolved, configured, options, key })) = (&made.plan, kept) {
        let key = plan.base.first_key.as_ref().unwrap_or(&key);
        let written = resolved.written_secrets(&configured).await?;
        made.inputs = Some(resolved.inputs(&made.sources, folder, &options, key));
        let known: BTreeSet<String> =
            made.written_secrets.iter().map(|it| it.what.clone()).collect();
        made.written_secrets.extend(written.into_iter().filter(|it| !known.contains(&it.what)));
    }
    question.map_or(Ok(made), Err)
}

/// Makes a plan without a lock: reads the state, looks up calls in doubt in memory only, reads the live
/// objects, and plans.
pub(crate) async fn plan(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<Made, CommandError> {
    let (made, question) = plan_anyway(folder, base, planning, output).await?;
    question.map_or(Ok(made), Err)
}

/// Makes a plan as [`plan`] does, for commands that only show it. An error that must be settled before the
/// plan could run comes beside the plan.
pub(crate) async fn plan_anyway(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<(Made, Option<CommandError>), CommandError> {
    let (made, kept, question) = make(folder, base, planning, output).await?;
    // The process ends soon. To free a large state and spec would only take time.
    std::mem::forget(kept);
    Ok((made, question))
}

/// Makes a plan as [`plan_anyway`] does, with its config, for commands that write into the spec.
pub(crate) async fn plan_with_config(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<(Made, Option<Config>, Option<CommandError>), CommandError> {
    let (made, kept, question) = make(folder, base, planning, output).await?;
    Ok((made, kept.map(|kept| kept.resolved.config), question))
}

/// The inputs of a plan.
struct Kept {
    resolved: Resolved,
    configured: Configured,
    options: Options,
    key: SealKey,
}

async fn make(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<(Made, Option<Kept>, Option<CommandError>), CommandError> {
    let options = options(planning)?;
    let folded = stored_state::load_if_told(folder).await?;
    warn_of_arrival(folded.mark.as_ref(), output);
    let mut resolved = resolved::read(folder, base, &planning.spec(), &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok((Made::refused(resolved), None, None));
    }
    let configured = resolved.connect(folder, output).await?;
    configured.locations.refuse_elsewhere(&folded.snapshot)?;
    let with_another_key = configured.locations.with_another_key(&folded.snapshot);
    let (sources, said) = resolved.take_findings();
    let request = resolved.request(&configured, &options, !planning.no_refresh);
    if let Some(diagnostics) = refuse_unreachable(&request, &configured) {
        return Ok((Made::refused_for(sources, said, diagnostics), None, None));
    }
    let key = folded.snapshot.seal_key.clone();
    let (plan, mut found, question) = look(folder, folded, &request, output).await?;
    found.extend(locations::another_account(&plan, &with_another_key));
    let made = made(&resolved.config, &configured, (sources, said), plan, found)
        .asked_for(&options, !planning.no_refresh);
    Ok((made, Some(Kept { resolved, configured, options, key }), question))
}

/// Warns that the state was not moved here completely. Until it is, an apply is refused.
fn warn_of_arrival(mark: Option<&Mark>, output: &Output) {
    let Some(Mark::Arriving { from, .. }) = mark else { return };
    let from = render::safe::text(from);
    output.talk(&format!(
        "warning: the state is on its way here from {from}, and may be older than there; `plumb state \
         migrate` with the same `--from` finishes that\n"
    ));
}

/// Looks up calls in doubt, reads the live objects, and plans. If objects differ or are gone, another run may
/// have done that after the state was read. So everything is read again before the plan is shown or an error
/// is returned.
async fn look(
    folder: &Folder,
    mut folded: Folded,
    request: &Request<'_>,
    output: &Output,
) -> Result<(Plan, Diagnostics, Option<CommandError>), CommandError> {
    let mut left = LOOKS_MAX;
    loop {
        let request = Request { running: folded.holder.is_some(), ..*request };
        let (mut snapshot, at) = (folded.snapshot, folded.at);
        recover_in_memory(&mut snapshot, &request, &System, &|_: Event| {}).await?;
        let (plan, found, question) = patiently(output, make_anyway(&snapshot, &request)).await?;
        if question.is_none() && (!request.refresh || agrees(&plan, &found)) {
            // The process ends soon. To free a large state would only take time.
            std::mem::forget(snapshot);
            return Ok((plan, found, None));
        }
        let was_held = folded.holder.is_some();
        folded = stored_state::load(folder).await?;
        left -= 1;
        let has_moved = folded.at != at;
        let Some(question) = question else {
            if has_moved && left > LOOKS_MAX - MOVES_MAX {
                continue;
            }
            if has_moved {
                output.talk(OVERTAKEN);
            }
            return Ok((plan, found, None));
        };
        match &folded.holder {
            // No other run held the lock during both reads.
            None if !was_held && left < LOOKS_MAX - 1 => {
                return Ok((plan, found, Some(question.into())));
            }
            Some(holder) if left == 0 => {
                let busy = StoreError::Locked(Box::new(holder.clone()));
                let busy = CommandError::from(busy).help(
                    "it takes objects away faster than they can be looked at: run the command \
                     again once it has ended",
                );
                return Ok((plan, found, Some(busy)));
            }
            _ if left == 0 => return Ok((plan, found, Some(question.into()))),
            _ => {}
        }
    }
}

/// Returns true if the plan found no difference that another run could have made during the reads.
fn agrees(plan: &Plan, found: &Diagnostics) -> bool {
    let differs = !plan.drift.is_empty() || !plan.seen.is_empty() || !plan.is_empty();
    !differs && !found.has_errors()
}

/// Waits for the answer of a service. Tells the user if that takes long, because silence looks like a hang.
pub(crate) async fn patiently<T>(output: &Output, reading: impl Future<Output = T>) -> T {
    let _phase = Phase::begin("observe and plan");
    let mut reading = pin!(reading);
    tokio::select! {
        biased;
        read = &mut reading => return read,
        () = tokio::time::sleep(SLOW) => {}
    }
    output.talk("still reading what is live: the service is slow to answer…\n");
    reading.await
}

/// Returns the errors about calls that a request needs and that cannot be made.
pub(crate) fn refuse_unreachable(
    request: &Request<'_>,
    configured: &Configured,
) -> Option<Diagnostics> {
    (request.refresh && configured.missing.has_errors()).then(|| configured.missing.clone())
}

/// Returns the result of a plan for a spec with these sources and findings. The planner has linted the plan;
/// its mistakes are among the diagnostics.
pub(crate) fn made(
    config: &Config,
    configured: &Configured,
    (sources, mut diagnostics): (Sources, Diagnostics),
    plan: Plan,
    found: Diagnostics,
) -> Made {
    diagnostics.extend(found);
    diagnostics.sort();
    let proposed_moves = plan.proposed_moves.iter().map(|it| it.rule.clone()).collect();
    let errors = diagnostics.errors();
    if errors > plan.denials {
        return Made { proposed_moves, ..Made::without_plan(sources, diagnostics) };
    }
    let locations = configured.locations.views(&plan);
    let written_secrets = written_secrets(&plan, config);
    let plan = Some(plan.with_places(&sources));
    let (plan, denied) = if errors == 0 { (plan, None) } else { (None, plan) };
    Made {
        proposed_moves,
        units: units(configured),
        aim: Aim::default(),
        digest: None,
        locations,
        written_secrets,
        inputs: None,
        plan,
        denied,
        sources,
        diagnostics,
    }
}

/// Returns the user's request in the form for a view.
fn aim(options: &Options, refresh: bool) -> Aim {
    match options.mode {
        Mode::Apply if refresh => Aim::Apply,
        Mode::Apply => Aim::ApplyUnseen,
        Mode::Destroy => Aim::Destroy,
        Mode::RefreshOnly => Aim::RefreshOnly,
    }
}

/// Returns the units of numbers, from the schemas.
pub(crate) fn units(configured: &Configured) -> Units {
    let mut units = Units::new();
    for (ty, schema) in schemas(&configured.providers).values().flat_map(|p| &p.types) {
        let unit =
            |(name, attribute): (&Name, &Attribute)| Some((name.clone(), attribute.unit.clone()?));
        let of_type = || schema.attributes.iter().filter_map(unit).collect();
        units.entry(ty.clone()).or_insert_with(of_type);
    }
    units
}

/// Returns the options of a plan in the engine's terms.
pub(crate) fn options(planning: &Planning) -> Result<Options, CommandError> {
    let wrong = |error: AddressError| CommandError::new(error.to_string());
    let targets = |texts: &[String]| -> Result<Vec<_>, CommandError> {
        texts.iter().map(|text| text.parse().map_err(wrong)).collect()
    };
    let address = |text: &String| {
        text.parse().map_err(|error: AddressError| CommandError::new(format!("--replace: {error}")))
    };
    Ok(Options {
        mode: match planning {
            Planning { destroy: true, .. } => Mode::Destroy,
            Planning { refresh_only: true, .. } => Mode::RefreshOnly,
            _ => Mode::Apply,
        },
        targets: targets(&planning.selection.target)?,
        excludes: targets(&planning.selection.exclude)?,
        replace: planning.replace.iter().map(address).collect::<Result<_, _>>()?,
        validating: false,
    })
}

/// Returns the diagnostics of an error, for formats that must always be complete.
pub(crate) fn as_diagnostics(error: &CommandError) -> Diagnostics {
    let diagnostic = Diagnostic::error(error.message.clone());
    let whole = match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    };
    let about =
        |address: &Address| Diagnostic::note(format!("{address} is one of them")).about(address);
    std::iter::once(whole).chain(error.about.iter().map(about)).collect()
}
