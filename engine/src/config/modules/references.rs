//! The translation of references of one module into the names of the whole spec.
//!
//! A module is written with names of its own: `var.size`, `local.name`, `value.a`, `module.y.url`. In the whole spec
//! these are a local `module.x.var.size`, a local `module.x.local.name`, a block `module.x.value.a`, and a local
//! `module.x.module.y.url`.

use std::collections::BTreeMap;

use super::diagnostics as say;
use crate::address::{ModulePath, Name};
use crate::config::checker::place;
use crate::config::{Item, RawBlock, SpecExpr};
use crate::diagnostics::{Diagnostics, FileId};
use crate::expression::visit::change;
use crate::expression::{Expr, Kind, Range, Root};
use crate::value::Value;

/// The name of a module's input in the whole spec.
pub(super) fn input(path: &ModulePath, name: &str) -> Name {
    path.name_of(&format!("var.{name}"))
}

/// The name of a module's local in the whole spec.
pub(super) fn local(path: &ModulePath, name: &str) -> Name {
    if path.is_root() { name.into() } else { path.name_of(&format!("local.{name}")) }
}

/// Returns the name of the local with all outputs of a module, or of all its instances.
pub(super) fn whole(path: &ModulePath) -> Name {
    path.as_str().into()
}

/// Returns the name of the local with the `for_each` of a call, in which `each.value` finds its entries.
pub(super) fn entries(call: &ModulePath) -> Name {
    call.name_of("for_each")
}

/// The entry of a call's `for_each` that `each` means in the inputs of the call.
#[derive(Clone)]
pub(super) struct Entry {
    /// The key of the entry.
    pub(super) key: Name,
    /// The local that holds all entries; none if an entry is its own key.
    pub(super) entries: Option<Name>,
}

/// The translation of references of one module into the names of the whole spec.
pub(super) struct References<'a> {
    /// The module.
    pub(super) path: &'a ModulePath,
    /// The calls of other modules in this module.
    pub(super) calls: &'a BTreeMap<Name, RawBlock>,
    /// The meaning of `each`; none if it keeps its own meaning.
    pub(super) each: Option<Entry>,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl References<'_> {
    /// Changes the references of the value of a key.
    pub(super) fn item(&mut self, item: &mut Item) {
        self.value(&mut item.value);
    }

    /// Changes the references of a value.
    pub(super) fn value(&mut self, value: &mut SpecExpr) {
        let file = value.span.file;
        change(&mut value.expr, &mut |part| self.part(part, file));
    }

    /// Changes a reference; returns true if its parts are to be changed, too.
    fn part(&mut self, part: &mut Expr, file: FileId) -> bool {
        let range = part.range;
        let Some(root) = self.root(part, file) else { return true };
        *part = Expr { kind: root, range };
        false
    }

    fn root(&mut self, part: &Expr, file: FileId) -> Option<Kind> {
        let local = |name: Name| Some(Kind::Root(Root::Local(name)));
        match &part.kind {
            Kind::Attribute(base, output) => {
                let module = self.instance(base, file)?;
                local(module.name_of(output))
            }
            Kind::Index(..) => local(whole(&self.instance(part, file)?)),
            Kind::Root(Root::Module(name)) if self.calls.contains_key(name) => {
                local(whole(&self.path.join(name, None)))
            }
            Kind::Root(Root::EachKey) => {
                Some(Kind::Literal(Value::String(self.each.as_ref()?.key.clone())))
            }
            Kind::Root(Root::EachValue) => Some(self.each.as_ref()?.value(part.range)),
            Kind::Root(Root::Var(name)) if !self.path.is_root() => local(input(self.path, name)),
            Kind::Root(Root::Local(name)) if !self.path.is_root() => {
                local(self::local(self.path, name))
            }
            Kind::Root(Root::Resource(block)) if !self.path.is_root() => {
                Some(Kind::Root(Root::Resource(block.within(self.path))))
            }
            _ => None,
        }
    }

    /// Returns the instance of a called module that an expression names directly; none for other expressions.
    fn instance(&mut self, expr: &Expr, file: FileId) -> Option<ModulePath> {
        let (root, index) = match &expr.kind {
            Kind::Index(base, index) => (&**base, Some(&**index)),
            _ => (expr, None),
        };
        let Kind::Root(Root::Module(name)) = &root.kind else { return None };
        let keyed = self.calls.get(name)?.items.contains_key("for_each");
        let at = place(file, expr.range);
        match (keyed, index) {
            (false, None) => Some(self.path.join(name, None)),
            (true, None) => {
                self.diagnostics.push(say::no_instance_named(name, at));
                None
            }
            (false, Some(_)) => {
                self.diagnostics.push(say::no_instances(name, at));
                None
            }
            (true, Some(index)) => match &index.kind {
                Kind::Literal(Value::String(key)) => Some(self.path.join(name, Some(key))),
                Kind::Root(Root::EachKey) => {
                    let key = &self.each.as_ref()?.key;
                    Some(self.path.join(name, Some(key)))
                }
                _ => None,
            },
        }
    }
}

impl Entry {
    /// The value of the entry.
    fn value(&self, range: Range) -> Kind {
        let key = Kind::Literal(Value::String(self.key.clone()));
        let Some(entries) = &self.entries else { return key };
        let at = |kind| Box::new(Expr { kind, range });
        Kind::Index(at(Kind::Root(Root::Local(entries.clone()))), at(key))
    }
}
