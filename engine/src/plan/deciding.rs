//! What decided that there is something to do at an address: what the `for_each` of its block, and the flags
//! of its `lifecycle`, looked at.
//!
//! None of that need be a dependency, because nothing is made from it. But had it been otherwise, there would be
//! nothing to do, or something else; so a saved plan is held against it as it is against what it is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Address, Block};
use crate::sorted::Set;

/// What decided, by address, and what is shown of others.
#[derive(Default)]
pub(super) struct Deciding<'a> {
    blocks: FxHashMap<&'a Block, Arc<Set<Address>>>,
    instances: BTreeMap<Address, Own>,
    /// The set that was noted last: all instances of a block may have looked at the same ten thousand.
    last: Arc<Set<Address>>,
    shown: BTreeSet<Address>,
}

/// What decided of one instance in particular.
#[derive(Default)]
struct Own {
    /// What its key is made of; none where all of its block's `for_each` counts.
    key: Option<Arc<Set<Address>>>,
    flags: Vec<Arc<Set<Address>>>,
}

impl<'a> Deciding<'a> {
    /// Findings what the `for_each` of a block looked at.
    pub(super) fn of_block(&mut self, block: &'a Block, looked_at: Arc<Set<Address>>) {
        if !looked_at.is_empty() {
            self.blocks.insert(block, looked_at);
        }
    }

    /// Findings what the key of an instance is made of.
    pub(super) fn of_key(&mut self, address: &Address, made_of: Arc<Set<Address>>) {
        if self.blocks.contains_key(&address.block) {
            self.instances.entry(address.clone()).or_default().key = Some(made_of);
        }
    }

    /// Findings what the flags of an instance looked at.
    pub(super) fn of_flags(&mut self, address: &Address, looked_at: Set<Address>) {
        if looked_at.is_empty() {
            return;
        }
        if *self.last != looked_at {
            self.last = Arc::new(looked_at);
        }
        self.instances.entry(address.clone()).or_default().flags.push(self.last.clone());
    }

    /// Findings what an output looked at that will be another one.
    pub(super) fn of_output(&mut self, looked_at: Set<Address>) {
        self.shown.extend(looked_at);
    }

    /// What decided that an address is as it is planned: sets, of which others may have the same.
    pub(super) fn of<'d>(
        &'d self,
        address: &Address,
    ) -> impl Iterator<Item = &'d Arc<Set<Address>>> {
        let own = self.instances.get(address);
        let of_block = self.blocks.get(&address.block);
        let key = own.and_then(|own| own.key.as_ref()).or(of_block);
        key.into_iter().chain(own.into_iter().flat_map(|own| &own.flags))
    }

    /// What outputs are made of that will be others.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Address> {
        self.shown.iter()
    }
}

/// Addresses that are followed from one to the next, each once.
#[derive(Default)]
pub(super) struct Reached<'d> {
    pub(super) all: FxHashSet<&'d Address>,
    open: Vec<&'d Address>,
    sets: FxHashSet<*const Set<Address>>,
}

impl<'d> Reached<'d> {
    /// Adds addresses.
    pub(super) fn add(&mut self, addresses: impl IntoIterator<Item = &'d Address>) {
        for address in addresses {
            if self.all.insert(address) {
                self.open.push(address);
            }
        }
    }

    /// Adds those of sets, each set once.
    pub(super) fn add_sets(&mut self, sets: impl Iterator<Item = &'d Arc<Set<Address>>>) {
        for set in sets {
            if self.sets.insert(Arc::as_ptr(set)) {
                self.add(set.iter());
            }
        }
    }

    /// One that was not followed yet.
    pub(super) fn next(&mut self) -> Option<&'d Address> {
        self.open.pop()
    }
}
