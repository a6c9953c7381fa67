//! Filling residuals: the only computing that apply does.
//!
//! A residual refers to objects that are there by now and to sensitive variables that were given again. A
//! value that the plan knew is not computed a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Block, Name};
use engine::expression::evaluate::{self, Scope};
use engine::expression::visit::without_literals;
use engine::expression::{Access, Expr, Kind, Root, visit};
use engine::plan::facts::prior::stored_attributes;
use engine::schema::{Attribute, Presence, TypeSchema};
use engine::state::{Entry, Object, Snapshot};
use engine::value::{Attributes, Datum, Path, Paths, Value};

use crate::Providers;
use crate::refresh::sensitive;

/// The objects and variables that residuals may refer to.
pub(crate) struct FillScope<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) providers: &'a Providers,
    pub(crate) variables: &'a BTreeMap<Name, Datum>,
    /// The answers that look-ups fetched, in clear.
    pub(crate) looked_up: &'a BTreeMap<Address, Datum>,
    /// The attributes of objects that hold secrets, in clear, as far as this run knows them.
    pub(crate) clear: &'a BTreeMap<Address, Attributes>,
    /// True if an attribute that no answer has shown counts as null, for callers that only show values.
    pub(crate) takes_unshown_for_null: bool,
}

/// The scope of one expression. An attribute that the expression names and that no answer has shown is
/// unknown, not null. An object that the expression uses as a whole has only the attributes that were shown.
struct Asking<'a> {
    scope: &'a FillScope<'a>,
    named: BTreeSet<&'a Name>,
}

/// Returns the names of the attributes that an expression reads, on whatever object.
pub(crate) fn named(expr: &Expr) -> BTreeSet<&Name> {
    let mut names = BTreeSet::new();
    visit::walk(expr, &mut |part| match &part.kind {
        Kind::Attribute(_, name) => {
            names.insert(name);
        }
        Kind::Index(_, index) => names.extend(text(index)),
        Kind::Splat(_, rest) => names.extend(rest.iter().filter_map(|access| match access {
            Access::Attribute(name) => Some(name),
            Access::Index(index) => text(index),
        })),
        _ => {}
    });
    names
}

fn text(expr: &Expr) -> Option<&Name> {
    match &expr.kind {
        Kind::Literal(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns true if only the API can say the value of an attribute that the spec does not give.
pub(crate) fn is_told_by_api(attribute: &Attribute) -> bool {
    let computed = attribute.presence == Presence::Computed && attribute.derived.is_none();
    computed || attribute.server_default
}

impl Asking<'_> {
    fn object(&self, address: &Address, entry: &Entry, object: &Object) -> Result<Datum, String> {
        let (mut attributes, schema) = self.scope.attributes(address, entry, object)?;
        for (name, attribute) in &schema.attributes {
            let is_named = self.named.contains(name) && is_told_by_api(attribute);
            if is_named && !attributes.contains_key(name) {
                let unknown = Value::unknown(attribute.ty.clone(), Expr::slot(address, name));
                attributes.insert(name.clone(), unknown);
            }
        }
        let sensitive = sensitive(&schema, &object.sensitive);
        Ok(Datum { value: Value::map(attributes), sensitive })
    }
}

impl FillScope<'_> {
    /// Returns the known attributes of an object, secrets in clear as far as this run knows them.
    fn attributes(
        &self,
        address: &Address,
        entry: &Entry,
        object: &Object,
    ) -> Result<(Attributes, Arc<TypeSchema>), String> {
        let provider = self.providers.get(&entry.provider);
        let schema: Option<Arc<TypeSchema>> =
            provider.and_then(|p| p.schema().types.get(&address.block.ty).cloned());
        let schema = schema.ok_or_else(|| format!("{address} has no provider"))?;
        let mut attributes = stored_attributes(&object.attributes, &schema)?;
        if let Some(clear) = self.clear.get(address) {
            attributes.extend(clear.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok((attributes, schema))
    }
}

impl FillScope<'_> {
    /// Returns the answer of a look-up, or those of all the look-ups of its block.
    fn looked_up(&self, address: &Address) -> Result<Datum, String> {
        if let Some(datum) = self.looked_up.get(address) {
            return Ok(datum.clone());
        }
        let (mut objects, mut paths) = (Attributes::new(), Paths::none());
        let own = self.looked_up.range(address..);
        for (other, datum) in own.take_while(|(other, _)| other.block == address.block) {
            let Some(key) = other.key.as_ref().filter(|_| address.key.is_none()) else { continue };
            paths.extend_below(&Path::attribute(key.clone()), &datum.sensitive);
            objects.insert(key.clone(), datum.value.clone());
        }
        if objects.is_empty() {
            return Err(format!("`{address}` is known only while planning"));
        }
        Ok(Datum { value: Value::map(objects), sensitive: paths })
    }

    /// Returns a reference in the form that people write: `block[key]`, where the evaluator reads the key as
    /// an attribute of the block.
    fn written(&self, reference: &Expr) -> Expr {
        match &reference.kind {
            Kind::Attribute(base, name) => {
                if let Kind::Root(Root::Resource(block)) = &base.kind
                    && self.snapshot.entries.contains_key(&block.instance(Some(name.clone())))
                {
                    let key = Expr::literal(Value::String(name.clone()));
                    return Expr::nowhere(Kind::Index(base.clone(), Box::new(key)));
                }
                Expr::nowhere(Kind::Attribute(Box::new(self.written(base)), name.clone()))
            }
            Kind::Index(base, index) => {
                Expr::nowhere(Kind::Index(Box::new(self.written(base)), index.clone()))
            }
            _ => reference.clone(),
        }
    }
}

impl Scope for FillScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        Asking { scope: self, named: BTreeSet::new() }.root(root)
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        Asking { scope: self, named: BTreeSet::new() }.resource(block, key)
    }
}

impl Scope for Asking<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) => match self.scope.variables.get(name) {
                Some(datum) => Ok(datum.clone()),
                None => Err(format!("the variable `{name}` is not given")),
            },
            _ => Err("a residual refers to objects and variables only".to_owned()),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let address = block.instance(key.map(Into::into));
        if block.is_data {
            return self.scope.looked_up(&address);
        }
        let entries = &self.scope.snapshot.entries;
        if let Some(entry) = entries.get(&address) {
            return match &entry.current {
                Some(object) => self.object(&address, entry, object),
                None => Err(format!("{address} is not there")),
            };
        }
        if key.is_some() {
            return Err(format!("{address} is not there"));
        }
        let (mut objects, mut paths) = (Attributes::new(), Paths::none());
        // The instances of a block stand side by side.
        let own = entries.range(address..).take_while(|(address, _)| address.block == *block);
        for (address, entry) in own {
            let Some(key) = address.key.as_ref() else { continue };
            let Some(object) = &entry.current else { continue };
            let datum = self.object(address, entry, object)?;
            paths.extend_below(&Path::attribute(key.clone()), &datum.sensitive);
            objects.insert(key.clone(), datum.value);
        }
        if objects.is_empty() {
            return Err(format!("{block} is not there"));
        }
        Ok(Datum { value: Value::map(objects), sensitive: paths })
    }
}

/// Computes an expression whose value must be known and in clear now.
pub(crate) fn known(expr: &Expr, scope: &FillScope<'_>) -> Result<Datum, String> {
    let named = if scope.takes_unshown_for_null { BTreeSet::new() } else { named(expr) };
    let asking = Asking { scope, named };
    let datum = evaluate::evaluate(expr, &asking).map_err(|error| error.message)?;
    let unknown = first_unknown(&datum.value);
    if unknown.is_none() && !datum.value.holds_sealed() {
        return Ok(datum);
    }
    if let Some(part) = first_sealed(unknown.unwrap_or(expr), &asking) {
        return Err(format!("of `{}` only the fingerprint is known", scope.written(&part)));
    }
    Err(match unknown {
        Some(residual) => format!("no answer has shown `{}` so far", without_literals(residual)),
        None => format!("of `{}` only the fingerprint is known", without_literals(expr)),
    })
}

/// Computes an expression as a later plan sees it, with fingerprints for secrets. Returns `None` if something
/// is not known.
pub(crate) fn kept(expr: &Expr, scope: &FillScope<'_>) -> Option<Value> {
    let nothing = BTreeMap::new();
    let scope = &FillScope { clear: &nothing, ..*scope };
    let value = evaluate::evaluate(expr, &Asking { scope, named: BTreeSet::new() }).ok()?.value;
    value.is_known().then_some(value)
}

fn first_unknown(value: &Value) -> Option<&Expr> {
    match value {
        Value::Unknown(unknown) => Some(&unknown.residual),
        Value::List(items) | Value::Set(items) => items.iter().find_map(first_unknown),
        Value::Map(entries) => entries.values().find_map(first_unknown),
        _ => None,
    }
}

/// Returns the first reference in an expression to a secret of which only the fingerprint is known.
fn first_sealed(expr: &Expr, scope: &Asking<'_>) -> Option<Expr> {
    let mut found = None;
    visit::references(expr, &mut |part| {
        let is_sealed =
            || evaluate::evaluate(part, scope).is_ok_and(|datum| datum.value.holds_sealed());
        if found.is_none() && is_sealed() {
            found = Some(part.clone());
        }
    });
    found
}

/// Replaces every unknown part of a value by its value now.
pub(crate) fn fill(value: &Value, scope: &FillScope<'_>) -> Result<Value, String> {
    match value {
        Value::Unknown(unknown) => {
            let datum = known(&unknown.residual, scope)?;
            let converted = datum.value.convert(&unknown.ty);
            converted.map_err(|misfit| misfit.shown(!datum.sensitive.is_empty()))
        }
        Value::List(items) => {
            Ok(Value::list(items.iter().map(|item| fill(item, scope)).collect::<Result<_, _>>()?))
        }
        Value::Set(items) => {
            Ok(Value::set(items.iter().map(|item| fill(item, scope)).collect::<Result<_, _>>()?))
        }
        Value::Map(entries) => {
            let fill = |(name, item): (&Name, &Value)| Ok((name.clone(), fill(item, scope)?));
            Ok(Value::map(entries.iter().map(fill).collect::<Result<_, String>>()?))
        }
        plain => Ok(plain.clone()),
    }
}
