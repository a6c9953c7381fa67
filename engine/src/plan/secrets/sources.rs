//! What the attributes of a spec are made of, as far as its text tells.
//!
//! Each expression is looked at once, whoever asks how often: what all instances of a block are made for may be as
//! long as they are many.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::address::{Block, Name};
use crate::config::{Config, ResourceConfig};
use crate::expression::visit::walk;
use crate::expression::{Expr, Kind, Root};
use crate::value::Path;

/// What an expression is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Source {
    /// Nothing that is secret.
    #[default]
    Plain,
    /// Another object, which may have something secret.
    Object,
    /// A secret.
    Secret,
}

/// What the attributes of all blocks are made of.
pub(in crate::plan) struct Sources<'a>(FxHashMap<&'a Block, OfBlock<'a>>);

/// What one block is made of.
#[derive(Default)]
pub(in crate::plan) struct OfBlock<'a> {
    /// Its `for_each`.
    pub(in crate::plan) for_each: Source,
    /// Its attributes, but for plain ones.
    pub(in crate::plan) attributes: BTreeMap<&'a Name, Source>,
}

/// What one expression says itself, and what it refers to beside.
#[derive(Default)]
struct Look<'a> {
    source: Source,
    locals: BTreeSet<&'a Name>,
    has_each: bool,
}

type Locals<'a> = BTreeMap<&'a Name, Source>;

impl<'a> Sources<'a> {
    pub(in crate::plan) fn of(config: &'a Config) -> Self {
        let locals = locals(config);
        let of_block =
            |block: &'a ResourceConfig| (&block.block, OfBlock::of(block, config, &locals));
        let mut sources = Self(config.resources.values().map(of_block).collect());
        let has_secrets = |block: &ResourceConfig| !block.schema.sensitive().is_empty();
        if !sources.has_secrets() && !config.resources.values().any(has_secrets) {
            // No object has anything secret, so nothing can have come from one.
            sources.0.values_mut().for_each(|block| block.attributes.clear());
        }
        sources
    }

    pub(in crate::plan) fn of_block(&self, block: &Block) -> Option<&OfBlock<'a>> {
        self.0.get(block)
    }

    /// Whether any attribute is made of a secret.
    pub(in crate::plan) fn has_secrets(&self) -> bool {
        self.0.values().flat_map(|block| block.attributes.values()).any(|it| *it == Source::Secret)
    }
}

impl<'a> OfBlock<'a> {
    fn of(resource: &'a ResourceConfig, config: &Config, locals: &Locals<'_>) -> Self {
        let for_each = resource.for_each.as_ref();
        let for_each = for_each.map(|it| Look::at(&it.expr, config).source(locals, Source::Plain));
        let for_each = for_each.unwrap_or_default();
        let attributes = resource.attributes.iter().map(|(name, item)| {
            (name, Look::at(&item.value.expr, config).source(locals, for_each))
        });
        Self { for_each, attributes: attributes.filter(|(_, it)| *it != Source::Plain).collect() }
    }
}

impl<'a> Look<'a> {
    fn at(expr: &'a Expr, config: &Config) -> Self {
        let mut look = Self::default();
        // What is taken of an object is met before the object.
        let mut harmless: Option<&Expr> = None;
        walk(expr, &mut |part| match &part.kind {
            Kind::Call(call) if &*call.name == "sensitive" => look.source = Source::Secret,
            Kind::Root(Root::Var(name)) => {
                let variable = config.variables.get(name);
                if variable.is_some_and(|variable| !variable.value.sensitive.is_empty()) {
                    look.source = Source::Secret;
                }
            }
            Kind::Attribute(object, name) => harmless = root_of_plain((object, name), config),
            Kind::Root(Root::Resource(_)) => {
                let is_plain = harmless.take().is_some_and(|root| std::ptr::eq(root, part));
                let source = if is_plain { Source::Plain } else { Source::Object };
                look.source = look.source.max(source);
            }
            Kind::Root(Root::Local(name)) => drop(look.locals.insert(name)),
            Kind::Root(Root::EachValue) => look.has_each = true,
            _ => {}
        });
        look
    }

    /// With what it refers to.
    fn source(&self, locals: &Locals<'_>, each: Source) -> Source {
        let locals = self.locals.iter().filter_map(|name| locals.get(*name).copied());
        let each = self.has_each.then_some(each);
        locals.chain(each).fold(self.source, Source::max)
    }
}

/// The block of an attribute that is the API's own, such as an id, and no secret.
fn root_of_plain<'a>((object, name): (&'a Expr, &Name), config: &Config) -> Option<&'a Expr> {
    let (root, is_instance) = match &object.kind {
        Kind::Index(root, _) => (&**root, true),
        _ => (object, false),
    };
    let Kind::Root(Root::Resource(block)) = &root.kind else { return None };
    let resource = config.resources.get(block)?;
    let attribute = resource.schema.attributes.get(name)?;
    let is_own = attribute.derived.is_none() && !resource.attributes.contains_key(name);
    let is_secret = resource.schema.sensitive().touches(&Path::attribute(name.clone()));
    (is_own && !is_secret && resource.for_each.is_some() == is_instance).then_some(root)
}

/// What the locals are made of: what one is, all are that refer to it.
fn locals(config: &Config) -> Locals<'_> {
    let (mut sources, mut users) = (Locals::new(), BTreeMap::<&Name, Vec<&Name>>::new());
    for (name, local) in &config.locals {
        let look = Look::at(&local.expr, config);
        sources.insert(name, look.source);
        for used in look.locals {
            users.entry(used).or_default().push(name);
        }
    }
    let mut open: Vec<&Name> = sources.keys().copied().collect();
    while let Some(used) = open.pop() {
        let source = sources.get(used).copied().unwrap_or_default();
        for user in users.get(used).into_iter().flatten() {
            if let Some(own) = sources.get_mut(user).filter(|own| **own < source) {
                *own = source;
                open.push(user);
            }
        }
    }
    sources
}
