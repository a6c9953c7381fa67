//! What must be known before anything can be looked up: where state lives, and how providers are
//! configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resolve::{Files, Given, check_files};
use super::scope::{Locals, PlainScope};
use super::{Document, RawBlock, SpecExpr, Variable, backends, diagnostics as say, variables};
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
    backends::read(document)
}

impl StateSettings {
    /// What holds without a block: files beside the spec.
    pub fn file() -> Self {
        Self { backend: "file".into(), values: BTreeMap::new(), header: None }
    }

    /// A text that the backend is told.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Value::String(text), _)) => Some(text),
            _ => None,
        }
    }

    /// A whole number that the backend is told.
    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.values.get(key) {
            Some((Value::Integer(number), _)) => Some(*number),
            _ => None,
        }
    }

    /// Whether the backend is told that something holds.
    pub fn is_set(&self, key: &str) -> Option<bool> {
        match self.values.get(key) {
            Some((Value::Bool(is_set), _)) => Some(*is_set),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::{assert_lines, lines, sources};

    fn document(text: &str) -> (crate::diagnostics::Sources, Document) {
        let (sources, files) = sources(text);
        let (document, diagnostics) = crate::spec::parse::parse(&sources, &files);
        assert_lines(&lines(&sources, &diagnostics), "");
        (sources, document)
    }

    #[test]
    fn providers_see_variables_locals_and_files() {
        let (_, document) = document(
            "[variable.key]\ntype = 'string'\nsensitive = true\n[local]\nhost = '${local.name}.example'\nname = 'a'\n\
             [provider.acme]\nkey = '${var.key}'\naddress = 'https://${local.host}/'\ntext = '${file(\"x\")}'\ncount = 3\n\
             [provider.empty]\n",
        );
        let given = BTreeMap::from([("key".into(), Given::Text("secret".to_owned()))]);
        let files = BTreeMap::from([("x".to_owned(), Ok("content".into()))]);
        let (settings, diagnostics) = provider_settings(&document, &given, &files);
        assert!(diagnostics.is_empty());
        let values = &settings["acme"].values;
        let value = |name: &str| format!("{:?}", values[name].value.value);
        assert_eq!(
            [value("address"), value("count"), value("text")],
            ["\"https://a.example/\"", "3", "\"content\""]
        );
        assert!(values["key"].value.sensitive.covers(&crate::value::Path::root()));
        assert!(settings["empty"].values.is_empty());
    }

    #[test]
    fn mistakes_in_providers() {
        let (sources, document) = document(
            "[local]\nid = '${value.a.id}'\nown = '${local.own}'\n[resource.value.a]\n[provider.acme]\na = '${value.a.id}'\nb = '${local.id}'\n\
             c = '${var.nothing}'\nd = '${each.key}'\ne = 'ok'\nf = '${local.own}'\n",
        );
        let (settings, diagnostics) =
            provider_settings(&document, &BTreeMap::new(), &BTreeMap::new());
        assert_eq!(settings["acme"].values.len(), 1);
        assert_lines(
            &lines(&sources, &diagnostics),
            "plumb.toml:6:8 error: only `var` and `local` are known here, not the resource `value.a` [value.a]
             plumb.toml:7:8 error: in `local.id`: only `var` and `local` are known here, not the resource `value.a` [local.id]
             plumb.toml:8:8 error: there is no variable `nothing` [var.nothing]
             plumb.toml:9:8 error: `each` means nothing here [each.key]
             plumb.toml:11:8 error: in `local.own`: `local.own` refers to itself [local.own]",
        );
    }

    #[test]
    fn a_wrong_variable_stops_the_settings() {
        let (_, document) = document("[variable.a]\ntype = 'string'\n[provider.acme]\na = 1\n");
        let (settings, diagnostics) =
            provider_settings(&document, &BTreeMap::new(), &BTreeMap::new());
        assert!(diagnostics.has_errors() && settings["acme"].values.is_empty());
    }

    #[test]
    fn a_long_chain_of_locals_needs_no_deep_stack() {
        use std::fmt::Write;
        let mut text = "[provider.p]\nx = '${local.l0}'\n[local]\nl3000 = 1\n".to_owned();
        for index in 0..3000 {
            writeln!(text, "l{index} = '${{local.l{}}}'", index + 1).unwrap();
        }
        let (_, document) = document(&text);
        let (settings, diagnostics) =
            provider_settings(&document, &BTreeMap::new(), &BTreeMap::new());
        assert!(diagnostics.is_empty());
        assert_eq!(format!("{:?}", settings["p"].values["x"].value.value), "1");
    }
}
