//! `[[import]]` blocks: objects that exist and are to be taken over into the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checker::Checker;
use super::names::Names;
use super::resource::for_each;
use super::scope::{Locals, PlainScope};
use super::{
    Document, ImportConfig, ImportedObject, LocalConfig, RawBlock, SpecExpr, Variable,
    diagnostics as say,
};
use crate::address::{Address, Block, Name};
use crate::diagnostics::Diagnostics;
use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::{Expr, Root};
use crate::state::ObjectId;
use crate::types::Type;
use crate::value::{Datum, Segment, Value};

/// The values that an import is computed from.
pub(super) struct KnownValues<'a> {
    pub(super) variables: &'a BTreeMap<Name, Variable>,
    pub(super) files: &'a BTreeMap<String, Arc<str>>,
}

/// Reads and checks the imports. The planner checks that the objects exist, and that no other address has
/// them.
pub(super) fn imports(
    document: &Document,
    names: &Names<'_>,
    known: &KnownValues<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Address, ImportConfig> {
    let mut imports = BTreeMap::new();
    if document.imports.is_empty() {
        return imports;
    }
    let locals = locals(document, names);
    let KnownValues { variables, files } = *known;
    let plain = PlainScope { variables, locals: Locals::new(&locals), files };
    let (mut addresses, mut objects) = (BTreeMap::new(), BTreeMap::new());
    for raw in &document.imports {
        let mut found = Diagnostics::new();
        let mut checker = Checker::new(document, names, &mut found);
        let all = Import::checked(&mut checker, raw).map(|import| import.all(&mut checker, &plain));
        diagnostics.extend(found);
        for (to, import) in all.into_iter().flatten() {
            let object = (to.block.ty.clone(), import.object.clone());
            let first =
                [addresses.get(&to), objects.get(&object)].into_iter().flatten().min().copied();
            if let Some(first) = first {
                diagnostics.push(say::imported_twice(raw.header, first));
                break;
            }
            objects.insert(object, raw.header);
            addresses.insert(to.clone(), raw.header);
            imports.insert(to, import);
        }
    }
    imports
}

/// Returns the locals of the whole spec, in the form that the config will have.
fn locals(document: &Document, names: &Names<'_>) -> BTreeMap<Name, LocalConfig> {
    let local = |(name, item): (&Name, &super::Item)| {
        let ty = names.modules.input_types.get(name).cloned();
        (name.clone(), LocalConfig { value: item.value.clone(), ty })
    };
    document.locals.iter().map(local).collect()
}

/// An import block whose expressions have the right types.
struct Import<'a> {
    for_each: Option<&'a SpecExpr>,
    to: &'a SpecExpr,
    /// The id or the name of the object.
    object: &'a SpecExpr,
    is_name: bool,
}

impl<'a> Import<'a> {
    fn checked(checker: &mut Checker<'_>, raw: &'a RawBlock) -> Option<Self> {
        let item = |key: &str| raw.items.get(key).map(|item| &item.value);
        if let Some(value) = item("for_each") {
            checker.view.each = Some(for_each(checker, value));
        }
        let (to, id, name) = (item("to"), item("id"), item("name"));
        if to.is_none() {
            checker.push(say::missing_key("this import", "to", raw.header));
        }
        match (id, name) {
            (None, None) => checker.push(say::missing_key("this import", "id", raw.header)),
            (Some(_), Some(name)) => checker.push(say::import_by_both(name.span)),
            _ => {}
        }
        for value in [to, id, name].into_iter().flatten() {
            checker.expect(value, &Type::String);
        }
        let is_right = checker.diagnostics.is_empty()
            && ![to, id, name].into_iter().flatten().any(|value| checker.is_broken(value));
        let (to, object) = (to?, id.or(name)?);
        let for_each = item("for_each");
        let import = Self { for_each, to, object, is_name: id.is_none() };
        is_right.then_some(import)
    }

    /// Returns the imports of all entries of `for_each`, or the only one. A mistake in one ends the rest.
    fn all(
        &self,
        checker: &mut Checker<'_>,
        plain: &PlainScope<'_>,
    ) -> Vec<(Address, ImportConfig)> {
        let Some(value) = self.for_each else {
            return self.one(checker, &ImportScope { plain, each: None }).into_iter().collect();
        };
        let mut all = Vec::new();
        for entry in entries(checker, value, plain).unwrap_or_default() {
            let before = checker.diagnostics.len();
            all.extend(self.one(checker, &ImportScope { plain, each: Some(entry) }));
            if checker.diagnostics.len() > before {
                break;
            }
        }
        all
    }

    fn one(
        &self,
        checker: &mut Checker<'_>,
        scope: &ImportScope<'_>,
    ) -> Option<(Address, ImportConfig)> {
        let to = text(checker, "to", self.to, scope)?;
        let address = match to.parse::<Address>() {
            Ok(address) => address,
            Err(error) => {
                checker.push(say::bad_address(&error, self.to.span));
                return None;
            }
        };
        let word = if self.is_name { "name" } else { "id" };
        let object = text(checker, word, self.object, scope)?;
        let object = if self.is_name {
            ImportedObject::Named(object)
        } else {
            match ObjectId::typed(&object) {
                Ok(id) => ImportedObject::Id(id),
                Err(why) => {
                    checker.push(say::bad_id(why, self.object.span));
                    return None;
                }
            }
        };
        let names = checker.view.names;
        let Some(known) = names.resources.get(&address.block) else {
            if !names.modules.unknown.iter().any(|it| address.block.module.is_within(it)) {
                let help = names.resource_help(&address.block, None);
                checker.push(say::import_of_nothing(&address.block, help, self.to.span));
            }
            return None;
        };
        if known.keyed != address.key.is_some() {
            checker.push(say::import_key(&address, known.keyed, self.to.span));
            return None;
        }
        let schema = known.managed.as_ref().map(|(_, schema)| schema);
        if self.is_name && schema.is_some_and(|schema| schema.name_attribute.is_none()) {
            checker.push(say::import_of_nameless(&address.block.ty, self.object.span));
            return None;
        }
        Some((address, ImportConfig { object, span: Some(self.object.span), of_type: false }))
    }
}

/// Returns a text that is known before planning; none if it depends on a variable for which `validate` has no
/// value.
fn text(
    checker: &mut Checker<'_>,
    key: &str,
    value: &SpecExpr,
    scope: &ImportScope<'_>,
) -> Option<Name> {
    match computed(checker, key, value, scope)?.value {
        Value::String(text) => Some(text),
        Value::Unknown(_) => None,
        other => {
            checker.push(say::wrong_type(&Type::String, Some(&other), value.span));
            None
        }
    }
}

/// Returns the entries of `for_each`: each a key and its value.
fn entries(
    checker: &mut Checker<'_>,
    value: &SpecExpr,
    plain: &PlainScope<'_>,
) -> Option<Vec<(Name, Datum)>> {
    let datum = computed(checker, "for_each", value, &ImportScope { plain, each: None })?;
    Some(match &datum.value {
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| {
                let sensitive = datum.sensitive.inside(&Segment::Key(key.clone()));
                (key.clone(), Datum { value: value.clone(), sensitive })
            })
            .collect(),
        Value::List(items) | Value::Set(items) => items
            .iter()
            .filter_map(|item| Some((Name::from(item.as_str()?), Datum::plain(item.clone()))))
            .collect(),
        _ => Vec::new(),
    })
}

/// Computes a value of an import. It must not be secret, because addresses and ids are shown.
fn computed(
    checker: &mut Checker<'_>,
    key: &str,
    value: &SpecExpr,
    scope: &ImportScope<'_>,
) -> Option<Datum> {
    match evaluate(&value.expr, scope) {
        Ok(datum) if datum.sensitive.is_empty() => Some(datum),
        Ok(_) => {
            checker.push(say::import_of_a_secret(key, value.span));
            None
        }
        Err(error) => {
            let at = value.span_of(error.range);
            checker.push(say::import_not_known(key, &error.message, at));
            None
        }
    }
}

/// The scope of an import: the values that are known before planning, and `each`.
struct ImportScope<'a> {
    plain: &'a PlainScope<'a>,
    each: Option<(Name, Datum)>,
}

impl Scope for ImportScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match (root, &self.each) {
            (Root::EachKey, Some((key, _))) => Ok(Datum::plain(Value::String(key.clone()))),
            (Root::EachValue, Some((_, value))) => Ok(value.clone()),
            (root, _) => self.plain.root(root),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.plain.resource(block, key)
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.plain.source(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.plain.file(path)
    }
}

#[cfg(test)]
mod tests;
