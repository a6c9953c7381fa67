//! The place of a provider's descriptor, as a provider block of a spec says it.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::config::settings::ProviderSettings;
use engine::diagnostics::{Diagnostic, Diagnostics, Span, nearest};
use provider_serverless::Version;

/// The settings that say it: a path, or a path or the name of a descriptor that comes with Plumb.
pub(crate) const SOURCES: [&str; 2] = ["descriptor", "source"];

/// The beginning of the name of a descriptor that comes with Plumb.
const CATALOG: &str = "catalog:";

/// The place of a descriptor.
pub(crate) enum DescriptorSource {
    /// A path below the spec's folder.
    Path(String),
    /// A descriptor that comes with Plumb: its text.
    Catalog(&'static str),
    /// The spec says none that can be used, and that is reported.
    Refused,
}

/// Returns true if a setting says where the descriptor is.
pub(crate) fn is_source(key: &Name) -> bool {
    SOURCES.contains(&&**key)
}

impl DescriptorSource {
    /// Takes the place out of the settings. None where they say none.
    pub(crate) fn of(
        settings: &ProviderSettings,
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
        match (path, source) {
            (Some(_), Some(_)) => {
                diagnostics.push(two_descriptors(span));
                Some(Self::Refused)
            }
            (Some(path), None) => Some(Self::Path(path)),
            (None, source) => {
                let source = source?;
                let Some(name) = source.strip_prefix(CATALOG) else {
                    return Some(Self::Path(source));
                };
                let Some(text) = catalog(name) else {
                    diagnostics.push(not_in_catalog(name, span));
                    return Some(Self::Refused);
                };
                Some(Self::Catalog(text))
            }
        }
    }
}

/// The serverless provider's descriptors in the catalog, for accounts beside the first one.
const OF_SERVERLESS: [(&str, Version); 2] =
    [("serverless", Version::V1), ("serverless-v2", Version::V2)];

/// The text of a descriptor that comes with Plumb.
fn catalog(name: &str) -> Option<&'static str> {
    let mut of_serverless = OF_SERVERLESS.iter().filter(|(own, _)| *own == name);
    let text = of_serverless.next().map(|(_, version)| version.text());
    text.or_else(|| provider_http::catalog(name))
}

/// Reports a secret where everybody may read it.
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

fn not_in_catalog(name: &str, span: Span) -> Diagnostic {
    let names = || provider_http::catalog_names().chain(OF_SERVERLESS.map(|(name, _)| name));
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{CATALOG}{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Diagnostic::error(format!("no descriptor `{name}` comes with Plumb")).at(span).help(help)
}
