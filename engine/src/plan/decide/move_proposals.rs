//! Proposals of moves: a resource is gone from the spec, another one came, and both mean the same object.
//!
//! Both have the same type and provider, and the spec gives them the same attributes, or the same unique
//! name. If more than one object fits, the one with the same key or the same name is proposed; if that leaves
//! more than one, nothing is proposed.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, Name};
use crate::digest::SealKey;
use crate::expression::{Expr, Kind, Root};
use crate::plan::context::Context;
use crate::plan::decide::diff;
use crate::plan::decide::move_rules;
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::input::Mode;
use crate::plan::{Action, ProposedMove};
use crate::value::{Attributes, Value};

/// The most pairs of objects that are compared.
const COMPARISONS_MAX: usize = 1_000_000;

/// The longest chain of references through which objects are recognised.
const ROUNDS_MAX: usize = 16;

/// Returns the moves of resources that probably got another address.
pub(in crate::plan) fn propose(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    drafts: &[Draft],
) -> Vec<ProposedMove> {
    let input = context.input;
    if input.options.mode != Mode::Apply || input.options.validating {
        return Vec::new();
    }
    let is_gone = |draft: &&Draft| {
        let change = &draft.change;
        change.action == Action::Delete
            && !change.deposed
            && !evaluation.planned.has(&change.address)
            && !input.config.removals.iter().any(|it| it.from.covers(&change.address))
    };
    let is_new = |draft: &&Draft| {
        let change = &draft.change;
        change.action == Action::Create && !input.snapshot.entries.contains_key(&change.address)
    };
    let gone: Vec<&Draft> = drafts.iter().filter(is_gone).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let new: Vec<&Draft> = drafts.iter().filter(is_new).collect();
    let pairs = Search::new(&gone, &new, &input.snapshot.seal_key).pairs();
    let addresses = pairs.iter().map(|(new, gone)| (&gone.change.address, &new.change.address));
    move_rules::of(&addresses.collect(), input.config, input.snapshot)
        .into_iter()
        .map(|(rule, to)| {
            let span = input.config.resources.get(&to.block).map(|resource| resource.header);
            ProposedMove { rule, span }
        })
        .collect()
}

/// The objects of a type that the spec no longer has, by name; none for an unknown name.
type ByName<'a> = BTreeMap<Option<&'a str>, Vec<&'a Draft>>;

/// A search for pairs of an object that the spec no longer has and one that it has got.
struct Search<'a> {
    gone: BTreeMap<(&'a Name, &'a Name), ByName<'a>>,
    new: &'a [&'a Draft],
    key: &'a SealKey,
    comparisons: usize,
    /// The earlier address of each new object, as far as it is found.
    origins: BTreeMap<&'a Address, (&'a Draft, &'a Draft)>,
}

impl<'a> Search<'a> {
    fn new(gone: &[&'a Draft], new: &'a [&'a Draft], key: &'a SealKey) -> Self {
        let mut by_type: BTreeMap<_, ByName<'a>> = BTreeMap::new();
        for &draft in gone {
            let name = name(draft, draft.change.before.as_deref());
            by_type.entry(kind(draft)).or_default().entry(name).or_default().push(draft);
        }
        Self { gone: by_type, new, key, comparisons: 0, origins: BTreeMap::new() }
    }

    /// Returns the pairs of a new object and its earlier address.
    fn pairs(mut self) -> Vec<(&'a Draft, &'a Draft)> {
        let mut taken: BTreeSet<&Address> = BTreeSet::new();
        for _ in 0..ROUNDS_MAX {
            let found = self.round(&taken);
            if found.is_empty() {
                break;
            }
            for (new, gone) in found {
                taken.insert(&gone.change.address);
                self.origins.insert(&new.change.address, (new, gone));
            }
        }
        self.origins.into_values().collect()
    }

    /// Returns the pairs that follow from the pairs that are known.
    fn round(&mut self, taken: &BTreeSet<&Address>) -> Vec<(&'a Draft, &'a Draft)> {
        let (mut origins, mut successors) = (Best::default(), Best::default());
        let mut edges = Vec::new();
        for &new in self.new {
            if self.origins.contains_key(&new.change.address) {
                continue;
            }
            for gone in self.candidates(new) {
                if taken.contains(&gone.change.address) || !self.is_same(new, gone) {
                    continue;
                }
                let rank = likeness(&new.change.address, &gone.change.address);
                origins.add(&new.change.address, rank);
                successors.add(&gone.change.address, rank);
                edges.push((new, gone, rank));
            }
        }
        let is_clear = |(new, gone, rank): &(&Draft, &Draft, u8)| {
            origins.is_only(&new.change.address, *rank)
                && successors.is_only(&gone.change.address, *rank)
        };
        edges.into_iter().filter(is_clear).map(|(new, gone, _)| (new, gone)).collect()
    }

    /// Returns the objects that may be the new one: those of its type with its name, if both names are known.
    fn candidates(&mut self, new: &Draft) -> Vec<&'a Draft> {
        let Some(by_name) = self.gone.get(&kind(new)) else { return Vec::new() };
        let found: Vec<&Draft> = match name(new, new.change.after.as_deref()) {
            Some(name) => {
                let of = |name| by_name.get(&name).into_iter().flatten();
                of(Some(name)).chain(of(None)).copied().collect()
            }
            None => by_name.values().flatten().copied().collect(),
        };
        self.comparisons += found.len();
        if self.comparisons > COMPARISONS_MAX { Vec::new() } else { found }
    }

    fn is_same(&self, new: &Draft, gone: &Draft) -> bool {
        let (Some(after), Some(before)) = (&new.change.after, &gone.change.before) else {
            return false;
        };
        let agree = |name: &Name| {
            let (wanted, live) = (after.get(name), before.get(name));
            self.agree(wanted.unwrap_or(&Value::Null), live.unwrap_or(&Value::Null))
        };
        let unique = new.schema.name_attribute.as_ref().filter(|_| new.schema.unique_name);
        unique.is_some_and(|name| after.contains_key(name) && agree(name))
            || (new.change.managed == gone.change.managed && new.change.managed.iter().all(agree))
    }

    /// Returns true if a wanted value is the live one. The value of an attribute of a new object counts as
    /// the value of its earlier object, if that is found already.
    fn agree(&self, wanted: &Value, live: &Value) -> bool {
        match (wanted, live) {
            (Value::Unknown(unknown), live) => {
                let Some((address, name)) = slot(&unknown.residual) else { return false };
                let Some((_, gone)) = self.origins.get(&address) else { return false };
                let known = gone.change.before.as_ref().and_then(|before| before.get(name));
                known.is_some_and(|known| diff::agree(known, live, self.key))
            }
            (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| self.agree(a, b))
            }
            (Value::Map(a), Value::Map(b)) if !wanted.is_known() => {
                a.len() == b.len()
                    && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| self.agree(a, b)))
            }
            (wanted, live) => diff::agree(wanted, live, self.key),
        }
    }
}

/// The highest rank of the candidates for each address, and the number of candidates with that rank.
#[derive(Default)]
struct Best<'a>(BTreeMap<&'a Address, (u8, usize)>);

impl<'a> Best<'a> {
    fn add(&mut self, address: &'a Address, rank: u8) {
        let best = self.0.entry(address).or_insert((rank, 0));
        match rank.cmp(&best.0) {
            std::cmp::Ordering::Greater => *best = (rank, 1),
            std::cmp::Ordering::Equal => best.1 += 1,
            std::cmp::Ordering::Less => {}
        }
    }

    fn is_only(&self, address: &Address, rank: u8) -> bool {
        self.0.get(address) == Some(&(rank, 1))
    }
}

/// Returns the number of parts that two addresses have in common; the key counts most.
fn likeness(a: &Address, b: &Address) -> u8 {
    let is_like = |same: bool, weight: u8| if same { weight } else { 0 };
    is_like(a.key == b.key, 4)
        + is_like(a.block.name == b.block.name, 2)
        + is_like(a.block.module == b.block.module, 1)
}

fn kind(draft: &Draft) -> (&Name, &Name) {
    (&draft.change.provider, &draft.change.address.block.ty)
}

/// Returns the name of an object; none if its type has no name, or it is not known.
fn name<'a>(draft: &Draft, attributes: Option<&'a Attributes>) -> Option<&'a str> {
    attributes?.get(draft.schema.name_attribute.as_ref()?)?.as_str()
}

/// Returns the attribute of an instance that an expression consists of; none for other expressions.
fn slot(residual: &Expr) -> Option<(Address, &Name)> {
    let Kind::Attribute(base, name) = &residual.kind else { return None };
    let address = match &base.kind {
        Kind::Root(Root::Resource(block)) => block.instance(None),
        Kind::Index(base, key) => match (&base.kind, &key.kind) {
            (Kind::Root(Root::Resource(block)), Kind::Literal(Value::String(key))) => {
                block.instance(Some(key.clone()))
            }
            _ => return None,
        },
        _ => return None,
    };
    Some((address, name))
}
