//! From a folder to a plan: what `plan`, `apply`, `destroy` and `drift` have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use apply::planning::{Request, make, make_anyway, recover_in_memory, schemas};
use engine::address::{Address, Name};
use engine::diagnostics::{Diagnostic, Diagnostics, Sources};
use engine::digest::Digest;
use engine::event::Event;
use engine::graph::Graph;
use engine::plan::input::{Mode, Options, Target};
use engine::plan::{Plan, saved};
use engine::schema::Attribute;
use engine::spec::resolve::{Files, Given, ResolveInput, resolve, resolve_with};
use engine::spec::settings::provider_settings;
use engine::spec::{Config, Document};
use engine::state::Snapshot;
use engine::value::Datum;
use render::view::{Aim, PlanView, Units};

use crate::args::{Planning, VariableArgs};
use crate::checks;
use crate::environment;
use crate::error::CommandError;
use crate::folder::Folder;
use crate::named_files;
use crate::output::Output;
use crate::providers::{Configured, Described};
use crate::spec_text::SpecText;
use crate::stored;
use crate::system::System;
use crate::threads::Threads;
use crate::variables;

/// After how long without an answer the user is told that one is awaited.
const SLOW: Duration = Duration::from_secs(5);

/// A spec that was read and resolved, as far as that could be done.
pub(crate) struct Resolved {
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) config: Config,
    pub(crate) graph: Graph,
    pub(crate) described: Described,
    document: Document,
    input: ResolveInput,
}

/// Reads and resolves the spec of a folder. Calls nothing.
pub(crate) fn read(
    folder: &Folder,
    base: &Path,
    variables: &VariableArgs,
    state: &Snapshot,
) -> Result<Resolved, CommandError> {
    let declared = declare(folder.spec()?, folder, base, variables, state)?;
    let Declared { mut text, described, mut diagnostics, given, files } = declared;
    let providers = schemas(&described.configure(&environment::variable)?.providers);
    let input = ResolveInput { variables: given, providers, files };
    // The document is needed again only where connecting may change the schemas.
    let document = if described.is_empty() {
        std::mem::take(&mut text.document)
    } else {
        text.document.clone()
    };
    let (config, mut found) = resolve_with(document, &input, &Threads);
    let (graph, cycles) = Graph::new_with(&config, &Threads);
    found.extend(cycles);
    found.extend(checks::shape::check(&config));
    if described.is_broken() {
        // Every resource of a provider that cannot be used would be of an unknown type.
        found = Diagnostics::from_iter([unchecked()]);
    }
    diagnostics.extend(found);
    if diagnostics.has_errors() && !described.is_broken() {
        diagnostics.push(no_rules());
    }
    diagnostics.sort();
    let (sources, document) = (text.sources, text.document);
    Ok(Resolved { sources, diagnostics, config, graph, described, document, input })
}

/// A spec of which only variables and providers were looked at.
struct Declared {
    text: SpecText,
    described: Described,
    diagnostics: Diagnostics,
    given: BTreeMap<Name, Given>,
    files: Files,
}

fn declare(
    mut text: SpecText,
    folder: &Folder,
    base: &Path,
    variables: &VariableArgs,
    state: &Snapshot,
) -> Result<Declared, CommandError> {
    let environment = environment::variable;
    let declared = text.document.variables.keys();
    let given = variables::given(declared, variables, base, &environment)?;
    let files = named_files::read_all(folder, &text.document);
    let (settings, found) = provider_settings(&text.document, &given, &files);
    let mut diagnostics = std::mem::take(&mut text.diagnostics);
    diagnostics.extend(found);
    let say = (&mut text.sources, &mut diagnostics);
    let mut described = Described::of(folder, &text.document, &settings, state, say)?;
    described.check(&environment, &mut diagnostics);
    Ok(Declared { text, described, diagnostics, given, files })
}

/// The providers of these names, for commands that go by a state or a saved plan and not by the
/// spec. How they are described and where they are stands in the provider blocks of the spec, if
/// there is one; nothing else of it counts.
///
/// What is wrong with the spec is said only where one of them cannot be called because of it.
pub(crate) fn named_providers(
    names: &BTreeSet<Name>,
    folder: &Folder,
    (base, variables): (&Path, &VariableArgs),
    output: &Output,
) -> Result<Described, CommandError> {
    let Some(text) = folder.spec_if_any()? else {
        return Described::named(names, Described::default());
    };
    let torn = text.document.torn;
    let declared = declare(text, folder, base, variables, &stored::no_state())?;
    let Declared { text, described, mut diagnostics, .. } = declared;
    let named = if torn {
        let message = "the spec cannot be read, so where its providers are is not known";
        Err(CommandError::new(message).help("mend the spec first"))
    } else {
        Described::named(names, described)
    };
    if named.is_err() {
        diagnostics.sort();
        output.diagnostics(&diagnostics, &text.sources);
    }
    named
}

fn unchecked() -> Diagnostic {
    Diagnostic::note("the resources of the spec were not checked")
        .detail("Which types there are is not known while a provider cannot be used.")
        .help("mend the provider first")
}

/// Rules see what references come to, which a mistake anywhere may change.
fn no_rules() -> Diagnostic {
    Diagnostic::note("the rules of the resource types were not checked")
        .help("mend the errors first: a rule may have more to say")
}

impl Resolved {
    /// Makes the providers callable. Their schemas may now hold what follows from their addresses,
    /// so the spec is resolved again, with the same result but for that.
    pub(crate) async fn connect(
        &mut self,
        folder: &Folder,
        output: &Output,
    ) -> Result<Configured, CommandError> {
        let configured = self.described.connect(folder, &environment::variable, output).await?;
        if !self.described.is_empty() {
            self.input.providers = schemas(&configured.providers);
            (self.config, _) = resolve(&self.document, &self.input);
        }
        Ok(configured)
    }

    /// The values of the variables.
    pub(crate) fn variables(&self) -> BTreeMap<Name, Datum> {
        let variables = self.config.variables.iter();
        variables.map(|(name, variable)| (name.clone(), variable.value.clone())).collect()
    }
}

/// Runs the rules that need neither what is there nor a call: as if everything were to be made.
pub(crate) async fn check_rules(resolved: &Resolved) -> Result<Diagnostics, CommandError> {
    if resolved.diagnostics.has_errors() {
        return Ok(Diagnostics::new());
    }
    let configured = resolved.described.configure(&environment::variable)?;
    let request = Request {
        config: &resolved.config,
        graph: &resolved.graph,
        providers: &configured.providers,
        options: &Options { validating: true, ..Options::default() },
        refresh: false,
        running: false,
        workers: &Threads,
    };
    let (_, found) = make(&stored::no_state(), &request).await?;
    Ok(found)
}

/// A plan and what is to be said about it; none where there are errors.
pub(crate) struct Made {
    pub(crate) plan: Option<Plan>,
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Diagnostics,
    units: Units,
    aim: Aim,
    digest: Option<Digest>,
}

impl Made {
    /// With the plan's digest in its view. It costs as much as writing the plan, so only formats
    /// that show it ask for it.
    pub(crate) fn with_digest(mut self) -> Self {
        self.digest = self.plan.as_ref().map(saved::digest);
        self
    }

    /// With what was asked for.
    pub(crate) fn asked_for(self, options: &Options, refresh: bool) -> Self {
        Self { aim: aim(options, refresh), ..self }
    }

    /// What is shown of it.
    pub(crate) fn view(&self) -> PlanView<'_> {
        let Self { plan, sources, diagnostics, units, aim, digest } = self;
        match plan {
            Some(plan) => PlanView::new(plan, sources, diagnostics, digest.as_ref())
                .with_units(units)
                .with_aim(*aim),
            None => PlanView::refused(sources, diagnostics),
        }
    }

    fn without_plan(sources: Sources, diagnostics: Diagnostics) -> Self {
        let (units, aim) = (Units::new(), Aim::default());
        Self { plan: None, sources, diagnostics, units, aim, digest: None }
    }

    /// What is made of a spec that cannot be planned.
    pub(crate) fn refused(resolved: Resolved) -> Self {
        let Resolved { sources, mut diagnostics, .. } = resolved;
        diagnostics.sort();
        Self::without_plan(sources, diagnostics)
    }

    /// What is made of a spec that cannot be planned for a reason that is not in it.
    pub(crate) fn refused_for(mut resolved: Resolved, diagnostics: Diagnostics) -> Self {
        resolved.diagnostics = diagnostics;
        Self::refused(resolved)
    }
}

/// Plans without a lock: reads the state, looks up in memory what is in doubt, observes, decides.
pub(crate) async fn plan(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<Made, CommandError> {
    let (made, question) = plan_anyway(folder, base, planning, output).await?;
    question.map_or(Ok(made), Err)
}

/// The same for who only shows it: a question that must be answered before it could run comes
/// beside it.
pub(crate) async fn plan_anyway(
    folder: &Folder,
    base: &Path,
    planning: &Planning,
    output: &Output,
) -> Result<(Made, Option<CommandError>), CommandError> {
    let options = options(planning)?;
    let folded = stored::load_if_told(folder).await?;
    let mut resolved = read(folder, base, &planning.selection.variables, &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok((Made::refused(resolved), None));
    }
    let configured = resolved.connect(folder, output).await?;
    let mut snapshot = folded.snapshot;
    let request = Request {
        config: &resolved.config,
        graph: &resolved.graph,
        providers: &configured.providers,
        options: &options,
        refresh: !planning.no_refresh,
        running: folded.holder.is_some(),
        workers: &Threads,
    };
    if let Some(diagnostics) = refuse_unreachable(&request, &configured) {
        return Ok((Made::refused_for(resolved, diagnostics), None));
    }
    let emit = |_: Event| {};
    recover_in_memory(&mut snapshot, &request, &System, &emit).await?;
    let making = make_anyway(&snapshot, &request);
    let (plan, found, question) = patiently(output, making).await?;
    let made =
        made_of(&mut resolved, &configured, plan, found).asked_for(&options, !planning.no_refresh);
    // The process ends soon: taking a large state and spec apart would only take time.
    std::mem::forget((snapshot, resolved));
    Ok((made, question.map(CommandError::from)))
}

/// Waits for a service to be read, and says so when it takes long: silence looks like a hang.
pub(crate) async fn patiently<T>(output: &Output, reading: impl Future<Output = T>) -> T {
    let mut reading = pin!(reading);
    tokio::select! {
        biased;
        read = &mut reading => return read,
        () = tokio::time::sleep(SLOW) => {}
    }
    output.talk("still reading what is live: the service is slow to answer…\n");
    reading.await
}

/// What stands in the way of the calls that a request needs.
pub(crate) fn refuse_unreachable(
    request: &Request<'_>,
    configured: &Configured,
) -> Option<Diagnostics> {
    (request.refresh && configured.missing.has_errors()).then(|| configured.missing.clone())
}

/// What was made of a plan. The planner has linted it: what is wrong with it is a diagnostic.
pub(crate) fn finish(
    mut resolved: Resolved,
    configured: &Configured,
    plan: Plan,
    found: Diagnostics,
) -> Made {
    made_of(&mut resolved, configured, plan, found)
}

/// The same, leaving what is not needed any more.
fn made_of(
    resolved: &mut Resolved,
    configured: &Configured,
    plan: Plan,
    found: Diagnostics,
) -> Made {
    let sources = std::mem::take(&mut resolved.sources);
    let mut diagnostics = std::mem::take(&mut resolved.diagnostics);
    diagnostics.extend(found);
    diagnostics.sort();
    if diagnostics.has_errors() {
        return Made::without_plan(sources, diagnostics);
    }
    let (units, aim) = (units(configured), Aim::default());
    Made { plan: Some(plan), sources, diagnostics, units, aim, digest: None }
}

/// What was asked for, as a view says it.
fn aim(options: &Options, refresh: bool) -> Aim {
    match options.mode {
        Mode::Apply if refresh => Aim::Apply,
        Mode::Apply => Aim::ApplyUnseen,
        Mode::Destroy => Aim::Destroy,
        Mode::RefreshOnly => Aim::RefreshOnly,
    }
}

/// The units of numbers, which schemas know.
fn units(configured: &Configured) -> Units {
    let mut units = Units::new();
    for (ty, schema) in schemas(&configured.providers).values().flat_map(|p| &p.types) {
        let unit =
            |(name, attribute): (&Name, &Attribute)| Some((name.clone(), attribute.unit.clone()?));
        let of_type = || schema.attributes.iter().filter_map(unit).collect();
        units.entry(ty.clone()).or_insert_with(of_type);
    }
    units
}

/// What was asked for, in the engine's terms.
pub(crate) fn options(planning: &Planning) -> Result<Options, CommandError> {
    let targets = |texts: &[String]| -> Result<Vec<Target>, CommandError> {
        texts.iter().map(|text| target(text)).collect()
    };
    let address = |text: &String| {
        text.parse().map_err(|error: engine::address::AddressError| {
            CommandError::new(format!("--replace: {error}"))
        })
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

fn target(text: &str) -> Result<Target, CommandError> {
    let wrong = |error: engine::address::AddressError| CommandError::new(error.to_string());
    if text.contains('[') {
        return Ok(Target::Instance(text.parse().map_err(wrong)?));
    }
    Ok(Target::Block(text.parse().map_err(wrong)?))
}

/// The diagnostics of an error, for formats that must always be complete.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_blocks_or_instances() {
        assert!(matches!(target("value.a").unwrap(), Target::Block(_)));
        assert!(matches!(target("value.a[eu]").unwrap(), Target::Instance(_)));
        assert!(target("value").is_err());
    }
}
