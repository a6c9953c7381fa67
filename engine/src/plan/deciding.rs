//! What decided that there is something to do at an address: what the `for_each` of its block, and the flags
//! of its `lifecycle`, looked at.
//!
//! None of that need be a dependency, because nothing is made from it. But had it been otherwise, there would be
//! nothing to do, or something else; so a saved plan is held against it as it is against what it is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::address::{Address, Block};
use crate::sorted::Set;

/// What decided, by address, and what is shown of others.
#[derive(Default)]
pub(super) struct Deciding<'a> {
    blocks: FxHashMap<&'a Block, Arc<Set<Address>>>,
    instances: BTreeMap<Address, Own>,
    shown: BTreeSet<Address>,
}

/// What decided of one instance in particular.
#[derive(Default)]
struct Own {
    /// What its key is made of; none where all of its block's `for_each` counts.
    key: Option<Arc<Set<Address>>>,
    flags: Set<Address>,
}

impl<'a> Deciding<'a> {
    /// Notes what the `for_each` of a block looked at.
    pub(super) fn of_block(&mut self, block: &'a Block, looked_at: Arc<Set<Address>>) {
        if !looked_at.is_empty() {
            self.blocks.insert(block, looked_at);
        }
    }

    /// Notes what the key of an instance is made of.
    pub(super) fn of_key(&mut self, address: &Address, made_of: Arc<Set<Address>>) {
        if self.blocks.contains_key(&address.block) {
            self.instances.entry(address.clone()).or_default().key = Some(made_of);
        }
    }

    /// Notes what the flags of an instance looked at.
    pub(super) fn of_flags(&mut self, address: &Address, looked_at: Set<Address>) {
        if !looked_at.is_empty() {
            self.instances.entry(address.clone()).or_default().flags.extend(looked_at);
        }
    }

    /// Notes what an output looked at that will be another one.
    pub(super) fn of_output(&mut self, looked_at: Set<Address>) {
        self.shown.extend(looked_at);
    }

    /// What decided that an address is as it is planned.
    pub(super) fn of<'d>(&'d self, address: &Address) -> impl Iterator<Item = &'d Address> {
        let own = self.instances.get(address);
        let of_block = self.blocks.get(&address.block);
        let key = own.and_then(|own| own.key.as_ref()).or(of_block);
        let flags = own.map(|own| &own.flags);
        key.into_iter().flat_map(|key| key.iter()).chain(flags.into_iter().flatten())
    }

    /// What outputs are made of that will be others.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Address> {
        self.shown.iter()
    }
}
