//! Reads keys, and the ways in which an API takes them.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::{Name, is_name};
use engine::diagnostics::Span;

use super::diagnostics;
use super::model::{Api, Auth, Certificates, KeySource, Place, TokenModel};
use super::reader::{Keys, Node, Reader, named};
use super::texts::{self, KEY};
use crate::client::is_header_name;

/// Reads `key` and `keys` of `[provider]`.
pub(super) fn keys(reader: &mut Reader, provider: &mut Keys<'_>) -> BTreeMap<Name, KeySource> {
    let mut keys = BTreeMap::new();
    if let Some(source) = provider.node(KEY).and_then(|node| texts::source(reader, node, KEY)) {
        keys.insert(KEY.into(), KeySource { source, public: false });
    }
    for (name, span, node) in named(reader, provider.node("keys"), "keys") {
        if !is_name(name) || name == KEY || name == TOKEN {
            reader.push(diagnostics::bad_name(span, "one of `keys`", name));
        }
        if let Some(key) = key(reader, node) {
            keys.insert(name.into(), key);
        }
    }
    keys
}

/// Reads `{ env = "X", setting = "x", public = true, default = "…" }`.
fn key(reader: &mut Reader, node: Node<'_>) -> Option<KeySource> {
    let mut keys = Keys::of(reader, node, "the key")?;
    let public = keys.flag(reader, "public");
    let source = texts::source_of(reader, &mut keys);
    keys.finish(reader);
    if !public && source.default.is_some() {
        let span = reader.span(node.span());
        reader.push(diagnostics::key_in_descriptor(span));
    }
    Some(KeySource { source, public })
}

/// Reads `ca`, `certificate` and `certificate_key` of `[provider]`. The client certificate and its key come
/// only from the environment.
pub(super) fn certificates(reader: &mut Reader, provider: &mut Keys<'_>) -> Certificates {
    let mut source = |key: &'static str, is_own: bool| {
        let node = provider.node(key)?;
        let source = texts::source(reader, node, key)?;
        if is_own && (source.default.is_some() || source.setting.is_some()) {
            let span = reader.span(node.span());
            reader.push(diagnostics::misfit(
                span,
                "a certificate of one's own is not given by a spec",
                "it comes from the environment",
                "write it like `{ env = \"ACME_CERTIFICATE\" }`",
            ));
        }
        Some(source)
    };
    Certificates {
        ca: source("ca", false),
        certificate: source("certificate", true),
        key: source("certificate_key", true),
    }
}

/// Reads `auth`: one way to send a key, or several that are used together.
pub(super) fn read(reader: &mut Reader, node: Node<'_>) -> Vec<Auth> {
    Reader::items(node).into_iter().filter_map(|node| one(reader, node)).collect()
}

fn one(reader: &mut Reader, node: Node<'_>) -> Option<Auth> {
    let mut keys = Keys::of(reader, node, "auth")?;
    let header = keys.text(reader, "header");
    let query = keys.text(reader, "query");
    let basic = keys.text(reader, "basic");
    let value = keys.text(reader, "value");
    keys.finish(reader);
    let span = reader.span(node.span());
    let is_basic = basic.is_some();
    let place = match (header, query, is_basic && value.is_none()) {
        (Some(name), None, false) if !is_basic && is_header_name(&name) => Place::Header(name),
        (None, Some(name), false) if !is_basic => Place::Query(name),
        (None, None, true) => Place::Header("Authorization".to_owned()),
        _ => {
            reader.push(diagnostics::misfit(
                span,
                "the authentication does not say where the key goes",
                "exactly one of `header`, `query` and `basic` is wanted",
                "write `header = \"Authorization\"`, `query = \"api_key\"` or `basic = \"${user}:${key}\"`",
            ));
            return None;
        }
    };
    let text = basic.or(value).unwrap_or_else(|| "${key}".to_owned());
    let value = texts::key_text(reader, node, &text)?;
    if value.names().is_empty() {
        reader.push(diagnostics::misfit(
            span,
            "the authentication sends no key",
            "`value` holds no key such as ${key}",
            "write it like `value = \"Bearer ${key}\"`",
        ));
        return None;
    }
    Some(Auth { place, value, is_basic })
}

/// The name of the key that an authorization server gives.
pub(crate) const TOKEN: &str = "token";

/// Reads `token` of `[provider]`: the authorization server that gives one.
pub(super) fn token(
    reader: &mut Reader,
    provider: &mut Keys<'_>,
    known: &BTreeMap<Name, KeySource>,
) -> Option<TokenModel> {
    let node = provider.node(TOKEN)?;
    let mut keys = Keys::of(reader, node, TOKEN)?;
    let address = keys.must(reader, "address");
    let address = address.and_then(|node| texts::source(reader, node, "address"));
    let mut text = |reader: &mut Reader, key| {
        let node = keys.must(reader, key)?;
        let text = reader.text(node, key)?.to_owned();
        texts::key_text(reader, node, &text)
    };
    let (client, secret) = (text(reader, "client"), text(reader, "secret"));
    let scope = keys.text(reader, "scope");
    keys.finish(reader);
    let token = TokenModel { address: address?, client: client?, secret: secret?, scope };
    let span = reader.span(node.span());
    let names = token.key_names();
    let known: Vec<&str> = known.keys().map(|name| &**name).collect();
    unknown(reader, names, &known, span);
    Some(token)
}

/// Checks that the keys that an API gets exist.
pub(super) fn check(
    reader: &mut Reader,
    api: &Api,
    (keys, token): (&BTreeMap<Name, KeySource>, Option<&TokenModel>),
    span: Span,
) {
    let mut known: Vec<&str> = keys.keys().map(|name| &**name).collect();
    known.extend(token.map(|_| TOKEN));
    unknown(reader, api.key_names(), &known, span);
}

fn unknown(reader: &mut Reader, names: BTreeSet<&Name>, known: &[&str], span: Span) {
    for name in names.into_iter().filter(|name| !known.contains(&&***name)) {
        reader.push(diagnostics::unknown_name(span, "key", name, known));
    }
}
