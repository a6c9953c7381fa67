//! The place of a provider's descriptor, as the provider block of a spec gives it.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::config::modules::source::{DescriptorInRepository, is_repository};
use engine::config::settings::ProviderSettings;
use engine::diagnostics::{Diagnostic, Diagnostics, Span, nearest};
use provider_serverless::Version;

/// The settings with the place of a descriptor: a path, or a path or the name of a descriptor that comes with
/// Plumb.
pub(crate) const SOURCES: [&str; 2] = ["descriptor", "source"];

/// The beginning of the name of a descriptor that comes with Plumb.
const CATALOG: &str = "catalog:";

/// The place of a descriptor.
pub(crate) enum DescriptorSource<'a> {
    /// A path below the spec's folder.
    Path(String),
    /// A file of a repository that `plumb init` fetched.
    Repository(&'a DescriptorInRepository),
    /// The text of a descriptor that comes with Plumb.
    Catalog(&'static str),
    /// The spec gives no usable place, and a diagnostic says so.
    Refused,
}

/// Returns true if a setting gives the place of the descriptor.
pub(crate) fn is_source(key: &Name) -> bool {
    SOURCES.contains(&&**key)
}

/// Returns true if a provider block gives the place of its descriptor.
pub(crate) fn names_descriptor(settings: &ProviderSettings) -> bool {
    settings.repository.is_some() || settings.values.keys().any(is_source)
}

impl<'a> DescriptorSource<'a> {
    /// Takes the place out of the settings. Returns `None` if they give none.
    pub(crate) fn of(
        settings: &'a ProviderSettings,
        values: &mut BTreeMap<String, String>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let [path, source] = SOURCES.map(|key| values.remove(key));
        let given = settings.values.iter().filter(|(key, _)| is_source(key));
        let span = given.clone().next_back().map_or(settings.header, |(_, setting)| setting.span);
        if let Some((key, secret)) = given.clone().find(|(_, it)| !it.value.sensitive.is_empty()) {
            diagnostics.push(secret_setting(key, secret.span));
            return Some(Self::Refused);
        }
        let repository = settings.repository.as_ref();
        if path.is_some() && (source.is_some() || repository.is_some()) {
            diagnostics.push(two_descriptors(span));
            return Some(Self::Refused);
        }
        if let Some(repository) = repository {
            return Some(Self::Repository(repository));
        }
        if let Some(path) = path {
            return Some(Self::Path(path));
        }
        Some(read(source?, span).unwrap_or_else(|refused| {
            diagnostics.push(*refused);
            Self::Refused
        }))
    }
}

/// Reads a `source` that is not in a repository.
fn read(source: String, span: Span) -> Result<DescriptorSource<'static>, Box<Diagnostic>> {
    if is_repository(&source) {
        return Err(computed_repository(span).into());
    }
    let Some(name) = source.strip_prefix(CATALOG) else {
        return Ok(DescriptorSource::Path(source));
    };
    catalog(name).map(DescriptorSource::Catalog).ok_or_else(|| not_in_catalog(name, span).into())
}

/// The serverless provider's descriptors in the catalog, for accounts other than the first one.
const OF_SERVERLESS: [(&str, Version); 2] =
    [("serverless", Version::V1), ("serverless-v2", Version::V2)];

/// Returns the text of a descriptor that comes with Plumb; `None` if there is none of that name.
fn catalog(name: &str) -> Option<&'static str> {
    let mut of_serverless = OF_SERVERLESS.iter().filter(|(own, _)| *own == name);
    let text = of_serverless.next().map(|(_, version)| version.text());
    text.or_else(|| provider_http::catalog(name))
}

/// Returns the error about a secret in a setting that is stored or shown in clear.
pub(crate) fn secret_setting(key: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("the setting `{key}` of a provider must not be sensitive"))
        .at(span)
        .detail(
            "Addresses are shown in messages, and a secret in one goes to whoever the address \
             names, already when a plan is made.",
        )
        .help("use what is not sensitive; a key belongs into the environment")
}

fn two_descriptors(span: Span) -> Diagnostic {
    Diagnostic::error("a provider has one descriptor")
        .at(span)
        .label("both `descriptor` and `source` name one")
        .help("remove one of them")
}

fn computed_repository(span: Span) -> Diagnostic {
    Diagnostic::error("the address of a repository cannot be computed")
        .at(span)
        .label("`plumb init` fetches it before anything has a value")
        .help("write the address itself, without `${…}`, and its `revision` and `file`")
}

fn not_in_catalog(name: &str, span: Span) -> Diagnostic {
    let names = || provider_http::catalog_names().chain(OF_SERVERLESS.map(|(name, _)| name));
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{CATALOG}{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Diagnostic::error(format!("no descriptor `{name}` comes with Plumb")).at(span).help(help)
}
