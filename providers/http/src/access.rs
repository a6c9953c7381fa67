//! Where calls go and with which key, decided once and before the first call.
//!
//! A key goes only to an address that the environment gave, to loopback, to a host that the user
//! allows, or to the default of a descriptor that did not come with the spec: a spec from a
//! stranger cannot send it elsewhere, nor can a descriptor that lies beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::Name;
use engine::diagnostics::{Diagnostic, Diagnostics, nearest};
use engine::hosts::{self, AllowedHosts};
use url::Url;

use crate::descriptor::model::{Auth, Descriptor, Source};
use crate::secret::Key;
use crate::timing::Timing;
use crate::transport::Network;

/// What a provider is configured with.
pub struct Settings<'a> {
    /// What the provider block of the spec says, by key: addresses.
    pub values: BTreeMap<String, String>,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The hosts that a key may be sent to wherever the address comes from.
    pub allowed_hosts: AllowedHosts,
    /// Times and bounds of calls.
    pub timing: Timing,
    /// Whether the descriptor came with the spec, so that its own addresses are no more to be
    /// believed than those of the spec.
    pub stranger: bool,
    /// How requests get to servers; none: over the network of this process.
    pub network: Option<Arc<Network>>,
}

impl<'a> Settings<'a> {
    /// Settings with an environment and nothing else; `PLUMB_ALLOWED_HOSTS` in it names hosts,
    /// separated by commas.
    pub fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let hosts = environment("PLUMB_ALLOWED_HOSTS").unwrap_or_default();
        Self {
            values: BTreeMap::new(),
            environment,
            allowed_hosts: AllowedHosts::parse(&hosts),
            timing: Timing::default(),
            stranger: false,
            network: None,
        }
    }

    /// With a descriptor that came with the spec.
    #[must_use]
    pub fn stranger(mut self, stranger: bool) -> Self {
        self.stranger = stranger;
        self
    }

    /// With a setting of the spec's provider block.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// With another way to servers.
    #[must_use]
    pub fn network(mut self, network: Arc<Network>) -> Self {
        self.network = Some(network);
        self
    }

    /// With other times and bounds.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }
}

/// The addresses and the key of a configured provider.
#[derive(Debug)]
pub(crate) struct Access {
    /// By API. One that is not there has no address, and nothing can be called.
    pub(crate) addresses: BTreeMap<Name, Url>,
    pub(crate) key: Option<Key>,
}

/// Where a text came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Environment,
    Setting,
    Default,
}

impl Access {
    /// Looks everything up; what is missing shows when it is needed, what is wrong shows now.
    pub(crate) fn of(descriptor: &Descriptor, settings: &Settings<'_>) -> (Self, Diagnostics) {
        let mut diagnostics = unknown_settings(descriptor, settings);
        let key = descriptor.key.as_ref().and_then(|source| look_up(source, settings));
        if let (Some(source), Some((text, origin))) = (&descriptor.key, &key)
            && !is_sendable(text.trim())
        {
            diagnostics.push(bad_key(&descriptor.name, source, *origin));
        }
        let key = key.map(|(text, _)| Key::new(text.trim()));
        let mut addresses = BTreeMap::new();
        for (name, api) in &descriptor.apis {
            let Some((text, origin)) = look_up(&api.address, settings) else { continue };
            let url = match parse(&text) {
                Ok(url) => url,
                Err(reason) => {
                    diagnostics.push(bad_address(name, &api.address, origin, reason));
                    continue;
                }
            };
            let trusted = origin == Origin::Environment || is_trusted(&url, &api.address, settings);
            if key.is_some() && api.auth.is_some() && !trusted {
                diagnostics.push(untrusted(name, &url, origin));
                continue;
            }
            addresses.insert(name.clone(), url);
        }
        (Self { addresses, key }, diagnostics)
    }

    /// Whether all addresses lead to this machine.
    pub(crate) fn is_local(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.values().all(is_loopback)
    }
}

/// What stands in the way of calls: addresses and a key that nobody gave.
pub(crate) fn missing(descriptor: &Descriptor, access: &Access) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for (name, api) in &descriptor.apis {
        if !access.addresses.contains_key(name) {
            diagnostics.push(no_address(name, &api.address));
        }
    }
    if let (Some(source), None) = (&descriptor.key, &access.key)
        && descriptor.apis.values().any(|api| api.auth.is_some())
    {
        let hint = hint(source);
        diagnostics.push(
            Diagnostic::error(format!("there is no key for the provider {}", descriptor.name))
                .help(hint),
        );
    }
    diagnostics
}

/// How to give a text, in words.
pub(crate) fn hint(source: &Source) -> String {
    match (&source.env, &source.setting) {
        (Some(env), Some(setting)) => {
            format!("set the environment variable {env}, or `{setting}` in the provider block")
        }
        (Some(env), None) => format!("set the environment variable {env}"),
        (None, Some(setting)) => format!("set `{setting}` in the provider block"),
        (None, None) => "the descriptor says nowhere how to give it".to_owned(),
    }
}

fn no_address(api: &str, source: &Source) -> Diagnostic {
    Diagnostic::error(format!("there is no address for the API {api}")).help(hint(source))
}

fn bad_address(api: &str, source: &Source, origin: Origin, reason: &str) -> Diagnostic {
    let given = source.given(origin);
    Diagnostic::error(format!("the address of the API {api} cannot be used"))
        .detail(format!("{given} gives an address that {reason}."))
        .help("write it like https://host/path or http://127.0.0.1:8080/path")
}

/// Whether a text can stand in a header: what cannot would only fail at the first call, and there
/// look as if the address were wrong.
fn is_sendable(key: &str) -> bool {
    key.chars().all(|letter| !letter.is_control())
}

fn bad_key(provider: &str, source: &Source, origin: Origin) -> Diagnostic {
    let given = source.given(origin);
    Diagnostic::error(format!("the key for the provider {provider} cannot be sent"))
        .detail(format!("{given} holds a line break or another control character."))
        .help("copy the key once more, as one line")
}

fn untrusted(api: &str, url: &Url, origin: Origin) -> Diagnostic {
    let host = url.host_str().unwrap_or_default();
    let who = match origin {
        Origin::Default => "The descriptor, which lies beside the spec,",
        _ => "The spec",
    };
    Diagnostic::error(format!("the key is not sent to {host}"))
        .detail(format!(
            "{who} gives an address for the API {api}, and the key would go there. A spec may come \
             from someone else, so a key goes only to addresses that the environment gives, to \
             this machine, and to hosts that are allowed."
        ))
        .help(format!("if you trust it, set PLUMB_ALLOWED_HOSTS={host}"))
}

fn unknown_settings(descriptor: &Descriptor, settings: &Settings<'_>) -> Diagnostics {
    let known = descriptor.settings();
    settings
        .values
        .keys()
        .filter(|name| !known.contains(name.as_str()))
        .map(|name| {
            let summary = format!("the provider {} has no setting `{name}`", descriptor.name);
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            Diagnostic::error(summary).help(help)
        })
        .collect()
}

impl Source {
    /// Who gave a text, in words.
    fn given(&self, origin: Origin) -> String {
        match origin {
            Origin::Environment => self.env.clone().unwrap_or_default(),
            Origin::Setting => format!("`{}`", self.setting.clone().unwrap_or_default()),
            Origin::Default => "the descriptor".to_owned(),
        }
    }
}

impl Descriptor {
    /// The keys that a provider block of the spec may hold.
    pub fn settings(&self) -> BTreeSet<&str> {
        let sources = self.apis.values().map(|api| &api.address).chain(&self.key);
        sources.filter_map(|source| source.setting.as_deref()).collect()
    }
}

fn look_up(source: &Source, settings: &Settings<'_>) -> Option<(String, Origin)> {
    let environment = source.env.as_ref().and_then(|name| (settings.environment)(name));
    let setting = source.setting.as_ref().and_then(|name| settings.values.get(name).cloned());
    let given = |text: Option<String>, origin| {
        text.filter(|text| !text.trim().is_empty()).map(|text| (text, origin))
    };
    given(environment, Origin::Environment)
        .or_else(|| given(setting, Origin::Setting))
        .or_else(|| given(source.default.clone(), Origin::Default))
}

/// An address without a slash at its end, so paths can be appended.
fn parse(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim().trim_end_matches('/')).map_err(|_| "is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("begins with neither http:// nor https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or a password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("holds a query or a fragment");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("names no host");
    }
    Ok(url)
}

fn is_trusted(url: &Url, source: &Source, settings: &Settings<'_>) -> bool {
    let default = source.default.as_ref().and_then(|text| parse(text).ok());
    let same_origin = default.is_some_and(|default| default.origin() == url.origin());
    (same_origin && !settings.stranger)
        || is_loopback(url)
        || url.host_str().is_some_and(|host| settings.allowed_hosts.allows(host))
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(hosts::is_loopback)
}

/// A key where an API wants it: a header, or a query pair.
pub(crate) fn credentials(auth: &Auth, key: &Key) -> (Option<(String, String)>, Option<String>) {
    match auth {
        Auth::Header { name, before, after } => {
            (Some((name.clone(), format!("{before}{}{after}", key.reveal()))), None)
        }
        Auth::Query { name, before, after } => {
            let value = format!("{before}{}{after}", key.reveal());
            (None, Some(crate::template::query_pair(name, &value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(parse("http://h:1/v1/").unwrap().as_str(), "http://h:1/v1");
        for text in ["h", "ftp://h", "http://u:p@h/", "http://h/?k=1", "http://h/#f", "http://"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_is_this_machine_alone() {
        for (text, local) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://0.0.0.0", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&parse(text).unwrap()), local, "{text}");
        }
    }
}
