//! The types of expressions, from a spec that is resolved already.

use std::cell::RefCell;
use std::collections::BTreeMap;

use engine::address::{Block, Name};
use engine::config::{Config, SpecExpr, fetched};
use engine::expression::check::{Types, Unresolved, check};
use engine::expression::parse::{Dialect, expression};
use engine::expression::{Expr, Root};
use engine::types::Type;

/// The types of the names of a spec, as seen from one block.
pub(crate) struct View<'a> {
    config: &'a Config,
    /// The resource that the place is in.
    own: Option<Block>,
    /// The types of locals; `any` while one is being inferred, for one may refer to itself.
    locals: RefCell<BTreeMap<Name, Type>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(config: &'a Config, own: Option<Block>) -> Self {
        Self { config, own, locals: RefCell::default() }
    }

    /// The type of an expression; what is wrong in it counts as `any`.
    pub(crate) fn type_of(&self, expr: &Expr) -> Type {
        check(expr, self, &mut Vec::new())
    }

    /// The same of a text, with the expression; none of a text that is none.
    pub(crate) fn parsed(&self, text: &str) -> Option<(Expr, Type)> {
        let expr = expression(text, Dialect::Spec).ok()?;
        let ty = self.type_of(&expr);
        Some((expr, ty))
    }

    fn local(&self, name: &Name) -> Type {
        if let Some(known) = self.locals.borrow().get(name) {
            return known.clone();
        }
        let Some(local) = self.config.locals.get(name) else { return Type::Any };
        if let Some(ty) = &local.ty {
            return ty.clone();
        }
        self.locals.borrow_mut().insert(name.clone(), Type::Any);
        let ty = self.type_of(&local.value.expr);
        self.locals.borrow_mut().insert(name.clone(), ty.clone());
        ty
    }

    fn resource(&self, block: &Block) -> Type {
        let found = if block.is_data {
            let data = self.config.data.get(block);
            data.map(|data| (data.schema.object_type(), data.for_each.is_some()))
        } else {
            let resource = self.config.resources.get(block);
            resource.map(|resource| (resource.schema.object_type(), resource.for_each.is_some()))
        };
        match found {
            None => Type::Any,
            Some((object, true)) => Type::map(object),
            Some((object, false)) => object,
        }
    }

    /// The `for_each` of the block that the place is in.
    fn entries(&self) -> Option<&SpecExpr> {
        let own = self.own.as_ref()?;
        if own.is_data {
            return self.config.data.get(own)?.for_each.as_ref();
        }
        self.config.resources.get(own)?.for_each.as_ref()
    }

    /// The type of `each.value`.
    fn each(&self) -> Type {
        let Some(entries) = self.entries() else { return Type::Any };
        match self.type_of(&entries.expr) {
            Type::Map(item) => *item,
            Type::List(_) | Type::Set(_) => Type::String,
            Type::Object(fields) => fields.into_values().next().map_or(Type::Any, |field| field.ty),
            _ => Type::Any,
        }
    }
}

impl Types for View<'_> {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        Ok(match root {
            Root::Var(name) => {
                self.config.variables.get(name).map_or(Type::Any, |variable| variable.ty.clone())
            }
            Root::Local(name) => self.local(name),
            Root::Module(name) => self.local(&format!("module.{name}").into()),
            Root::EachKey => Type::String,
            Root::EachValue => self.each(),
            Root::Resource(block) => self.resource(block),
            Root::Named(name) if matches!(&**name, "job" | "http") => fetched(name),
            Root::Named(_) => Type::Any,
        })
    }
}
