//! What must be known before anything can be looked up: where state lives, and how providers are
//! configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::constant::constant;
use super::resolve::{Files, Given, check_files};
use super::scope::{Locals, PlainScope};
use super::{Document, RawBlock, SpecExpr, Variable, diagnostics as say, variables};
use crate::address::Name;
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::evaluate::evaluate;
use crate::value::{Datum, Value};

/// A `[provider.NAME]` block with its values.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The place of its header.
    pub header: Span,
    /// Its settings by key.
    pub values: BTreeMap<Name, Setting>,
}

/// One setting of a provider.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its value.
    pub value: Datum,
    /// The place of its key.
    pub key: Span,
    /// The place of its value.
    pub span: Span,
}

/// `[state]`.
#[derive(Clone, Debug)]
pub struct StateSettings {
    /// The kind of backend.
    pub backend: Name,
    /// What the backend is told, by key, with the place of the key.
    pub values: BTreeMap<Name, (Value, Span)>,
    /// The place of the header, if there is one.
    pub header: Option<Span>,
}

/// Evaluates the `[provider.NAME]` blocks, which see only variables, locals and files.
///
/// What is wrong with variables is among the diagnostics, as it is among those of `resolve`;
/// sorting drops the repetition. With a wrong variable no setting is computed.
pub fn provider_settings(
    document: &Document,
    given: &BTreeMap<Name, Given>,
    files: &Files,
) -> (BTreeMap<Name, ProviderSettings>, Diagnostics) {
    let (variables, mut diagnostics) = variables::variables(document, given);
    let mut settings: BTreeMap<Name, ProviderSettings> = document
        .providers
        .iter()
        .map(|(name, block)| {
            (name.clone(), ProviderSettings { header: block.header, values: BTreeMap::new() })
        })
        .collect();
    if document.providers.is_empty() || diagnostics.has_errors() {
        return (settings, diagnostics);
    }
    check_files(document, files, &mut diagnostics);
    let locals: BTreeMap<Name, SpecExpr> = document
        .locals
        .iter()
        .filter(|(_, item)| !document.broken.contains(&item.value.span))
        .map(|(name, item)| (name.clone(), item.value.clone()))
        .collect();
    let texts = files
        .iter()
        .filter_map(|(path, text)| Some((path.clone(), Arc::clone(text.as_ref().ok()?))));
    let texts = texts.collect();
    let scope = scope(&variables, &locals, &texts);
    for (name, block) in &document.providers {
        let values = evaluate_all(document, block, &scope, &mut diagnostics);
        settings.insert(name.clone(), ProviderSettings { header: block.header, values });
    }
    diagnostics.sort();
    (settings, diagnostics)
}

fn scope<'a>(
    variables: &'a BTreeMap<Name, Variable>,
    locals: &'a BTreeMap<Name, SpecExpr>,
    files: &'a BTreeMap<String, Arc<str>>,
) -> PlainScope<'a> {
    PlainScope { variables, locals: Locals::new(locals), files }
}

fn evaluate_all(
    document: &Document,
    block: &RawBlock,
    scope: &PlainScope<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, Setting> {
    let mut values = BTreeMap::new();
    for (key, item) in block.items.iter() {
        if document.broken.contains(&item.value.span) {
            continue;
        }
        match evaluate(&item.value.expr, scope) {
            Ok(value) => {
                let setting = Setting { value, key: item.key, span: item.value.span };
                values.insert(key.clone(), setting);
            }
            Err(error) => {
                let at = item.value.span_of(error.range);
                diagnostics.push(say::expression(&error, at));
            }
        }
    }
    values
}

/// Reads `[state]`: plain values, because a state must be found before anything is computed.
pub fn state_settings(document: &Document) -> (StateSettings, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut values = BTreeMap::new();
    let mut backend = Name::from("file");
    let block = document.state.as_ref();
    for (key, item) in block.into_iter().flat_map(|block| block.items.iter()) {
        let at = item.value.span;
        if document.broken.contains(&at) {
            continue;
        }
        match constant(&item.value.expr) {
            None => diagnostics.push(say::not_constant(&format!("`{key}` of `[state]`"), at)),
            Some(Value::String(text)) if &**key == "backend" => backend = text,
            Some(value) if &**key == "backend" => {
                let want = crate::types::Type::String;
                diagnostics.push(say::wrong_type(&want, Some(&value), at));
            }
            Some(value) => {
                values.insert(key.clone(), (value, item.key));
            }
        }
    }
    let header = block.map(|block| block.header);
    (StateSettings { backend, values, header }, diagnostics)
}
