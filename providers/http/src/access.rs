//! The addresses of the APIs and the key, settled once, before the first call.
//!
//! [`crate::trust`] decides which hosts get the key: neither a spec nor a descriptor beside it sends it
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::diagnostics::{Diagnostic, Diagnostics, nearest};
use url::Url;

use crate::descriptor::model::{Auth, Descriptor, Source};
use crate::key::Key;
use crate::settings::{Origin, Settings};
use crate::trust;

/// The addresses and the key of a configured provider.
#[derive(Debug)]
pub(crate) struct Access {
    /// By API. One that is not there has no address, and nothing can be called.
    pub(crate) addresses: BTreeMap<Name, Url>,
    pub(crate) key: Option<Key>,
    /// The APIs whose addresses only a spec, or a file beside it, names.
    pub(crate) unproven: BTreeSet<Name>,
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
        if let (Some(Source { env: Some(variable), .. }), Some((_, Origin::Environment))) =
            (&descriptor.key, &key)
            && !trust::may_read_key(&descriptor.name, variable, settings)
        {
            diagnostics.push(trust::foreign_key(&descriptor.name, variable));
        }
        let key = key.map(|(text, _)| Key::new(text.trim()));
        let (mut addresses, mut unproven) = (BTreeMap::new(), BTreeSet::new());
        for (name, api) in &descriptor.apis {
            let Some((text, origin)) = look_up(&api.address, settings) else { continue };
            let url = match parse(&text) {
                Ok(url) => url,
                Err(reason) => {
                    diagnostics.push(bad_address(name, &api.address, origin, reason));
                    continue;
                }
            };
            let default = api.address.default.as_ref().and_then(|text| parse(text).ok());
            if !trust::is_believed((&url, origin), default.as_ref(), settings) {
                if key.is_some() && api.auth.is_some() {
                    diagnostics.push(trust::untrusted(name, &url, origin, &api.address));
                    continue;
                }
                unproven.insert(name.clone());
            }
            addresses.insert(name.clone(), url);
        }
        (Self { addresses, key, unproven }, diagnostics)
    }

    /// Returns true if all addresses lead to this machine.
    pub(crate) fn is_local(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.values().all(trust::is_loopback)
    }
}

/// Returns an error for each address and key that is not set. Calls cannot be made without them.
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

/// Returns a sentence that tells how to set a text.
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

/// Returns true if a text can stand in a header: what cannot would only fail at the first call, and there
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
    /// Returns the origin of a text, in words.
    fn given(&self, origin: Origin) -> String {
        match origin {
            Origin::Environment => self.env.clone().unwrap_or_default(),
            Origin::Setting => format!("`{}`", self.setting.clone().unwrap_or_default()),
            Origin::Default => "the descriptor".to_owned(),
        }
    }
}

impl Descriptor {
    /// Returns true if a setting of a provider block is the key. Any other is shown, in messages and in
    /// addresses.
    pub fn is_key(&self, setting: &str) -> bool {
        self.key.as_ref().is_some_and(|key| key.setting.as_deref() == Some(setting))
    }

    /// The keys that a provider block of the spec may hold.
    pub fn settings(&self) -> BTreeSet<&str> {
        let sources = self.apis.values().map(|api| &api.address).chain(&self.key);
        sources.filter_map(|source| source.setting.as_deref()).collect()
    }

    /// The variables of the environment that addresses and the key are read from.
    pub fn variables(&self) -> BTreeSet<&str> {
        let sources = self.apis.values().map(|api| &api.address).chain(&self.key);
        sources.filter_map(|source| source.env.as_deref()).collect()
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
            assert_eq!(trust::is_loopback(&parse(text).unwrap()), local, "{text}");
        }
    }
}
