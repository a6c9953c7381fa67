//! Descriptors: TOML text to a [`Descriptor`], with all mistakes at once.
//!
//! A descriptor gives the types that a provider manages, the call of each phase of each operation, and rules.
//! Reading one looks nothing up; addresses and keys come from the configuration.

mod api;
mod attribute;
pub(crate) mod auth;
mod call;
mod check;
mod diagnostics;
mod headers;
mod image;
mod keys_in_paths;
pub(crate) mod model;
mod outline;
mod parent;
mod price;
mod program;
mod reader;
mod rows;
pub(crate) mod schema;
mod texts;
mod types;
mod unset;
mod wait;

use std::collections::BTreeMap;

use engine::address::{Name, is_name};
use engine::diagnostics::{Diagnostics, FileId};
use engine::digest::Digest;
use toml::de::DeTable;

pub use model::Descriptor;
use model::{Api, KeySource};
pub use outline::Outline;
use reader::{Keys, Reader, named};

/// The longest descriptor, in bytes.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The names that the types of a descriptor may use.
pub(super) struct Context {
    pub(super) apis: BTreeMap<Name, Api>,
    /// The keys of the provider.
    pub(super) keys: BTreeMap<Name, KeySource>,
    /// Named lists of allowed texts.
    pub(super) enumerations: BTreeMap<String, Vec<Name>>,
}

impl Context {
    pub(super) fn api_names(&self) -> Vec<&str> {
        self.apis.keys().map(|name| &**name).collect()
    }
}

/// Reads a descriptor. The spans of the diagnostics point into `file`, which the caller has added to its
/// sources with the same text. The descriptor is none if one of the diagnostics is an error.
pub fn load(text: &str, file: FileId) -> (Option<Descriptor>, Diagnostics) {
    let mut reader = Reader { file, diagnostics: Diagnostics::new() };
    if text.len() > BYTES_MAX {
        reader.push(diagnostics::too_large(BYTES_MAX));
        return (None, reader.diagnostics);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            let span = error.span().map(|range| reader.span(range));
            reader.push(diagnostics::not_toml(span, error.message()));
        }
        reader.diagnostics.sort();
        return (None, reader.diagnostics);
    }
    let descriptor = read(&mut reader, table.get_ref(), text);
    reader.diagnostics.sort();
    let fine = !reader.diagnostics.has_errors();
    (descriptor.filter(|_| fine), reader.diagnostics)
}

fn read(reader: &mut Reader, table: &DeTable<'_>, text: &str) -> Option<Descriptor> {
    let mut root = Keys::new(table, 0..0, "the descriptor");
    let provider = root.must(reader, "provider");
    let apis = root.must(reader, "api");
    let enumerations = root.node("enumeration");
    let types = root.must(reader, "type");
    root.finish(reader);

    let mut provider = Keys::of(reader, provider?, "provider")?;
    let keys = auth::keys(reader, &mut provider);
    let certificates = auth::certificates(reader, &mut provider);
    let token = auth::token(reader, &mut provider, &keys);
    let mut context = Context { apis: BTreeMap::new(), keys, enumerations: BTreeMap::new() };
    for (name, span, node) in named(reader, apis, "api") {
        if !is_name(name) {
            reader.push(diagnostics::bad_name(span, "an API", name));
        }
        if let Some(api) = api::read(reader, node) {
            auth::check(reader, &api, (&context.keys, token.as_ref()), span);
            context.apis.insert(name.into(), api);
        }
    }
    for (name, _, node) in named(reader, enumerations, "enumeration") {
        let values = reader.texts(node, name).into_iter().map(Name::from).collect();
        context.enumerations.insert(name.to_owned(), values);
    }
    let (mut models, mut spans) = (BTreeMap::new(), BTreeMap::new());
    for (name, span, node) in named(reader, types, "type") {
        if let Some(model) = types::read(reader, &context, (name, span), node) {
            models.insert(Name::from(name), model);
            spans.insert(Name::from(name), span);
        }
    }
    check::held_types(reader, &models, &spans);
    parent::name_parents(&mut models);
    parent::check(reader, &models);
    rows::check(reader, &context.apis, &models);
    let name = provider.must(reader, "name").and_then(|node| reader.text(node, "name"));
    let settle = provider.duration(reader, "settle");
    provider.finish(reader);
    Some(Descriptor {
        name: name?.into(),
        digest: Digest::of(text.as_bytes()),
        keys: context.keys,
        certificates,
        token,
        settle,
        apis: context.apis,
        types: models,
    })
}

impl Descriptor {
    /// The provider's name.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

#[cfg(test)]
mod tests;
