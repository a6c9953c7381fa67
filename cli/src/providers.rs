//! The providers that a spec and its state use, and the addresses of their APIs.
//!
//! `builtin` is always available. The serverless provider is available if the spec declares or uses it, or
//! the state does. It calls the service on this machine if the spec says `local = true` or the command
//! `--local`. Otherwise it needs addresses and a key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apply::Providers;
use engine::address::Name;
use engine::config::provider_choice::{base, key};
use engine::config::resolve::Files;
use engine::config::settings::{FOR_EACH, ProviderSettings};
use engine::config::{Document, Fetched};
use engine::diagnostics::{Diagnostic, Diagnostics, Sources, Span, nearest};
use engine::schema::ProviderSchema;
use engine::state::Snapshot;
use provider_builtin::Builtin;
use provider_http::{Descriptor, HttpProvider, Settings};
use provider_port::Provider as _;
use provider_serverless::Version;
use provider_serverless::jobs::Jobs;

use crate::child_service::{self, ChildService};
use crate::descriptor_source::{DescriptorSource, is_source, names_descriptor, secret_setting};
use crate::environment::{self, all_readable};
use crate::error::CommandError;
use crate::folder::Folder;
use crate::locations::Locations;
use crate::modules::Places;
use crate::named_files;
use crate::output::Output;
use crate::serverless_settings::{
    OF_SERVERLESS, asks_for_local, given, is_setting, no_service, refuse_address, report_local,
    version, version_by_address,
};
use crate::variables::Environment;

/// The providers that TOML descriptors describe, before the addresses of their APIs are known.
#[derive(Default)]
pub(crate) struct Described {
    instances: BTreeMap<Name, Instance>,
    /// The names of the providers that cannot be used. Their types are missing, and the spec may use some of
    /// these.
    unusable: BTreeSet<Name>,
    /// True if the command asks for the service on this machine.
    local: bool,
    /// The descriptors that the spec names, by the paths that they were read from.
    descriptors: Files,
    /// The parsed descriptors, by the same paths; `None` for a descriptor with mistakes.
    loaded: BTreeMap<String, Option<Descriptor>>,
}

/// The ends of the names of variables that say where a key is.
const FORMS_OF_KEYS: [&str; 2] = ["_FILE", "_COMMAND"];

/// The author of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// Plumb: the descriptor comes with it.
    Plumb,
    /// The author of the spec.
    Spec,
}

struct Instance {
    descriptor: Descriptor,
    /// The name of the provider; `None` if it is the name in the descriptor.
    alias: Option<Name>,
    /// The place in the spec where the provider is declared.
    header: Option<Span>,
    /// The settings in the spec, by key.
    settings: BTreeMap<String, String>,
    /// True if the spec has more settings, whose values are not known. The schemas are known then, and the
    /// address of the API is not.
    open: bool,
    /// True if it is the serverless provider.
    serverless: bool,
    author: Author,
    /// True if the spec asks for the service on this machine.
    local: bool,
}

/// Providers that can be called, with all that keeps them usable.
pub(crate) struct Configured {
    pub(crate) providers: Providers,
    /// The errors about missing addresses and keys.
    pub(crate) missing: Diagnostics,
    /// The client of the job API, if the serverless provider is used.
    pub(crate) jobs: Option<Jobs>,
    /// The services and accounts that the providers act on.
    pub(crate) locations: Locations,
    /// The lease of the service on this machine, if it is used.
    service: Option<ChildService>,
}

impl Configured {
    /// Returns true if a provider uses the service of the folder, which ends when no command needs it any
    /// more.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.service.is_some()
    }
}

/// Returns the schemas of the providers that come with Plumb, by instance name.
pub(crate) fn known_schemas() -> Result<BTreeMap<Name, Arc<ProviderSchema>>, CommandError> {
    let mut described = Described::default();
    described.add_serverless()?;
    Ok(apply::planning::schemas(&described.configure(&|_| None)?.providers))
}

/// Returns the settings of the providers that come with Plumb, by instance name.
pub(crate) fn known_settings() -> Result<BTreeMap<Name, Vec<String>>, CommandError> {
    let mut described = Described::default();
    described.add_serverless()?;
    Ok(described.settings())
}

impl Described {
    /// Describes the providers that the spec declares and uses, and those that the state names. Descriptors of the
    /// spec are read from its folder; a mistake in one is a diagnostic.
    pub(crate) fn of(
        folder: &Folder,
        document: &Document,
        settings: &BTreeMap<Name, ProviderSettings>,
        state: &Snapshot,
        (sources, diagnostics): (&mut Sources, &mut Diagnostics),
    ) -> Result<Self, CommandError> {
        let mut described = Self::default();
        for (name, settings) in settings {
            described.declare(folder, name, settings, (sources, diagnostics))?;
        }
        let serverless = Name::from(provider_serverless::NAME);
        let missing = !settings.contains_key(&serverless);
        if missing && (described.leaves_types(document) || names(state).contains(&serverless)) {
            described.add_serverless()?;
        }
        Ok(described)
    }

    /// Adds the serverless provider if there is no other.
    pub(crate) fn or_serverless(mut self) -> Result<Self, CommandError> {
        if self.instances.is_empty() && self.unusable.is_empty() {
            self.add_serverless()?;
        }
        Ok(self)
    }

    /// Returns the providers of these names: as the spec declares them, else as they come with Plumb. Fails
    /// if the spec declares one whose settings are not known, as another service must not be called in its
    /// place.
    pub(crate) fn named(names: &BTreeSet<Name>, mut declared: Self) -> Result<Self, CommandError> {
        let mut described = Self::default();
        for name in names {
            if declared.is_unusable(name) {
                let message = format!("the spec does not say how the provider `{name}` is called");
                let help = "fix the spec, or give the variables that its provider block needs";
                return Err(CommandError::new(message).help(help));
            }
            if let Some(instance) = declared.instances.remove(name) {
                described.instances.insert(name.clone(), instance);
                continue;
            }
            match &**name {
                provider_builtin::NAME => {}
                provider_serverless::NAME => described.add_serverless()?,
                other => {
                    return Err(CommandError::new(format!(
                        "there is no provider `{other}` here that can be used"
                    ))
                    .help(
                        "work in the folder whose spec declares it; `plumb validate` checks it",
                    ));
                }
            }
        }
        Ok(described)
    }

    /// Returns true if the spec declares the provider and part of the declaration is not known.
    fn is_unusable(&self, name: &Name) -> bool {
        self.unusable.contains(name) || self.instances.get(name).is_some_and(|found| found.open)
    }

    /// Returns the serverless provider alone, as a spec configures it. Jobs need no other provider.
    pub(crate) fn serverless(settings: Option<&ProviderSettings>) -> Result<Self, CommandError> {
        let mut values = BTreeMap::new();
        let local = settings.is_some_and(asks_for_local);
        let given = settings.into_iter().flat_map(|settings| &settings.values);
        for (key, setting) in given.filter(|(key, _)| !OF_SERVERLESS.contains(&&***key)) {
            if !setting.value.sensitive.is_empty() {
                return Err(CommandError::new(secret_setting(key, setting.span).summary));
            }
            let text = setting.value.value.as_str().ok_or_else(|| {
                CommandError::new(format!("the setting `{key}` of a provider is a text"))
            })?;
            values.insert(key.to_string(), text.to_owned());
        }
        let mut described = Self::default();
        let version = settings
            .map_or_else(version_by_address, |settings| version(settings, &mut Diagnostics::new()));
        values.retain(|key, _| is_setting(version, key));
        described.add_serverless_with(version, values, local)?;
        Ok(described)
    }

    /// Removes the providers that cannot be configured with their settings, and reports why.
    pub(crate) fn check(&mut self, environment: Environment<'_>, diagnostics: &mut Diagnostics) {
        self.instances.retain(|name, instance| {
            let Err(found) = instance.configure(environment) else { return true };
            // Nothing follows from settings that are not known. That they are not known was reported already.
            for diagnostic in found.iter().filter(|_| !instance.open) {
                diagnostics.push(diagnostic.clone().at(instance.header));
            }
            self.unusable.insert(name.clone());
            false
        });
    }

    /// Returns the settings of each instance.
    pub(crate) fn settings(&self) -> BTreeMap<Name, Vec<String>> {
        let instances = self.instances.iter();
        let all = instances.map(|(name, it)| {
            let more = OF_SERVERLESS.into_iter().filter(|_| it.serverless);
            let known = it.descriptor.settings().into_iter().chain(more);
            (name.clone(), known.map(str::to_owned).collect())
        });
        all.collect()
    }

    /// Returns true if a type that no provider has may belong to a provider that cannot be used.
    pub(crate) fn is_broken(&self) -> bool {
        !self.unusable.is_empty()
    }

    /// Returns the texts of the descriptors that the spec names, by the paths that they were read from.
    pub(crate) fn descriptors(&self) -> &Files {
        &self.descriptors
    }

    /// Returns true if no provider is described.
    pub(crate) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// With `local`, makes the serverless provider use the service on this machine, whatever the spec and the
    /// environment say.
    pub(crate) fn with_local(self, local: bool) -> Self {
        Self { local, ..self }
    }

    /// Returns the variables of the environment that the providers read.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let of = |instance: &Instance| {
            let descriptor = &instance.descriptor;
            let own = instance.alias.iter().flat_map(|alias| descriptor.variables_of(alias));
            own.chain(descriptor.variables().into_iter().map(str::to_owned)).collect::<Vec<_>>()
        };
        self.instances.values().flat_map(of).collect()
    }

    fn add_serverless(&mut self) -> Result<(), CommandError> {
        self.add_serverless_with(version_by_address(), BTreeMap::new(), false)
    }

    fn add_serverless_with(
        &mut self,
        version: Version,
        settings: BTreeMap<String, String>,
        local: bool,
    ) -> Result<(), CommandError> {
        let instance = Instance {
            descriptor: serverless(version)?,
            alias: None,
            header: None,
            settings,
            open: false,
            serverless: true,
            author: Author::Plumb,
            local,
        };
        self.instances.insert(provider_serverless::NAME.into(), instance);
        Ok(())
    }

    /// Returns true if a resource or a look-up of the spec or its modules has a type that none of the
    /// declared providers manages.
    fn leaves_types(&self, document: &Document) -> bool {
        let builtin = engine_types(&Builtin::new());
        let described: BTreeSet<Name> = self
            .instances
            .values()
            .flat_map(|instance| instance.descriptor.schema().types.into_keys())
            .collect();
        let known = |ty: &Name| builtin.contains(ty) || described.contains(ty);
        let modules = document.library.values().map(|module| &**module);
        let mut blocks = std::iter::once(document)
            .chain(modules)
            .flat_map(|document| document.resources.keys().chain(document.data.keys()));
        blocks.any(|block| Fetched::of(block).is_none() && !known(&block.ty))
    }

    fn declare(
        &mut self,
        folder: &Folder,
        name: &Name,
        settings: &ProviderSettings,
        (sources, diagnostics): (&mut Sources, &mut Diagnostics),
    ) -> Result<(), CommandError> {
        if settings.open.contains(FOR_EACH) {
            // The instances are not known. The reason was reported already.
            self.unusable.insert(name.clone());
            return Ok(());
        }
        let mut values = BTreeMap::new();
        let is_serverless = &**name == provider_serverless::NAME && !names_descriptor(settings);
        let is_text = |key: &Name| !(is_serverless && OF_SERVERLESS.contains(&&**key));
        for (key, setting) in settings.values.iter().filter(|(key, _)| is_text(key)) {
            match setting.value.value.as_str() {
                Some(text) => drop(values.insert(key.to_string(), text.to_owned())),
                None => diagnostics.push(
                    Diagnostic::error(format!("the setting `{key}` of a provider is a text"))
                        .at(setting.span),
                ),
            }
        }
        let source = DescriptorSource::of(settings, &mut values, diagnostics);
        let is_of_plumb = is_serverless || matches!(source, Some(DescriptorSource::Catalog(_)));
        let author = if is_of_plumb { Author::Plumb } else { Author::Spec };
        let descriptor = match source {
            Some(source) => self.read_source(folder, source, settings, (sources, diagnostics)),
            // The setting has no known value. The reason was reported already.
            None if settings.open.iter().any(is_source) => None,
            None if &**name == provider_builtin::NAME => return Ok(()),
            None if &**name == provider_serverless::NAME => {
                Some(serverless(version(settings, diagnostics))?)
            }
            None => {
                diagnostics.push(no_descriptor(name, settings));
                None
            }
        };
        let Some(descriptor) = descriptor else {
            self.unusable.insert(name.clone());
            return Ok(());
        };
        let local = is_serverless && asks_for_local(settings);
        if is_serverless {
            report_local(settings, diagnostics);
        }
        report_unknown(&descriptor, settings, is_serverless, diagnostics);
        refuse_secrets(&descriptor, settings, &mut values, diagnostics);
        values.retain(|key, _| descriptor.settings().contains(key.as_str()));
        // A setting that the descriptor does not have leaves open what its author meant, too.
        let given = settings.values.keys();
        let given = given.filter(|key| !is_source(key) && is_text(key)).count();
        let (header, open) =
            (Some(settings.header), !settings.open.is_empty() || values.len() < given);
        let alias = alias(name, descriptor.name());
        if let Some(problem) = self.shared_variable(&descriptor, alias.as_deref()) {
            diagnostics.push(Diagnostic::error(problem).at(settings.header).help(
                "choose a name or a key of `for_each` with other letters or digits: these make the names of the variables",
            ));
            self.unusable.insert(name.clone());
            return Ok(());
        }
        let instance = Instance {
            descriptor,
            alias,
            header,
            settings: values,
            open,
            serverless: is_serverless,
            author,
            local,
        };
        self.instances.insert(name.clone(), instance);
        Ok(())
    }

    /// Returns the problem of an instance whose own variables mean something else, too: the key of another
    /// instance, or the file or command of a key.
    fn shared_variable(&self, descriptor: &Descriptor, alias: Option<&str>) -> Option<String> {
        let own = descriptor.variables_of(alias?);
        if let Some(name) =
            own.iter().find(|name| FORMS_OF_KEYS.iter().any(|end| name.ends_with(end)))
        {
            return Some(format!("the variable {name} would be a key, and says where a key is"));
        }
        let others = self.instances.values().flat_map(|other| {
            other.alias.iter().flat_map(|alias| other.descriptor.variables_of(alias))
        });
        let shared: BTreeSet<String> = others.filter(|name| own.contains(name)).collect();
        shared.first().map(|name| format!("two providers would read the variable {name}"))
    }

    /// Reads the descriptor from the place that a provider block gives. Reports mistakes.
    fn read_source(
        &mut self,
        folder: &Folder,
        source: DescriptorSource<'_>,
        settings: &ProviderSettings,
        (sources, diagnostics): (&mut Sources, &mut Diagnostics),
    ) -> Option<Descriptor> {
        let (place, text) = match source {
            DescriptorSource::Refused => return None,
            DescriptorSource::Catalog(text) => {
                let file = sources.add("a descriptor of the catalog".to_owned(), text.to_owned());
                let (descriptor, found) = provider_http::load(text, file);
                diagnostics.extend(found);
                return descriptor;
            }
            DescriptorSource::Path(path) => {
                let text = named_files::read(folder, &path);
                (path, text)
            }
            DescriptorSource::Repository(of) => {
                let proven = match folder.saved() {
                    Some(_) => Ok(()),
                    None => Places::new(folder.path()).prove(&of.repository),
                };
                let place = of.place();
                let read = || named_files::read_inside(folder, &of.repository.place(), &place);
                let text = proven.and_then(|()| read());
                (place, text)
            }
        };
        self.load(folder, place, text, settings, (sources, diagnostics))
    }

    /// Parses the text of a descriptor, and keeps the result. Reports mistakes.
    fn load(
        &mut self,
        folder: &Folder,
        path: String,
        text: Result<Arc<str>, String>,
        settings: &ProviderSettings,
        (sources, diagnostics): (&mut Sources, &mut Diagnostics),
    ) -> Option<Descriptor> {
        // The instances of one block share their descriptor.
        if let Some(loaded) = self.loaded.get(&path) {
            return loaded.clone();
        }
        self.descriptors.insert(path.clone(), text.clone());
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                diagnostics.push(unreadable(&path, why, settings));
                return None;
            }
        };
        let file = sources.add(folder.join(&path).display().to_string(), text.clone());
        let (descriptor, found) = provider_http::load(&text, file);
        diagnostics.extend(found);
        self.loaded.insert(path, descriptor.clone());
        descriptor
    }

    /// Configures the providers without a call and without starting a service. That is enough for their
    /// schemas, and for calls to the addresses in the environment and the spec.
    pub(crate) fn configure(
        &self,
        environment: Environment<'_>,
    ) -> Result<Configured, CommandError> {
        self.configure_at(environment, false)
    }

    /// Configures the providers. `at_home` is true if `environment` gives the service of the spec's own
    /// folder.
    fn configure_at(
        &self,
        environment: Environment<'_>,
        at_home: bool,
    ) -> Result<Configured, CommandError> {
        let mut providers = Providers::new();
        let mut missing = Diagnostics::new();
        let (mut jobs, mut locations) = (None, Locations::default());
        providers.insert(provider_builtin::NAME.into(), Arc::new(Builtin::new()));
        for (name, instance) in &self.instances {
            let provider = instance
                .configure_at(environment, at_home)
                .map_err(|diagnostics| CommandError::new(first(&diagnostics)))?;
            if instance.serverless && provider.missing().has_errors() {
                let Instance { descriptor, settings, header, .. } = instance;
                missing.push(no_service((descriptor, settings, *header), environment));
            } else {
                missing.extend(provider.missing().clone());
            }
            if let Some(service) = provider.service() {
                locations.insert(name.clone(), service, provider.account());
            }
            if instance.serverless {
                let opened = Jobs::open(&instance.descriptor, &instance.called(environment));
                jobs = Some(opened.map_err(|wrong| CommandError::new(first(&wrong)))?);
            }
            providers.insert(name.clone(), Arc::new(provider));
        }
        all_readable()?;
        Ok(Configured { providers, missing, jobs, locations, service: None })
    }

    /// Configures the providers, with the service on this machine if it is asked for.
    pub(crate) async fn connect(
        &self,
        folder: &Folder,
        environment: Environment<'_>,
        output: &Output,
    ) -> Result<Configured, CommandError> {
        if !self.asks_for_local() {
            // Mistakes in an address are reported before the address is shown.
            let configured = self.configure(environment)?;
            if self.instances.values().any(|instance| instance.serverless)
                && let Some(url) = self.address(environment)
            {
                output.talk(&format!("using the service at {}\n", render::safe::text(&url)));
            }
            return Ok(configured);
        }
        if !self.local {
            refuse_address(environment)?;
        }
        let service = child_service::connect(&folder.service_data()?).await?;
        output.talk(&(service.describe() + "\n"));
        let overlaid = |name: &str| service.variable(name).or_else(|| environment(name));
        let configured = self.configure_at(&overlaid, true)?;
        Ok(Configured { service: Some(service), ..configured })
    }

    /// Returns true if the serverless provider is used, and the spec or the command asks for the service on
    /// this machine.
    pub(crate) fn asks_for_local(&self) -> bool {
        let mut serverless = self.instances.values().filter(|instance| instance.serverless);
        serverless.any(|instance| self.local || instance.local)
    }

    /// Fails if nothing gives the address of the job API or its key.
    pub(crate) fn refuse_without_jobs(
        &self,
        environment: Environment<'_>,
    ) -> Result<(), CommandError> {
        if self.asks_for_local() {
            return Ok(());
        }
        let of_spec = |it: &Instance| it.settings.contains_key("queue_url");
        let has_address = given(environment)
            .any(|(variable, _)| variable == environment::QUEUE_URL)
            || self.instances.values().any(of_spec);
        if has_address && environment::gives_key(environment) {
            return Ok(());
        }
        let (url, key) = (environment::QUEUE_URL, environment::API_KEY);
        let message = if has_address {
            format!("the key of the job API is not given: {key} is not set")
        } else {
            format!("the address of the job API is not given: {url} is not set")
        };
        Err(CommandError::new(message).help(format!(
            "set {url} and {key}; or, for the service on this machine, write `local = true` under \
             [provider.serverless] in the spec, or give `--local`"
        )))
    }

    /// Returns the first address of the serverless provider that the environment or the spec gives.
    fn address(&self, environment: Environment<'_>) -> Option<String> {
        let of_spec = self.instances.values().filter(|instance| instance.serverless);
        let mut of_spec = of_spec.flat_map(|instance| &instance.settings);
        let of_spec = of_spec.find(|(key, _)| key.ends_with("_url")).map(|(_, url)| url.clone());
        let read = self.variables();
        let mut given = given(environment).filter(|(variable, _)| read.contains(*variable));
        given.next().map(|(_, url)| url).or(of_spec)
    }
}

impl Instance {
    fn configure(&self, environment: Environment<'_>) -> Result<HttpProvider, Diagnostics> {
        self.configure_at(environment, false)
    }

    fn configure_at(
        &self,
        environment: Environment<'_>,
        at_home: bool,
    ) -> Result<HttpProvider, Diagnostics> {
        let settings = self.called(environment).at_home(at_home && self.serverless);
        HttpProvider::configure(self.descriptor.clone(), &settings)
    }

    /// Returns the settings of the provider in the spec and the environment.
    fn called<'a>(&self, environment: Environment<'a>) -> Settings<'a> {
        let settings = self.settings.iter();
        let all = Settings::new(environment).beside_spec(self.author == Author::Spec);
        let all = all.alias(self.alias.as_deref());
        settings.fold(all, |all, (key, value)| all.set(key, value))
    }
}

/// Returns the descriptor that comes with Plumb for a version of the service's API.
fn serverless(version: Version) -> Result<Descriptor, CommandError> {
    // A test reads this descriptor, so only a change of the file can bring this error.
    version.read().map_err(|diagnostics| CommandError::new(first(&diagnostics)))
}

/// Returns the end of the names of an instance's own variables; `None` if it has none of its own.
fn alias(instance: &Name, descriptor: &str) -> Option<Name> {
    let base = Some(base(instance)).filter(|base| *base != descriptor).map(str::to_owned);
    let words: Vec<String> = base.into_iter().chain(key(instance)).collect();
    (!words.is_empty()).then(|| words.join("_").into())
}

/// Returns the error about a descriptor that cannot be read.
fn unreadable(path: &str, why: String, settings: &ProviderSettings) -> Diagnostic {
    let Some(of) = &settings.repository else {
        let given = settings.values.iter().find(|(key, _)| is_source(key));
        let span = given.map_or(settings.header, |(_, setting)| setting.span);
        return Diagnostic::error(format!("the descriptor {path} cannot be used"))
            .at(span)
            .label(why)
            .help("give a path below the spec's folder, such as \"./acme.provider.toml\"");
    };
    let (file, revision) = (&of.file, &of.repository.revision);
    Diagnostic::error(format!("the descriptor {file} of a repository cannot be used"))
        .at(of.at)
        .label(why)
        .help(format!(
            "`plumb init` fetches the repository; `file` is the path that {revision} has it under"
        ))
}

/// Reports secrets in settings other than the key. Those settings are shown, and become part of addresses
/// that the spec chooses.
fn refuse_secrets(
    descriptor: &Descriptor,
    settings: &ProviderSettings,
    values: &mut BTreeMap<String, String>,
    diagnostics: &mut Diagnostics,
) {
    for (key, setting) in &settings.values {
        if !setting.value.sensitive.is_empty() && !descriptor.is_key(key) {
            values.remove(&**key);
            diagnostics.push(secret_setting(key, setting.span));
        }
    }
}

/// Reports the settings that the provider does not have.
fn report_unknown(
    descriptor: &Descriptor,
    settings: &ProviderSettings,
    serverless: bool,
    diagnostics: &mut Diagnostics,
) {
    let mut known = descriptor.settings();
    known.extend(OF_SERVERLESS.into_iter().filter(|_| serverless));
    for (key, setting) in &settings.values {
        if is_source(key) || known.contains(&**key) {
            continue;
        }
        let provider = descriptor.name();
        let unknown = Diagnostic::error(format!("the provider {provider} has no setting `{key}`"));
        let words = known.iter().copied().collect::<Vec<_>>().join(", ");
        diagnostics.push(unknown.at(setting.key).help(match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => {
                "it has none: remove the key, or give the descriptor a `setting`".to_owned()
            }
            None => format!("it has {words}"),
        }));
    }
}

/// Returns the provider instances that a state names.
pub(crate) fn names(state: &Snapshot) -> BTreeSet<Name> {
    let entries = state.entries.values().map(|entry| entry.provider.clone());
    let pending = state.pending.values().map(|pending| pending.started.provider.clone());
    let watched = state.watched.iter().map(|watched| watched.provider.clone());
    entries.chain(pending).chain(watched).collect()
}

fn engine_types(builtin: &Builtin) -> BTreeSet<Name> {
    builtin.schema().types.keys().cloned().collect()
}

fn no_descriptor(name: &Name, settings: &ProviderSettings) -> Diagnostic {
    Diagnostic::error(format!("there is no provider `{name}`"))
        .at(settings.header)
        .help(
            "name its descriptor, `source = \"./acme.provider.toml\"`, or one that comes with Plumb, such as \
             `source = \"catalog:rabbitmq\"`",
        )
}

fn first(diagnostics: &Diagnostics) -> String {
    let first = diagnostics.iter().next();
    let Some(diagnostic) = first else { return "a provider cannot be configured".to_owned() };
    match &diagnostic.help {
        Some(help) => format!("{}; {help}", diagnostic.summary),
        None => diagnostic.summary.clone(),
    }
}
