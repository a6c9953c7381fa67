//! `[[moved]]` blocks: rules for objects that have other addresses in the spec than in the state.

use std::collections::{BTreeMap, BTreeSet};

use super::checker::Checker;
use super::modules::expand::Refactorings;
use super::names::Names;
use super::{Document, MoveConfig, RawBlock, RemovalConfig, diagnostics as say, written};
use crate::address::{Address, AddressPattern, Block, ModulePath, MoveRule};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::value::Value;

/// Reads the moves and checks them against the spec. The planner checks them against the state.
pub(super) fn moves(
    document: &Document,
    names: &Names<'_>,
    (refactorings, removals): (&Refactorings, &[RemovalConfig]),
    diagnostics: &mut Diagnostics,
) -> Vec<MoveConfig> {
    let mut checker = Checker::new(document, names, diagnostics);
    let read = |(path, raw): &(ModulePath, RawBlock)| one(&mut checker, path, raw);
    let moves: Vec<MoveConfig> = refactorings.moved.iter().filter_map(read).collect();
    check_repeated(&moves, names, diagnostics);
    check_cycles(&moves, diagnostics);
    let check = Check { document, names, moves: &moves, removals };
    for config in &moves {
        check.origin(config, diagnostics);
        check.destination(config, diagnostics);
    }
    moves
}

fn one(checker: &mut Checker<'_>, path: &ModulePath, raw: &RawBlock) -> Option<MoveConfig> {
    let from = pattern(checker, "this move", raw, "from", path);
    let to = pattern(checker, "this move", raw, "to", path);
    let ((from, from_span), (to, to_span)) = (from?, to?);
    match MoveRule::new(from, to) {
        Ok(rule) => Some(MoveConfig { rule, from: from_span, to: to_span }),
        Err(why) => {
            checker.push(say::no_move(why, to_span, from_span));
            None
        }
    }
}

/// Writes a rule as a block of a spec.
pub fn moved_block(rule: &MoveRule) -> String {
    let text = |pattern: &AddressPattern| {
        written::scalar(&Value::string(pattern.to_string())).unwrap_or_default()
    };
    format!("[[moved]]\nfrom = {}\nto = {}\n", text(rule.from()), text(rule.to()))
}

/// Reads the pattern of a key, relative to the module instance that contains the block.
pub(super) fn pattern(
    checker: &mut Checker<'_>,
    what: &str,
    raw: &RawBlock,
    key: &str,
    path: &ModulePath,
) -> Option<(AddressPattern, Span)> {
    let Some(item) = raw.items.get(key) else {
        checker.push(say::missing_key(what, key, raw.header));
        return None;
    };
    let text = checker.constant_text(&format!("`{key}`"), &item.value)?;
    match text.parse::<AddressPattern>() {
        Ok(pattern) => Some((pattern.within(path), item.value.span)),
        Err(error) => {
            checker.push(say::bad_address(&error, item.value.span));
            None
        }
    }
}

/// Refuses two moves from one address, and two moves to one instance. Two blocks with keys may become one.
fn check_repeated(moves: &[MoveConfig], names: &Names<'_>, diagnostics: &mut Diagnostics) {
    let (mut origins, mut destinations) = (BTreeMap::new(), BTreeMap::new());
    for config in moves {
        if let Some(first) = origins.insert(config.rule.from(), config.from) {
            diagnostics.push(say::moved_twice(config.rule.from(), config.from, first));
        }
        let to = config.rule.to();
        let keyed = to.block().and_then(|block| names.resources.get(&block)).map(|it| it.keyed);
        if to.instance().is_none() || (config.rule.keeps_keys() && keyed != Some(false)) {
            continue;
        }
        if let Some(first) = destinations.insert(to, config.to) {
            diagnostics.push(say::moved_into_one(to, config.to, first));
        }
    }
}

/// Refuses moves that lead back to where they began.
fn check_cycles(moves: &[MoveConfig], diagnostics: &mut Diagnostics) {
    let by_origin: BTreeMap<&AddressPattern, &MoveConfig> =
        moves.iter().map(|config| (config.rule.from(), config)).collect();
    let mut told: BTreeSet<&AddressPattern> = BTreeSet::new();
    for config in moves {
        let mut path = vec![config.rule.from()];
        let mut next = Some(config);
        while let Some(config) = next {
            let to = config.rule.to();
            if told.contains(to) {
                break;
            }
            if path.contains(&to) {
                told.extend(path.iter().copied());
                if path[0] == to {
                    diagnostics.push(say::moves_in_a_circle(&path, config.to));
                }
                break;
            }
            path.push(to);
            next = by_origin.get(to).copied();
        }
        told.insert(config.rule.from());
    }
}

/// The inputs for the checks of one move.
struct Check<'c, 'n> {
    document: &'c Document,
    names: &'c Names<'n>,
    moves: &'c [MoveConfig],
    removals: &'c [RemovalConfig],
}

impl Check<'_, '_> {
    /// Refuses a move from an address that the spec still has.
    fn origin(&self, config: &MoveConfig, diagnostics: &mut Diagnostics) {
        let is_left = |block: &Block| {
            let known = self.names.resources.get(block)?;
            // The key may be any, because the keys of the spec are not known yet.
            let instance = block.instance(known.keyed.then(|| "*".into()));
            config.rule.target(&instance)
        };
        let found = match config.rule.from().block() {
            Some(block) => is_left(&block).map(|_| block),
            None => self.document.resources.keys().find(|block| is_left(block).is_some()).cloned(),
        };
        if let Some(block) = found {
            let header = self.document.resources.get(&block).map(|raw| raw.header);
            diagnostics.push(say::moved_and_declared(&block, config.from, header));
        }
    }

    /// Refuses a move to an address that the spec does not have, unless another block moves or removes it
    /// from there.
    fn destination(&self, config: &MoveConfig, diagnostics: &mut Diagnostics) {
        let to = config.rule.to();
        let Some(module) = to.module() else { return };
        let Some(mistake) = self.mistake(config, &module) else { return };
        let is_unknown = self.names.modules.unknown.iter().any(|it| module.is_within(it));
        if !is_unknown && !self.goes_on(to) {
            diagnostics.push(mistake);
        }
    }

    /// Returns the mistake in the address that a move leads to; none if the spec has the address.
    fn mistake(&self, config: &MoveConfig, module: &ModulePath) -> Option<Diagnostic> {
        let to = config.rule.to();
        let Some(block) = to.block() else {
            let is_inside = |block: &Block| block.module.is_within(module);
            let is_empty = || !self.document.resources.keys().any(is_inside);
            return (to.is_module() && is_empty())
                .then(|| say::move_to_no_module(module, config.to));
        };
        let Some(known) = self.names.resources.get(&block) else {
            let help = self.names.resource_help(&block, None);
            return Some(say::move_to_nothing(&block, help, config.to));
        };
        let is_other_kind = !config.rule.keeps_keys() && to.has_key() != known.keyed;
        is_other_kind.then(|| say::move_key(&block, known.keyed, config.to))
    }

    /// Returns true if another move, or a removal, begins at the end of a move.
    fn goes_on(&self, to: &AddressPattern) -> bool {
        let instance: Option<Address> = to.instance();
        let moves_on = |config: &MoveConfig| {
            let rule = &config.rule;
            rule.from() == to || instance.as_ref().is_some_and(|it| rule.target(it).is_some())
        };
        let is_removed = |removal: &RemovalConfig| {
            removal.from == *to || instance.as_ref().is_some_and(|it| removal.from.covers(it))
        };
        self.moves.iter().any(moves_on) || self.removals.iter().any(is_removed)
    }
}

#[cfg(test)]
mod tests;
