//! The resources that each entry of a `for_each` is made of.
//!
//! An instance that uses `each.value` depends on the resources that its own entry was made of, but not on
//! those of the other entries: with all of them, ten thousand instances over ten thousand objects would have
//! a hundred million dependencies. So this module computes the entries of the expression once more, one by
//! one, and notes the resources that each entry looks at. If an expression has no such entries, or they
//! cannot be separated, there is no answer here, and the caller takes all resources that the expression
//! looked at for each instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::expression::evaluate::{self, Scope};
use crate::expression::{Call, Expr, For, Kind, Root};
use crate::plan::evaluate::scope::SpecScope;
use crate::sorted::Set;
use crate::value::{Attributes, Datum, Path, Paths, Segment, Value};

/// The resources that the entries of a map, or the strings of a list, are made of, by key.
#[derive(Default)]
pub(in crate::plan) struct Origins(BTreeMap<Name, Set<Address>>);

/// The number of locals, walks and calls that are followed for one expression: one local may name another
/// many times, and that one a third.
const FOLLOWED_MAX: usize = 64;

impl Origins {
    /// Returns the origins of an expression that was evaluated before; none if its entries cannot be
    /// separated.
    pub(in crate::plan) fn of(expr: &Expr, scope: &SpecScope<'_>) -> Option<Self> {
        let mut left = FOLLOWED_MAX;
        Self::below(expr, scope, &mut left)
    }

    /// Removes and returns the resources of one entry.
    pub(in crate::plan) fn take(&mut self, key: &str) -> Option<Set<Address>> {
        self.0.remove(key)
    }

    fn below(expr: &Expr, scope: &SpecScope<'_>, left: &mut usize) -> Option<Self> {
        *left = left.checked_sub(1)?;
        match &expr.kind {
            Kind::Root(Root::Resource(block)) => Self::of_instances(block, scope),
            // Locals are acyclic: the spec's resolution proved it.
            Kind::Root(Root::Local(name)) => {
                Self::below(scope.local_expression(name)?, scope, left)
            }
            Kind::For(walk) if !walk.grouped => Self::of_walk(walk, scope, left),
            Kind::Map(entries) => Self::of_map(entries, scope),
            Kind::Call(call) if !call.spread => Self::of_call(call, scope, left),
            _ => None,
        }
    }

    fn of_instances(block: &Block, scope: &SpecScope<'_>) -> Option<Self> {
        let keys = scope.keys(block).filter(|_| !block.is_data)?;
        let own = |key: &Name| (key.clone(), Set::from_iter([block.instance(Some(key.clone()))]));
        Some(Self(keys.map(own).collect()))
    }

    fn of_map(entries: &[(Expr, Expr)], scope: &SpecScope<'_>) -> Option<Self> {
        let mut origins = Self::default();
        for (key, value) in entries {
            let own = scope.apart();
            let key = evaluate::evaluate(key, &own).ok()?.value.as_str()?.into();
            evaluate::evaluate(value, &own).ok()?;
            origins.add(key, own.touched());
        }
        Some(origins)
    }

    /// Returns the origins of a call of a function that keeps the keys of its arguments; none for other
    /// functions.
    fn of_call(call: &Call, scope: &SpecScope<'_>, left: &mut usize) -> Option<Self> {
        if !matches!(&*call.name, "keys" | "toset" | "merge") {
            return None;
        }
        let mut origins = Self::default();
        for argument in &call.arguments {
            for (key, touched) in Self::below(argument, scope, left)?.0 {
                origins.add(key, touched);
            }
        }
        Some(origins)
    }

    /// Returns the origins of a `for` expression, which is evaluated for each item by itself.
    fn of_walk(walk: &For, scope: &SpecScope<'_>, left: &mut usize) -> Option<Self> {
        let own = scope.apart();
        let collection = evaluate::evaluate(&walk.collection, &own).ok()?;
        let before = if own.touched().is_empty() {
            None
        } else {
            Some(Self::below(&walk.collection, scope, left)?)
        };
        let one = Expr::nowhere(Kind::For(Box::new(For {
            collection: Expr::nowhere(Kind::Root(Root::Named(ITEM.into()))),
            ..walk.clone()
        })));
        let mut origins = Self::default();
        for (key, item) in items(&collection, walk)? {
            let own = ItemScope { around: scope.apart(), item };
            let made = evaluate::evaluate(&one, &own).ok()?;
            let mut touched = own.around.touched();
            if let Some(before) = &before {
                touched.extend(before.0.get(&key?)?.iter().cloned());
            }
            for key in keys(&made.value)? {
                origins.add(key.clone(), touched.clone());
            }
        }
        Some(origins)
    }

    fn add(&mut self, key: Name, touched: Set<Address>) {
        self.0.entry(key).or_default().extend(touched);
    }
}

/// Returns the keys that a map, or a list of strings, has as a `for_each`.
fn keys(value: &Value) -> Option<Vec<&Name>> {
    match value {
        Value::Map(entries) => Some(entries.keys().collect()),
        Value::List(items) | Value::Set(items) => items.iter().map(text).collect(),
        _ => None,
    }
}

fn text(item: &Value) -> Option<&Name> {
    match item {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns the items of a collection, each as a collection of its own, with the key that the item has in a
/// `for_each`.
fn items(collection: &Datum, walk: &For) -> Option<Vec<(Option<Name>, Datum)>> {
    let alone = |value, path, inside| {
        let mut sensitive = Paths::none();
        sensitive.extend_below(&path, &collection.sensitive.inside(&inside));
        Datum { value, sensitive }
    };
    let entry = |(key, item): (&Name, &Value)| {
        let value = Value::map(Attributes::from_iter([(key.clone(), item.clone())]));
        let path = Path::attribute(key.clone());
        (Some(key.clone()), alone(value, path, Segment::Key(key.clone())))
    };
    let item = |(at, item): (usize, &Value)| {
        let value = Value::list(vec![item.clone()]);
        (text(item).cloned(), alone(value, Path::root().join(0), Segment::Index(at)))
    };
    let member = |item: &Value| {
        let value = Value::Set(vec![item.clone()].into());
        (text(item).cloned(), Datum { value, sensitive: collection.sensitive.clone() })
    };
    match &collection.value {
        Value::Map(entries) => Some(entries.iter().map(entry).collect()),
        // In a list of its own, an item would have another index.
        Value::List(items) if walk.key_variable.is_none() => {
            Some(items.iter().enumerate().map(item).collect())
        }
        Value::Set(items) => Some(items.iter().map(member).collect()),
        _ => None,
    }
}

/// The scope of a walk over one item: the item, and everything that the whole walk sees.
struct ItemScope<'a> {
    around: SpecScope<'a>,
    item: Datum,
}

/// The name of the variable that holds the item. No variable of a walk can have this name.
const ITEM: &str = "";

impl Scope for ItemScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Named(name) if &**name == ITEM => Ok(self.item.clone()),
            _ => self.around.root(root),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.around.resource(block, key)
    }

    fn touch_all(&self, block: &Block) {
        self.around.touch_all(block);
    }

    fn is_keyed(&self, block: &Block) -> bool {
        self.around.is_keyed(block)
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.around.source(root)
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        self.around.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.around.file(path)
    }
}
