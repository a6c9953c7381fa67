//! The smallest set of move rules for pairs of addresses.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, AddressPattern, Block, ModulePath, MoveRule, Name};
use crate::config::Config;
use crate::state::Snapshot;

/// The addresses that objects have, each with the one that its object gets.
type Pairs<'a> = BTreeMap<&'a Address, &'a Address>;

/// Returns rules that move each object to its new address and move no other object of the state, each rule
/// with one of its pairs of addresses. A pair for which no rule can be written is left out.
pub(in crate::plan) fn of<'a>(
    pairs: &Pairs<'a>,
    config: &Config,
    snapshot: &Snapshot,
) -> Vec<(MoveRule, &'a Address)> {
    let (mut rules, mut covered) = (Vec::new(), BTreeSet::new());
    // A rule for a module is tried once, however many objects the module has.
    let mut tried: BTreeSet<(AddressPattern, AddressPattern)> = BTreeSet::new();
    for (&from, &to) in pairs {
        if covered.contains(from) {
            continue;
        }
        let candidates = candidates(from, to).into_iter();
        let mut new = candidates.filter(|(from, to)| tried.insert((from.clone(), to.clone())));
        let found = new.find_map(|(from, to)| {
            let rule = MoveRule::new(from, to).ok()?;
            let moved = moved(&rule, pairs, config, snapshot)?;
            Some((rule, moved))
        });
        if let Some((rule, moved)) = found {
            covered.extend(moved);
            rules.push((rule, to));
        }
    }
    rules
}

/// Returns the patterns that may move an object; the ones that move the most objects come first.
fn candidates(from: &Address, to: &Address) -> Vec<(AddressPattern, AddressPattern)> {
    let mut texts = Vec::new();
    if (&from.block.ty, &from.block.name, &from.key) == (&to.block.ty, &to.block.name, &to.key) {
        texts.extend(modules(from, to));
    }
    if from.key == to.key {
        texts.push((from.block.to_string(), to.block.to_string()));
    }
    texts.push((from.to_string(), to.to_string()));
    let parsed = |(from, to): (String, String)| Some((from.parse().ok()?, to.parse().ok()?));
    let mut patterns: Vec<(AddressPattern, AddressPattern)> =
        texts.into_iter().filter_map(parsed).collect();
    // The key may move from the block to a module, or back.
    if let (Some(key), None) | (None, Some(key)) = (&from.key, &to.key)
        && let Some((from_one, to_one)) = patterns.pop()
    {
        patterns.push((from_one.with_any_key(key), to_one.with_any_key(key)));
        patterns.push((from_one, to_one));
    }
    patterns
}

/// Returns the outermost modules in which two addresses differ: the modules with all their instances, and one
/// instance alone.
fn modules(from: &Address, to: &Address) -> Vec<(String, String)> {
    let (from, to) = (from.block.module.steps(), to.block.module.steps());
    let inner = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
    let (from, to) = (&from[..from.len() - inner], &to[..to.len() - inner]);
    let (Some((last, outer)), Some((last_to, outer_to))) = (from.split_last(), to.split_last())
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if last.1 == last_to.1 {
        found.push((path(outer).join(&last.0, None), path(outer_to).join(&last_to.0, None)));
    }
    found.push((path(from), path(to)));
    found.into_iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
}

fn path(steps: &[(Name, Option<Name>)]) -> ModulePath {
    steps.iter().fold(ModulePath::root(), |path, (name, key)| path.join(name, key.as_deref()))
}

/// Returns the objects that a rule moves; none if it also moves an object that it should not, or one that the
/// spec still has.
fn moved<'a>(
    rule: &MoveRule,
    pairs: &Pairs<'a>,
    config: &Config,
    snapshot: &Snapshot,
) -> Option<Vec<&'a Address>> {
    let is_wanted = |block: &Block| {
        let resource = &config.resources[block];
        let instance = block.instance(resource.for_each.as_ref().map(|_| "*".into()));
        rule.target(&instance).is_some()
    };
    let entries: Box<dyn Iterator<Item = &Address>> = match rule.from().block() {
        Some(block) if config.resources.contains_key(&block) && is_wanted(&block) => return None,
        Some(block) => {
            let first = block.instance(None);
            let of_block = snapshot.entries.range(first..).map(|(address, _)| address);
            Box::new(of_block.take_while(move |address| address.block == block))
        }
        None if config.resources.keys().any(is_wanted) => return None,
        None => Box::new(snapshot.entries.keys()),
    };
    let mut moved = Vec::new();
    for (address, target) in entries.filter_map(|it| Some((it, rule.target(it)?))) {
        let (from, to) = pairs.get_key_value(address)?;
        if **to != target {
            return None;
        }
        moved.push(*from);
    }
    Some(moved)
}
