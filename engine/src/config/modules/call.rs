//! A call: one `[module.NAME]` block, together with the module that it calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::diagnostics as say;
use crate::address::Name;
use crate::config::constant::literal_key;
use crate::config::keys;
use crate::config::variables::{Declaration, declarations};
use crate::config::{Document, Item, ModuleSource, ProviderChoice, RawBlock};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::{Expr, Kind};

/// A called module: its document, and the inputs that it declares.
pub(super) struct Module {
    pub(super) document: Arc<Document>,
    pub(super) inputs: BTreeMap<Name, Declaration>,
}

/// Reads the parts that all instances of a module share, so that a mistake in them is reported once.
pub(super) fn module(document: &Arc<Document>, diagnostics: &mut Diagnostics) -> Module {
    let foreign = document.providers.values().map(|raw| ("provider", raw));
    let foreign = foreign.chain(document.imports.iter().map(|raw| ("import", raw)));
    let foreign = foreign.chain(document.policies.values().map(|raw| ("policy", raw)));
    for (word, raw) in foreign.chain(document.state.iter().map(|raw| ("state", raw))) {
        diagnostics.push(say::not_in_a_module(word, raw.header));
    }
    for (name, raw) in &document.variables {
        if keys::has(keys::MODULE, name) {
            diagnostics.push(say::reserved_variable(name, raw.header));
        }
    }
    for item in document.outputs.values().filter_map(|raw| raw.items.get("precondition")) {
        diagnostics.push(say::output_condition(item.key));
    }
    let inputs = declarations(document, diagnostics);
    Module { document: Arc::clone(document), inputs }
}

/// A call that can be carried out.
pub(super) struct Call<'a> {
    pub(super) raw: &'a RawBlock,
    pub(super) source: ModuleSource,
    /// The provider instance for each provider name in the module.
    pub(super) providers: BTreeMap<Name, ProviderChoice>,
}

impl<'a> Call<'a> {
    /// Reads a call; returns none if it cannot be carried out, which a diagnostic then says.
    pub(super) fn new(
        raw: &'a RawBlock,
        from: &ModuleSource,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        // The shell reads modules, and reports mistakes in a source.
        let source = ModuleSource::of(raw, from).ok()?;
        let providers = providers(raw, diagnostics);
        Some(Self { raw, source, providers })
    }

    /// Returns the place that diagnostics show for the call.
    pub(super) fn at(&self) -> Span {
        self.raw.header
    }

    /// Returns the value of a key that is no input.
    pub(super) fn own(&self, key: &str) -> Option<&'a Item> {
        self.raw.items.get(key)
    }

    /// Returns the inputs that the call gives.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'a Name, &'a Item)> {
        self.raw.items.iter().filter(|(name, _)| !keys::has(keys::MODULE, name))
    }

    /// Checks the names of the inputs.
    pub(super) fn check(&self, module: &Module, diagnostics: &mut Diagnostics) {
        let mut given = BTreeSet::new();
        for (name, item) in self.given() {
            given.insert(name);
            if !module.inputs.contains_key(name) {
                let known = module.inputs.keys().map(|name| &**name);
                diagnostics.push(say::unknown_input(name, item.key, known));
            }
        }
        let is_missing = |(name, input): &(&Name, &Declaration)| {
            input.default.is_none() && !given.contains(name)
        };
        let missing: Vec<&str> =
            module.inputs.iter().filter(is_missing).map(|(name, _)| &**name).collect();
        if !missing.is_empty() {
            diagnostics.push(say::missing_inputs(&missing, self.at()));
        }
    }
}

fn providers(raw: &RawBlock, diagnostics: &mut Diagnostics) -> BTreeMap<Name, ProviderChoice> {
    let Some(item) = raw.items.get("providers") else { return BTreeMap::new() };
    let has_keys = raw.items.contains_key("for_each");
    let choice = |value: &Expr| {
        let by_key = |it: &ProviderChoice| matches!(it, ProviderChoice::ByKey(_));
        ProviderChoice::read(value).filter(|it| has_keys || !by_key(it))
    };
    let names = match &item.value.expr.kind {
        Kind::Map(entries) => entries
            .iter()
            .map(|(name, value)| Some((literal_key(name)?.clone(), choice(value)?)))
            .collect::<Option<BTreeMap<_, _>>>(),
        _ => None,
    };
    names.unwrap_or_else(|| {
        diagnostics.push(say::bad_providers(item.value.span));
        BTreeMap::new()
    })
}
