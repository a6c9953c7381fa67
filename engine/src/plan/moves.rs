//! Moves: the state with the addresses that the spec gives to its objects, before anything is decided.
//!
//! A move changes the address of an object in the state, and does not change the object. So every plan makes
//! all moves, whatever it covers, and everything after this pass knows only the new addresses.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, Block};
use crate::config::{Config, MoveConfig};
use crate::diagnostics::Diagnostics;
use crate::journal::Record;
use crate::plan::diagnostics::moves as diagnostics;
use crate::state::Snapshot;

/// The moves of objects that a state has under other addresses than the spec.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// The old address of each object that moves, by its new one.
    origins: BTreeMap<Address, Address>,
    /// The errors of moves that cannot be made.
    pub(in crate::plan) diagnostics: Diagnostics,
}

impl Moves {
    /// Computes the moves of a spec in a state. A move that was made before changes nothing.
    pub fn new(config: &Config, snapshot: &Snapshot) -> Self {
        let mut moves = Self::default();
        if config.moves.is_empty() {
            return moves;
        }
        let rules = Rules::new(&config.moves);
        let occupied = occupied(snapshot);
        for address in &occupied {
            match rules.destination(address) {
                Destination::Stays => {}
                Destination::Endless(config) => {
                    moves.diagnostics.push(diagnostics::endless_move(address, config));
                }
                Destination::At(to, config) => moves.add(address, to, config, &occupied),
            }
        }
        moves
    }

    fn add(
        &mut self,
        from: &Address,
        to: Address,
        config: &MoveConfig,
        occupied: &BTreeSet<&Address>,
    ) {
        if let Some(first) = self.origins.get(&to) {
            self.diagnostics.push(diagnostics::moves_meet(first, from, &to, config));
        } else if occupied.contains(&to) {
            self.diagnostics.push(diagnostics::move_is_taken(from, &to, config));
        } else {
            self.origins.insert(to, from.clone());
        }
    }

    /// Returns the address that an object had in the state; none if it does not move.
    pub fn origin(&self, address: &Address) -> Option<&Address> {
        self.origins.get(address)
    }

    /// Returns the old address of each object that moves, by its new one.
    pub fn origins(&self) -> &BTreeMap<Address, Address> {
        &self.origins
    }

    /// Returns the state with the new addresses.
    pub fn renamed<'s>(&self, snapshot: &'s Snapshot) -> Cow<'s, Snapshot> {
        if self.origins.is_empty() {
            return Cow::Borrowed(snapshot);
        }
        let mut renamed = snapshot.clone();
        renamed.rename_all(
            &self.origins.iter().map(|(to, from)| (from.clone(), to.clone())).collect(),
        );
        Cow::Owned(renamed)
    }

    /// Returns the records that make the moves.
    pub(in crate::plan) fn records(&self) -> impl Iterator<Item = Record> {
        let moved =
            |(to, from): (&Address, &Address)| Record::Moved { from: from.clone(), to: to.clone() };
        self.origins.iter().map(moved)
    }
}

/// Returns the addresses that have an object, or a call whose outcome is unknown.
fn occupied(snapshot: &Snapshot) -> BTreeSet<&Address> {
    let called = snapshot.pending.values().map(|pending| &pending.started.address);
    snapshot.entries.keys().chain(called).collect()
}

/// The move rules, by the block that they start from.
struct Rules<'c> {
    by_block: BTreeMap<Block, Vec<&'c MoveConfig>>,
    /// The rules of modules, and those with `*`.
    others: Vec<&'c MoveConfig>,
    count: usize,
}

enum Destination<'c> {
    Stays,
    At(Address, &'c MoveConfig),
    Endless(&'c MoveConfig),
}

impl<'c> Rules<'c> {
    fn new(moves: &'c [MoveConfig]) -> Self {
        let mut rules = Self { by_block: BTreeMap::new(), others: Vec::new(), count: moves.len() };
        for config in moves {
            match config.rule.from().block() {
                Some(block) => rules.by_block.entry(block).or_default().push(config),
                None => rules.others.push(config),
            }
        }
        // Of several rules that fit an address, the most exact one moves it.
        for alike in rules.by_block.values_mut().chain([&mut rules.others]) {
            alike.sort_by_key(|config| config.rule.from().generality());
        }
        rules
    }

    /// Returns the last address of a chain of moves.
    fn destination(&self, address: &Address) -> Destination<'c> {
        let (mut at, mut last) = (None, None);
        for _ in 0..=self.count {
            let now = at.as_ref().unwrap_or(address);
            match self.next(now) {
                Some((next, config)) => (at, last) = (Some(next), Some(config)),
                None => break,
            }
        }
        match (at, last) {
            (Some(at), Some(config)) if self.next(&at).is_some() => Destination::Endless(config),
            (Some(at), Some(_)) if at == *address => Destination::Stays,
            (Some(at), Some(config)) => Destination::At(at, config),
            _ => Destination::Stays,
        }
    }

    fn next(&self, address: &Address) -> Option<(Address, &'c MoveConfig)> {
        let of_block = self.by_block.get(&address.block).into_iter().flatten();
        of_block
            .chain(&self.others)
            .find_map(|&config| Some((config.rule.target(address)?, config)))
    }
}
