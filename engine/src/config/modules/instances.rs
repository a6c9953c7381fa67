//! The instances of a call: its `for_each` and `enabled` are computed before planning.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnostics as say;
use super::references::Entry;
use crate::address::{Block, ModulePath, Name};
use crate::config::scope::{Locals, PlainScope};
use crate::config::{LocalConfig, SpecExpr, Variable};
use crate::diagnostics::Diagnostic;
use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::visit::roots;
use crate::expression::{Expr, Kind, Root};
use crate::types::Type;
use crate::value::{Datum, Value};

/// The values that are known before planning.
pub(super) struct KnownValues<'a> {
    pub(super) variables: &'a BTreeMap<Name, Variable>,
    pub(super) files: &'a BTreeMap<String, Arc<str>>,
    pub(super) locals: &'a BTreeMap<Name, LocalConfig>,
}

impl<'a> KnownValues<'a> {
    fn scope(&self) -> BeforePlanning<'a> {
        let Self { variables, files, locals } = *self;
        BeforePlanning { plain: PlainScope { variables, locals: Locals::new(locals), files } }
    }
}

/// One instance of a call.
pub(super) struct Instance {
    pub(super) path: ModulePath,
    /// The entry of `for_each` that it is made for.
    pub(super) entry: Option<Entry>,
}

/// Returns the keys of a `for_each`, each with true if the entry is its own key.
pub(super) fn keys(value: &SpecExpr, known: &KnownValues<'_>) -> Result<Keys, Box<Diagnostic>> {
    let datum = computed("for_each", value, known)?;
    let wrong = || Box::new(say::wrong_value("for_each", value.span));
    match &datum.value {
        Value::Map(entries) => {
            Ok(Keys { keys: entries.keys().cloned().collect(), are_values: false })
        }
        Value::List(items) | Value::Set(items) => {
            let keys: Option<Vec<Name>> =
                items.iter().map(|item| item.as_str().map(Name::from)).collect();
            let mut keys = keys.ok_or_else(wrong)?;
            let count = keys.len();
            keys.sort();
            keys.dedup();
            if keys.len() < count { Err(wrong()) } else { Ok(Keys { keys, are_values: true }) }
        }
        _ => Err(wrong()),
    }
}

/// The keys of a `for_each`.
pub(super) struct Keys {
    pub(super) keys: Vec<Name>,
    /// True for a list of texts, whose entries are the keys.
    pub(super) are_values: bool,
}

/// Returns true if an instance with this `enabled` exists.
pub(super) fn is_enabled(
    value: &SpecExpr,
    known: &KnownValues<'_>,
) -> Result<bool, Box<Diagnostic>> {
    match computed("enabled", value, known)?.value {
        Value::Bool(enabled) => Ok(enabled),
        _ => Err(say::wrong_value("enabled", value.span).into()),
    }
}

/// Computes a value whose outermost level must be known.
fn computed(
    key: &str,
    value: &SpecExpr,
    known: &KnownValues<'_>,
) -> Result<Datum, Box<Diagnostic>> {
    let scope = known.scope();
    let datum = evaluate(&value.expr, &scope).map_err(|error| {
        Box::new(say::not_known(key, &error.message, value.span_of(error.range)))
    })?;
    if !datum.sensitive.is_empty() {
        return Err(
            say::not_known(key, "it is made of a secret, and keys are shown", value.span).into()
        );
    }
    if matches!(datum.value, Value::Unknown(_)) {
        return Err(
            say::not_known(key, "it depends on what a resource computes", value.span).into()
        );
    }
    Ok(datum)
}

/// Returns the value of a local; none if it is not known before planning.
pub(super) fn known_local(name: &Name, known: &KnownValues<'_>) -> Option<Datum> {
    let scope = known.scope();
    let value = scope.plain.locals.get(name, &scope).ok()?;
    value.value.is_known().then_some(value)
}

/// The scope before planning: the values of resources are unknown.
struct BeforePlanning<'a> {
    plain: PlainScope<'a>,
}

impl Scope for BeforePlanning<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Resource(block) => self.resource(block, None),
            Root::Local(name) => self.plain.locals.get(name, self),
            root => self.plain.root(root),
        }
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        let reference = Expr::nowhere(Kind::Root(Root::Resource(block.clone())));
        Ok(Datum::plain(Value::unknown(Type::Any, reference)))
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.plain.source(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.plain.file(path)
    }
}

/// Returns true if a value refers to an output of one of these calls, directly or through locals.
pub(super) fn waits_for(
    value: &SpecExpr,
    locals: &BTreeMap<Name, LocalConfig>,
    calls: &[ModulePath],
) -> bool {
    let (mut open, mut seen) = (vec![&value.expr], std::collections::BTreeSet::new());
    let mut waits = false;
    while let Some(expr) = open.pop() {
        roots(expr, &mut |root, _| {
            let Root::Local(name) = root else { return };
            if !seen.insert(name.clone()) {
                return;
            }
            match locals.get(name) {
                Some(local) => open.push(&local.value.expr),
                None => waits |= calls.iter().any(|call| is_below(name, call)),
            }
        });
    }
    waits
}

/// Returns true if a local belongs to a call, or is the whole value of it.
fn is_below(local: &str, call: &ModulePath) -> bool {
    let rest = local.strip_prefix(call.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
