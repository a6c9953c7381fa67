//! The targets that a target refers to, and those that refer to it, by the text of the spec: one instance if
//! a key is written down, or is the instance's own; else all instances of the block.

use std::collections::BTreeSet;

use crate::address::{Address, Block, ModulePath, Name};
use crate::config::Config;
use crate::expression::visit::walk;
use crate::expression::{Expr, Kind, Root};
use crate::graph::{Graph, expressions};
use crate::plan::input::Target;
use crate::value::Value;

/// Returns the targets that the block of a target refers to, or names in `depends_on`.
pub(in crate::plan) fn of(config: &Config, target: &Target) -> Vec<Target> {
    let (block, key) = match target {
        Target::Block(block) => (block, None),
        Target::Instance(address) => (&address.block, address.key.as_ref()),
        Target::Module(path) => {
            return inside(config, path).flat_map(|block| of(config, &block)).collect();
        }
    };
    let Some(resource) = config.resources.get(block) else { return Vec::new() };
    let mut search = Search { config, key, found: BTreeSet::new(), locals: BTreeSet::new() };
    for (address, _) in &resource.depends_on {
        search.add(&address.block, address.key.as_ref());
    }
    for value in expressions(resource) {
        search.look_at(&value.expr);
    }
    search.found.into_iter().collect()
}

/// Returns the targets that an expression refers to.
pub(in crate::plan) fn of_expression(config: &Config, expr: &Expr) -> Vec<Target> {
    let mut search = Search { config, key: None, found: BTreeSet::new(), locals: BTreeSet::new() };
    search.look_at(expr);
    search.found.into_iter().collect()
}

/// Returns the given targets, and all that `next` leads to from them, step by step.
pub(in crate::plan) fn reached(
    first: Vec<Target>,
    next: &dyn Fn(&Target) -> Vec<Target>,
) -> BTreeSet<Target> {
    let mut reached = BTreeSet::new();
    let mut open = first;
    while let Some(target) = open.pop() {
        if reached.insert(target.clone()) {
            open.extend(next(&target));
        }
    }
    reached
}

/// Returns the targets that refer to a target directly, or name it in `depends_on`.
pub(in crate::plan) fn users(config: &Config, graph: &Graph, target: &Target) -> Vec<Target> {
    match target {
        Target::Block(block) => {
            graph.dependents(block).into_iter().cloned().map(Target::Block).collect()
        }
        Target::Instance(own) => {
            let users = graph.dependents(&own.block).into_iter();
            users.filter_map(|user| user_of(config, own, user)).collect()
        }
        Target::Module(path) => {
            inside(config, path).flat_map(|block| users(config, graph, &block)).collect()
        }
    }
}

/// Returns the blocks of a module and of the modules inside it.
fn inside<'a>(config: &'a Config, path: &'a ModulePath) -> impl Iterator<Item = Target> + 'a {
    let blocks = config.resources.keys().filter(|block| block.module.is_within(path));
    blocks.cloned().map(Target::Block)
}

/// Returns the instances of the block `user` that refer to the instance `own`: all of them, none, or the one
/// with the same key.
fn user_of(config: &Config, own: &Address, user: &Block) -> Option<Target> {
    let refers = |user: &Address| {
        let needs = of(config, &Target::Instance(user.clone()));
        needs.contains(&Target::Block(own.block.clone()))
            || needs.contains(&Target::Instance(own.clone()))
    };
    let key = own.key.as_deref().unwrap_or_default();
    // An instance with another key that refers to `own` does not do so by its own key.
    if refers(&user.instance(Some(format!("{key}+").into()))) {
        return Some(Target::Block(user.clone()));
    }
    let same = user.instance(Some(key.into()));
    refers(&same).then_some(Target::Instance(same))
}

struct Search<'a> {
    config: &'a Config,
    /// The key of the instance that refers; none if all instances of the block do.
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
        // The walk meets the root of a reference with a key right after the key.
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
                && let Some(local) = self.config.locals.get(name)
            {
                self.look_at(&local.value.expr);
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
