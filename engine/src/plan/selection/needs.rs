//! What a target refers to, as far as the text of the spec says it: one instance where a key is written
//! down, or is the target's own, and else all instances of the block.

use std::collections::BTreeSet;

use crate::address::{Block, Name};
use crate::expression::visit::walk;
use crate::expression::{Expr, Kind, Root};
use crate::graph::expressions;
use crate::plan::input::Target;
use crate::spec::Config;
use crate::value::Value;

/// What the block of a target refers to, or names in `depends_on`.
pub(super) fn of(config: &Config, target: &Target) -> Vec<Target> {
    let Some(resource) = config.resources.get(target.block()) else { return Vec::new() };
    let key = match target {
        Target::Block(_) => None,
        Target::Instance(address) => address.key.as_ref(),
    };
    let mut search = Search { config, key, found: BTreeSet::new(), locals: BTreeSet::new() };
    for (address, _) in &resource.depends_on {
        search.add(&address.block, address.key.as_ref());
    }
    for value in expressions(resource) {
        search.look_at(&value.expr);
    }
    search.found.into_iter().collect()
}

struct Search<'a> {
    config: &'a Config,
    /// The key of the instance that refers, where only one does.
    key: Option<&'a Name>,
    found: BTreeSet<Target>,
    /// The locals that were looked at.
    locals: BTreeSet<&'a Name>,
}

impl<'a> Search<'a> {
    fn add(&mut self, block: &Block, key: Option<&Name>) {
        self.found.insert(match key {
            Some(key) => Target::Instance(block.instance(Some(key.clone()))),
            None => Target::Block(block.clone()),
        });
    }

    fn look_at(&mut self, expr: &'a Expr) {
        let mut locals = Vec::new();
        // The root of a reference with a key is met right after the key was.
        let mut keyed: Option<&Expr> = None;
        walk(expr, &mut |part| match &part.kind {
            Kind::Index(base, index) => {
                if let (Kind::Root(Root::Resource(block)), Some(key)) =
                    (&base.kind, self.key_of(index))
                {
                    self.add(block, Some(&key));
                    keyed = Some(base);
                }
            }
            Kind::Root(Root::Resource(block))
                if keyed.is_none_or(|known| !std::ptr::eq(known, part)) =>
            {
                self.add(block, None);
            }
            Kind::Root(Root::Local(name)) => locals.push(name),
            _ => {}
        });
        for name in locals {
            if self.locals.insert(name)
                && let Some(value) = self.config.locals.get(name)
            {
                self.look_at(&value.expr);
            }
        }
    }

    fn key_of(&self, index: &Expr) -> Option<Name> {
        match &index.kind {
            Kind::Literal(Value::String(key)) => Some(key.clone()),
            Kind::Root(Root::EachKey) => self.key.cloned(),
            _ => None,
        }
    }
}
