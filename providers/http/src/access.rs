//! The addresses of the APIs and the keys, determined once, before the first call.
//!
//! [`crate::trust`] decides which hosts get a key: neither a spec nor a descriptor beside it can send it to
//! another host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::address::Name;
use engine::diagnostics::{Diagnostic, Diagnostics, nearest};
use url::Url;

use crate::address::Address;
use crate::asked_keys::{Asked, TokenRequest};
use crate::certificates;
use crate::connection::{Connection, Tls};
use crate::descriptor::auth::TOKEN;
use crate::descriptor::model::{Api, Auth, Descriptor, Place, Source, TokenModel};
use crate::key::Key;
use crate::key_lookup::{self, look_up};
use crate::settings::{Origin, Settings, own_variable};
use crate::trust;

/// The addresses and the key of a configured provider.
pub(crate) struct Access {
    /// The address of each API. An API without one cannot be called.
    pub(crate) addresses: BTreeMap<Name, Url>,
    /// The sockets that lead to APIs; an API without one is reached by TCP.
    pub(crate) sockets: BTreeMap<Name, PathBuf>,
    pub(crate) tls: Tls,
    /// The keys that are set, by name.
    pub(crate) keys: BTreeMap<Name, Key>,
    /// The ways to ask for other keys, by name.
    pub(crate) asked: BTreeMap<Name, Asked>,
    /// The APIs whose addresses only a spec, or a file beside it, gives.
    pub(crate) unproven: BTreeSet<Name>,
}

impl Access {
    /// Looks everything up. A missing address or key is reported when it is needed, a wrong one is reported
    /// now.
    pub(crate) fn of(descriptor: &Descriptor, settings: &Settings<'_>) -> (Self, Diagnostics) {
        let mut diagnostics = unknown_settings(descriptor, settings);
        let mut found = key_lookup::keys(descriptor, settings, &mut diagnostics);
        let tls = certificates::tls(descriptor, settings, &mut diagnostics);
        if let Some(token) = &descriptor.token {
            let request = token_request(token, (&found.keys, &tls), settings, &mut diagnostics);
            found.asked.extend(request.map(|request| (TOKEN.into(), Asked::Token(request))));
        }
        let key_lookup::FoundKeys { keys, asked } = found;
        let (mut addresses, mut sockets) = (BTreeMap::new(), BTreeMap::new());
        let mut unproven = BTreeSet::new();
        for (name, api) in &descriptor.apis {
            let Some((text, origin)) = look_up(&api.address, settings) else { continue };
            let Address { url, socket } = match Address::parse(&text) {
                Ok(address) => address,
                Err(reason) => {
                    diagnostics.push(bad_address(name, &api.address, origin, reason));
                    continue;
                }
            };
            if !trust::is_believed((&url, origin), default_url(&api.address).as_ref(), settings) {
                if tls.identity.is_some() || sends_secret(descriptor, api, (&keys, &asked)) {
                    diagnostics.push(trust::untrusted(name, &url, origin, &api.address));
                    continue;
                }
                unproven.insert(name.clone());
            }
            addresses.insert(name.clone(), url);
            sockets.extend(socket.map(|socket| (name.clone(), socket)));
        }
        (Self { addresses, sockets, tls, keys, asked, unproven }, diagnostics)
    }

    /// Returns the keys that are secrets.
    pub(crate) fn secrets(&self, descriptor: &Descriptor) -> impl Iterator<Item = &Key> {
        let is_secret = |name: &Name| descriptor.keys.get(name).is_none_or(|key| !key.public);
        self.keys.iter().filter(move |(name, _)| is_secret(name)).map(|(_, key)| key)
    }

    /// Returns true if all addresses lead to this machine.
    pub(crate) fn is_local(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.values().all(trust::is_loopback)
    }
}

/// Returns an error for each address and key that is not set. Calls cannot be made without them.
pub(crate) fn missing(
    descriptor: &Descriptor,
    access: &Access,
    settings: &Settings<'_>,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for (name, api) in &descriptor.apis {
        if !access.addresses.contains_key(name) {
            diagnostics.push(no_address(name, &api.address));
        }
    }
    let mut used: BTreeSet<&Name> = descriptor.apis.values().flat_map(Api::key_names).collect();
    used.extend(descriptor.keys_in_paths());
    if let Some(token) = descriptor.token.as_ref().filter(|_| used.iter().any(|it| &***it == TOKEN))
    {
        used.extend(token.key_names());
        let has_address = !matches!(&token.address, Source { default: None, .. });
        if !has_address && !access.asked.contains_key(TOKEN) {
            diagnostics.push(no_address(TOKEN, &token.address));
        }
    }
    for (name, key) in descriptor.keys.iter().filter(|(name, _)| used.contains(name)) {
        if !access.keys.contains_key(name) && !access.asked.contains_key(name) {
            let what = format!("there is no {name} for the provider {}", descriptor.name);
            let foreign = trust::foreign_source(&descriptor.name, &key.source, settings)
                .filter(|_| key.source.setting.is_none());
            diagnostics.push(match foreign {
                Some(foreign) => foreign,
                None => Diagnostic::error(what).help(hint(&key.source)),
            });
        }
    }
    diagnostics
}

/// Returns the request for a token; none if its address or one of its keys is missing.
fn token_request(
    token: &TokenModel,
    (keys, tls): (&BTreeMap<Name, Key>, &Tls),
    settings: &Settings<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<TokenRequest> {
    let (text, origin) = look_up(&token.address, settings)?;
    let Address { url, socket } = match Address::parse(&text) {
        Ok(address) => address,
        Err(reason) => {
            diagnostics.push(bad_address(TOKEN, &token.address, origin, reason));
            return None;
        }
    };
    if !trust::is_believed((&url, origin), default_url(&token.address).as_ref(), settings) {
        diagnostics.push(trust::untrusted(TOKEN, &url, origin, &token.address));
        return None;
    }
    let key = |name: &Name| keys.get(name).map(Key::reveal);
    let client = token.client.fill(&key).ok()?;
    let secret = token.secret.fill(&key).ok()?;
    let connection = Arc::new(Connection { socket, tls: tls.clone() });
    Some(TokenRequest { url, connection, client, secret, scope: token.scope.clone() })
}

/// Returns the URL of the address that a descriptor gives.
fn default_url(source: &Source) -> Option<Url> {
    source.default.as_ref().and_then(|text| Address::parse(text).ok()).map(|address| address.url)
}

/// Returns true if calls to an API are sent with a secret that is set, or can be asked for.
fn sends_secret(
    descriptor: &Descriptor,
    api: &Api,
    (keys, asked): (&BTreeMap<Name, Key>, &BTreeMap<Name, Asked>),
) -> bool {
    let is_secret = |name: &Name| descriptor.keys.get(name).is_none_or(|key| !key.public);
    let is_there = |name: &Name| keys.contains_key(name) || asked.contains_key(name);
    api.key_names().into_iter().any(|name| is_there(name) && is_secret(name))
}

/// Returns a sentence that says how to set a text.
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

/// Returns the sentences that say how to set the keys.
pub(crate) fn key_hint(descriptor: &Descriptor) -> String {
    let hints = descriptor.keys.values().map(|key| hint(&key.source));
    hints.collect::<Vec<_>>().join("; ")
}

fn no_address(api: &str, source: &Source) -> Diagnostic {
    Diagnostic::error(format!("there is no address for the API {api}")).help(hint(source))
}

fn bad_address(api: &str, source: &Source, origin: Origin, reason: &str) -> Diagnostic {
    let given = source.given(origin);
    Diagnostic::error(format!("the address of the API {api} cannot be used"))
        .detail(format!("{given} gives an address that {reason}."))
        .help(
            "write it like https://host/path, http://127.0.0.1:8080/path or unix:/run/x.sock:/path",
        )
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

impl Descriptor {
    /// Returns true if a setting of a provider block is a key. The values of all other settings are shown, in
    /// messages and in addresses.
    pub fn is_key(&self, setting: &str) -> bool {
        let mut secret = self.keys.values().filter(|key| !key.public);
        secret.any(|key| key.source.setting.as_deref() == Some(setting))
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        let keys = self.keys.values().map(|key| &key.source);
        let token = self.token.iter().map(|token| &token.address);
        let certificates = self.certificates.sources();
        self.apis.values().map(|api| &api.address).chain(token).chain(certificates).chain(keys)
    }

    /// Returns the keys that a provider block of the spec may have.
    pub fn settings(&self) -> BTreeSet<&str> {
        self.sources().filter_map(|source| source.setting.as_deref()).collect()
    }

    /// Returns the environment variables that addresses and keys are read from.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.sources().filter_map(|source| source.env.as_deref()).collect()
    }

    /// Returns the environment variables for a provider whose name is not the descriptor's.
    pub fn variables_of(&self, alias: &str) -> BTreeSet<String> {
        self.variables().into_iter().map(|variable| own_variable(variable, alias)).collect()
    }
}

/// Returns the keys of a call in the places where its API wants them: headers, and pairs of the query. The
/// error is the name of a key that is not set.
pub(crate) fn credentials(api: &Api, keys: &BTreeMap<Name, Key>) -> Result<Credentials, Name> {
    let key = |name: &Name| keys.get(name).map(Key::reveal);
    let mut credentials = Credentials::default();
    for Auth { place, value, is_basic } in &api.auth {
        let text = value.fill(&key)?;
        let text = if *is_basic { format!("Basic {}", STANDARD.encode(text)) } else { text };
        match place {
            Place::Header(name) => credentials.headers.push((name.clone(), text)),
            Place::Query(name) => {
                credentials.query.push(crate::template::query_pair(name, &text));
            }
        }
    }
    for (name, text) in &api.headers {
        credentials.headers.push((name.clone(), text.fill(&key)?));
    }
    Ok(credentials)
}

/// The headers and the query that a call is sent with. Has no `Debug`: it holds keys.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) headers: Vec<(String, String)>,
    /// Encoded pairs of name and value.
    pub(crate) query: Vec<String>,
}
