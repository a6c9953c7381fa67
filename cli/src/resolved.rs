//! Resolves the spec of a folder: its text, the values of its variables, and the providers that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use apply::planning::{Request, make, schemas};
use engine::address::Name;
use engine::config::resolve::{Files, Given, ResolveInput, resolve, resolve_with};
use engine::config::settings::provider_settings;
use engine::config::{Config, Document, Variable};
use engine::diagnostics::{Diagnostic, Diagnostics, Sources};
use engine::digest::{Fingerprint, SealKey};
use engine::graph::Graph;
use engine::plan::file::{Inputs, SpecFile};
use engine::plan::input::Options;
use engine::plan::{Plan, WrittenSecret, written_secrets};
use engine::schema::ProviderSchema;
use engine::state::Snapshot;
use engine::stored::Stored;
use engine::value::Datum;

use render::view::Units;

use crate::args::SpecArgs;
use crate::checks;
use crate::data_reader::Reader;
use crate::environment;
use crate::error::CommandError;
use crate::folder::Folder;
use crate::log::Phase;
use crate::named_files;
use crate::output::Output;
use crate::planning::units;
use crate::policy_files;
use crate::providers::{Configured, Described};
use crate::spec_text::{self, SpecText};
use crate::stored_state;
use crate::system::System;
use crate::threads::Threads;
use crate::variables::{self, GivenVariables};

/// A spec that was read and resolved as far as possible.
pub(crate) struct Resolved {
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) config: Config,
    pub(crate) graph: Graph,
    pub(crate) described: Described,
    document: Document,
    input: ResolveInput,
    /// The policy files that were added to the spec.
    policies: Vec<SpecFile>,
    /// The reader of other states and web addresses, for look-ups.
    reader: Reader,
}

impl Resolved {
    /// Makes the providers callable. Their schemas may then hold values that follow from their addresses, so
    /// the spec is resolved again; nothing else in the result changes.
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

    /// Returns the parsed document of the spec.
    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the schemas of the provider instances.
    pub(crate) fn schemas(&self) -> &BTreeMap<Name, Arc<ProviderSchema>> {
        &self.input.providers
    }

    /// Resolves the spec again, with values for variables and with the schemas of callable providers.
    pub(crate) fn resolve_again(&mut self, given: BTreeMap<Name, Given>, configured: &Configured) {
        self.input.variables.extend(given);
        self.input.providers = schemas(&configured.providers);
        let (config, found) = resolve(&self.document, &self.input);
        self.config = config;
        if found.has_errors() && !self.diagnostics.has_errors() {
            self.diagnostics.extend(found);
        }
    }

    /// Takes the sources and the findings, to be shown.
    pub(crate) fn take_findings(&mut self) -> (Sources, Diagnostics) {
        (std::mem::take(&mut self.sources), std::mem::take(&mut self.diagnostics))
    }

    /// Returns the request for a plan. With `refresh`, the live objects are read.
    pub(crate) fn request<'a>(
        &'a self,
        configured: &'a Configured,
        options: &'a Options,
        refresh: bool,
    ) -> Request<'a> {
        let Self { config, graph, reader, .. } = self;
        let providers = &configured.providers;
        let (running, now_ms, workers) = (false, System::now_ms(), &Threads);
        Request { config, graph, providers, options, refresh, running, now_ms, workers, reader }
    }

    /// Returns the inputs of a plan of this spec, for a plan file. `key` is the key for fingerprints of
    /// secrets in the state.
    pub(crate) fn inputs(
        &self,
        sources: &Sources,
        folder: &Folder,
        options: &Options,
        key: &SealKey,
    ) -> Inputs {
        let mut files = self.input.files.clone();
        files.extend(self.described.descriptors().clone());
        let given = self.input.variables.keys();
        let given = given.filter_map(|name| Some((name.clone(), self.config.variables.get(name)?)));
        let (secret, open): (Vec<_>, Vec<_>) = given.partition(|(_, variable)| variable.sensitive);
        let fingerprint = |variable: &Variable| Fingerprint::of(&variable.value.value, key);
        let store = |variable: &Variable| Stored::of_sealed(&variable.value.value);
        Inputs {
            folder: None,
            place: None,
            spec: spec_text::files(folder.path(), sources, &self.policies),
            policies: self.policies.clone(),
            files,
            variables: open.into_iter().map(|(name, it)| (name, store(it))).collect(),
            secrets: secret.into_iter().map(|(name, it)| (name, fingerprint(it))).collect(),
            options: options.clone(),
        }
    }

    /// Returns the secrets that are written in the spec itself, in all places where a create of every
    /// resource would send them.
    pub(crate) async fn written_secrets(
        &self,
        configured: &Configured,
    ) -> Result<Vec<WrittenSecret>, CommandError> {
        let options = Options { validating: true, ..Options::default() };
        let request = self.request(configured, &options, false);
        let (plan, _) = make(&stored_state::no_state(), &request).await?;
        Ok(written_secrets(&plan, &self.config))
    }

    /// Returns the values of the variables.
    pub(crate) fn variables(&self) -> BTreeMap<Name, Datum> {
        let variables = self.config.variables.iter();
        variables.map(|(name, variable)| (name.clone(), variable.value.clone())).collect()
    }
}

/// Reads and resolves the spec of a folder. Makes no call.
pub(crate) fn read(
    folder: &Folder,
    base: &Path,
    variables: &SpecArgs,
    state: &Snapshot,
) -> Result<Resolved, CommandError> {
    read_and(false, folder, base, variables, state)
}

/// Reads and resolves the spec of a folder, and keeps its [document](Resolved::document).
pub(crate) fn read_with_document(
    folder: &Folder,
    base: &Path,
    variables: &SpecArgs,
    state: &Snapshot,
) -> Result<Resolved, CommandError> {
    read_and(true, folder, base, variables, state)
}

fn read_and(
    keeps_document: bool,
    folder: &Folder,
    base: &Path,
    variables: &SpecArgs,
    state: &Snapshot,
) -> Result<Resolved, CommandError> {
    let _phase = Phase::begin("resolve the spec");
    let text = match folder.spec_if_any()? {
        None if variables.all_types => SpecText::default(),
        None => return Err(folder.no_spec()),
        Some(text) => text,
    };
    let declared = declare(text, folder, base, variables, state)?;
    let Declared { mut text, described, mut diagnostics, given, files, policies } = declared;
    let providers = schemas(&described.configure(&environment::variable)?.providers);
    let input = ResolveInput { variables: given.values, places: given.places, providers, files };
    // The document is needed later only if connecting may change the schemas.
    let document = if described.is_empty() && !keeps_document {
        std::mem::take(&mut text.document)
    } else {
        text.document.clone()
    };
    let (config, mut found) = resolve_with(document, &input, &Threads);
    let (graph, cycles) = Graph::new_with(&config, &Threads);
    found.extend(cycles);
    found.extend(checks::shape::check(&config));
    if described.is_broken() {
        // Each resource of a provider that cannot be used would be reported as one of an unknown type.
        found = Diagnostics::from_iter([unchecked()]);
    }
    diagnostics.extend(found);
    diagnostics.sort();
    let (sources, document) = (text.sources, text.document);
    let reader = Reader::new(folder);
    Ok(Resolved {
        sources,
        diagnostics,
        config,
        graph,
        described,
        document,
        input,
        policies,
        reader,
    })
}

/// A spec of which only the variables and providers were evaluated.
struct Declared {
    text: SpecText,
    described: Described,
    diagnostics: Diagnostics,
    given: GivenVariables,
    files: Files,
    policies: Vec<SpecFile>,
}

fn declare(
    mut text: SpecText,
    folder: &Folder,
    base: &Path,
    variables: &SpecArgs,
    state: &Snapshot,
) -> Result<Declared, CommandError> {
    let variable = environment::variable;
    let policies = match folder.saved() {
        Some(inputs) => {
            policy_files::add_saved(&inputs.policies, &mut text);
            inputs.policies.clone()
        }
        None => policy_files::add(base, &variables.policies, &mut text)?,
    };
    let declared = text.document.variables.keys();
    let folders = (folder.path(), base);
    let mut given = match folder.saved() {
        Some(inputs) => variables::given_again(inputs, variables, folders, &variable)?,
        None => variables::given(declared, variables, folders, &variable)?,
    };
    if variables.unset {
        let unset = text.document.variables.keys().filter(|name| !given.values.contains_key(*name));
        let unset: Vec<Name> = unset.cloned().collect();
        given.values.extend(unset.into_iter().map(|name| (name, Given::Unset)));
    }
    let files = named_files::read_all(folder, &text.document);
    let (settings, found) =
        provider_settings(&text.document, (&given.values, &given.places), &files);
    let mut diagnostics = std::mem::take(&mut text.diagnostics);
    diagnostics.extend(found);
    let say = (&mut text.sources, &mut diagnostics);
    let mut described = Described::of(folder, &text.document, &settings, state, say)?;
    if variables.all_types {
        described = described.or_serverless()?;
    }
    described.check(&variable, &mut diagnostics);
    let described = described.with_local(variables.local);
    diagnostics
        .extend(environment::unknown(text.document.variables.keys(), &described.variables()));
    environment::all_readable()?;
    Ok(Declared { text, described, diagnostics, given, files, policies })
}

/// Returns the providers of these names, for commands that act on a state or a saved plan and not on the
/// spec. Their descriptors and addresses come from the provider blocks of the spec, if there is one; nothing
/// else of the spec counts.
///
/// Reports the mistakes in the spec only if one of these providers cannot be used because of them.
pub(crate) fn named_providers(
    names: &BTreeSet<Name>,
    folder: &Folder,
    (base, variables): (&Path, &SpecArgs),
    output: &Output,
) -> Result<Described, CommandError> {
    let Some(text) = folder.spec_if_any()? else {
        let described = Described::named(names, Described::default())?;
        return Ok(described.with_local(variables.local));
    };
    let torn = text.document.torn;
    let declared = declare(text, folder, base, variables, &stored_state::no_state())?;
    let Declared { text, described, mut diagnostics, .. } = declared;
    let named = if torn {
        let message = "the spec cannot be read, so where its providers are is not known";
        Err(CommandError::new(message).help("fix the spec first"))
    } else {
        Described::named(names, described).map(|it| it.with_local(variables.local))
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
        .help("fix the provider first")
}

/// Checks the rules that need neither the state nor a call, as if every resource were to be created.
pub(crate) async fn check_rules(resolved: &Resolved) -> Result<Diagnostics, CommandError> {
    if resolved.diagnostics.has_errors() {
        return Ok(Diagnostics::new());
    }
    let configured = resolved.described.configure(&environment::variable)?;
    let options = Options { validating: true, ..Options::default() };
    let request = resolved.request(&configured, &options, false);
    let (_, found) = make(&stored_state::no_state(), &request).await?;
    Ok(found)
}

/// Plans without reading live objects. Returns the changes between the spec and a state, and the units of
/// numbers; `None` if the plan has errors.
pub(crate) async fn plan_unseen(
    resolved: &Resolved,
    state: &Snapshot,
) -> Result<Option<(Plan, Units)>, CommandError> {
    let configured = resolved.described.configure(&environment::variable)?;
    let options = Options { validating: true, ..Options::default() };
    let request = resolved.request(&configured, &options, false);
    let (plan, found) = make(state, &request).await?;
    Ok((!found.has_errors()).then(|| (plan, units(&configured))))
}
