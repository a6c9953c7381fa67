//! The trust in addresses and variables: the hosts that a key or a secret may go to, and the variables that a
//! key may come from.
//!
//! A spec may come from someone else, as a pull request does, and so may a descriptor that lies
//! beside it. Such a descriptor names the variables that it is read from: any of them may hold what
//! someone else wrote, such as the title of a commit, and any of them may hold another user's secret.

use engine::address::Name;
use engine::diagnostics::Diagnostic;
use engine::hosts;
use provider_port::{Error, Kind};
use url::Url;

use crate::descriptor::model::Source;
use crate::settings::{Origin, Settings};

/// Returns true if a secret may go to an address: the user gave it, allows its host, or it is this machine.
/// What a descriptor beside the spec reads from the environment is not given by the user: it is
/// read from whatever variable the descriptor likes.
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

/// Returns true if a provider may have its key from this variable: a descriptor that comes with the spec
/// from those that begin with its provider's name, and from those that the user allows.
pub(crate) fn may_read_key(provider: &Name, variable: &str, settings: &Settings<'_>) -> bool {
    let own = provider.to_uppercase().replace('-', "_") + "_";
    !settings.beside_spec
        || variable.starts_with(&own)
        || settings.allowed_keys.iter().any(|allowed| allowed == variable)
}

/// A key that goes nowhere.
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

/// A key that is not read.
pub(crate) fn foreign_key(provider: &Name, variable: &str) -> Diagnostic {
    let own = provider.to_uppercase().replace('-', "_");
    Diagnostic::error(format!("the key of the provider {provider} is not read from {variable}"))
        .detail(format!(
            "The descriptor lies beside the spec and may come from someone else, so it has its key \
             only from variables whose names begin with {own}_, and from those that you allow."
        ))
        .help(format!("name a variable such as {own}_KEY, or set PLUMB_ALLOWED_KEYS={variable}"))
}

/// A secret that goes nowhere.
pub(crate) fn kept_back(ty: &str, attribute: &str, url: &Url) -> Error {
    let host = url.host_str().unwrap_or_default();
    let message = format!("the secret in `{attribute}` of this {ty} is not sent to {host}");
    Error::new(Kind::Rejected, message).help(format!(
        "only the spec, or what lies beside it, names this host: if you trust it, {}",
        allowing(url)
    ))
}
