//! The trust in addresses and variables: the hosts that may get a key or a secret, and the variables from
//! which a key may be read.
//!
//! A spec may come from someone else, for example in a pull request, and so may a descriptor that lies beside
//! it. Such a descriptor chooses the environment variables that it is read from. Any of them may hold text
//! that someone else wrote, such as the title of a commit, or another user's secret.

use engine::address::Name;
use engine::diagnostics::{Diagnostic, Diagnostics, Severity};
use engine::hosts;
use provider_port::{Error, Kind};
use url::Url;

use crate::descriptor::model::{Descriptor, Source};
use crate::settings::{Origin, Settings};

/// Returns true if a secret may go to an address. It may go to this machine and to hosts that the user
/// allows. With a descriptor that comes with Plumb it may also go to the address in the descriptor or in the
/// environment. With a descriptor beside the spec it may not: that descriptor chooses the variable of the
/// address.
pub(crate) fn is_believed(
    (url, origin): (&Url, Origin),
    default: Option<&Url>,
    settings: &Settings<'_>,
) -> bool {
    let own = !settings.beside_spec
        && (origin == Origin::Environment
            || default.is_some_and(|default| default.origin() == url.origin()));
    own || is_loopback(url)
        || url.host_str().is_some_and(|host| settings.allowed_hosts.allows_at(url.scheme(), host))
}

/// Returns true if a URL leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(hosts::is_loopback)
}

/// Returns true if a provider may read its key from a variable. A descriptor beside the spec may read only
/// variables that begin with its provider's name, and those that the user allows.
pub(crate) fn may_read_key(provider: &Name, variable: &str, settings: &Settings<'_>) -> bool {
    let own = provider.to_uppercase().replace('-', "_") + "_";
    !settings.beside_spec
        || variable.starts_with(&own)
        || settings.allowed_keys.iter().any(|allowed| allowed == variable)
}

/// Returns the error about a key that is not sent, because the address is not trusted.
pub(crate) fn untrusted(api: &str, url: &Url, origin: Origin, source: &Source) -> Diagnostic {
    let host = url.host_str().unwrap_or_default();
    let who = match origin {
        Origin::Environment => format!(
            "The descriptor, which lies beside the spec, takes the address of the API {api} from \
             the variable {}, and the key would go there.",
            source.env.as_deref().unwrap_or_default()
        ),
        Origin::Default => format!(
            "The descriptor, which lies beside the spec, gives an address for the API {api}, and \
             the key would go there."
        ),
        Origin::Setting => {
            format!("The spec gives an address for the API {api}, and the key would go there.")
        }
    };
    Diagnostic::error(format!("the key is not sent to {host}"))
        .detail(format!(
            "{who} A spec may come from someone else, so a key goes only to this machine, to hosts \
             that are allowed, and, with a descriptor that comes with Plumb, to addresses that the \
             environment gives."
        ))
        .help(format!("if you trust it, {}", allowing(url)))
}

/// Returns the advice for a user who trusts an address.
fn allowing(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    if url.scheme() == "https" {
        return format!("set PLUMB_ALLOWED_HOSTS={host}");
    }
    format!("use https, or, on a private network, set PLUMB_ALLOWED_HOSTS=http://{host}")
}

/// Returns the error about a key that is not read, because the variable is not allowed.
pub(crate) fn foreign_key(provider: &Name, variable: &str) -> Diagnostic {
    let own = provider.to_uppercase().replace('-', "_");
    Diagnostic::error(format!("the key of the provider {provider} is not read from {variable}"))
        .detail(format!(
            "The descriptor lies beside the spec and may come from someone else, so it has its key \
             only from variables whose names begin with {own}_, and from those that you allow."
        ))
        .help(format!("name a variable such as {own}_KEY, or set PLUMB_ALLOWED_KEYS={variable}"))
}

/// Returns the error about a variable that a provider does not read its key from; none if it may.
pub(crate) fn foreign_source(
    provider: &Name,
    source: &Source,
    settings: &Settings<'_>,
) -> Option<Diagnostic> {
    let variable = source.env.as_deref()?;
    (!may_read_key(provider, variable, settings)).then(|| foreign_key(provider, variable))
}

impl Descriptor {
    /// Returns a warning for each variable that the descriptor names for a key or a certificate, and that is
    /// not read with these settings, set or not.
    pub fn foreign_keys(&self, settings: &Settings<'_>) -> Diagnostics {
        let keys = self.keys.values().map(|key| &key.source);
        let sources = keys.chain(self.certificates.sources());
        let foreign = sources.filter_map(|source| foreign_source(&self.name, source, settings));
        foreign.map(|it| Diagnostic { severity: Severity::Warning, ..it }).collect()
    }
}

/// Returns the error about a secret that is not sent, because the address is not trusted.
pub(crate) fn kept_back(ty: &str, attribute: &str, url: &Url) -> Error {
    let host = url.host_str().unwrap_or_default();
    let message = format!("the secret in `{attribute}` of this {ty} is not sent to {host}");
    Error::new(Kind::Rejected, message).help(format!(
        "only the spec, or what lies beside it, names this host: if you trust it, {}",
        allowing(url)
    ))
}
