//! The dependency graph of a config: the order of its resource blocks.
//!
//! The nodes are blocks, not instances, because the keys of a `for_each` may be known only while planning.
//! Locals are nodes, too, so that a local used by many blocks costs one edge for each use; the public
//! functions do not show them. Data blocks are part of the order, but they are no dependencies: a block that
//! refers to a data block depends on the resources that the data block refers to.

pub(crate) mod links;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use petgraph::Direction;
use rustc_hash::FxHashMap;

use crate::address::{Address, Block, Name, local_shown};
use crate::config::diagnostics as say;
use crate::config::{Config, DataConfig, ResourceConfig, SpecExpr};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::Root;
use crate::expression::visit::roots;
use crate::work::{self, InTurn, Workers};
use links::Links;

/// The number of blocks that one worker looks at before it asks for more.
const PART: usize = 512;

/// A block of a config.
#[derive(Clone, Copy, Debug)]
pub enum Declared<'c> {
    /// A resource.
    Resource(&'c ResourceConfig),
    /// A look-up.
    Data(&'c DataConfig),
}

/// The blocks of a config, with their dependencies.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The blocks by address, the resources first; a block's index is its node.
    blocks: Vec<Block>,
    /// The locals, whose nodes come behind those of the blocks.
    locals: Vec<Name>,
    links: Links<Span>,
    nodes: FxHashMap<Block, usize>,
    /// The nodes of all blocks, each after those that it depends on.
    order: Vec<usize>,
    /// The number of blocks in each wave, in that order. The blocks of one wave do not depend on one another.
    waves: Vec<usize>,
}

impl Graph {
    /// Returns the graph of a config. Each group of blocks that need each other is one diagnostic.
    pub fn new(config: &Config) -> (Self, Diagnostics) {
        Self::new_with(config, &InTurn)
    }

    /// Returns the graph of a config; the workers look at the blocks.
    pub fn new_with(config: &Config, workers: &dyn Workers) -> (Self, Diagnostics) {
        let blocks: Vec<Block> =
            config.resources.keys().chain(config.data.keys()).cloned().collect();
        let locals: Vec<Name> = config.locals.keys().cloned().collect();
        let nodes = blocks.iter().cloned().enumerate().map(|(node, block)| (block, node)).collect();
        let links = Links::new(blocks.len() + locals.len());
        let mut graph = Self { blocks, locals, links, nodes, order: Vec::new(), waves: Vec::new() };
        graph.connect(config, workers);
        graph.sort();
        // All nodes that are neither in a cycle nor behind one are sorted, so comparing the counts finds a
        // cycle.
        let diagnostics = if graph.order.len() < graph.blocks.len() {
            graph.add_the_rest();
            graph.cycles()
        } else {
            Diagnostics::new()
        };
        (graph, diagnostics)
    }

    /// Returns all blocks, each after those that it depends on, and by address if that leaves a choice.
    /// Members of a cycle, and blocks that depend on them, come last.
    pub fn order(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.order.iter().map(|node| &self.blocks[*node])
    }

    /// Returns the blocks of a config in [`Self::order`].
    pub fn walk<'c>(
        &self,
        config: &'c Config,
    ) -> impl ExactSizeIterator<Item = Option<Declared<'c>>> {
        let by_node: Vec<&ResourceConfig> = config.resources.values().collect();
        self.order.iter().map(move |node| {
            let block = &self.blocks[*node];
            if block.is_data {
                return config.data.get(block).map(Declared::Data);
            }
            // The config from which the graph was made has its blocks in the same places.
            let same = by_node.get(*node).copied().filter(|resource| resource.block == *block);
            same.or_else(|| config.resources.get(block)).map(Declared::Resource)
        })
    }

    /// Returns the blocks in waves: those of one wave do not depend on one another.
    pub fn waves<'c>(&self, config: &'c Config) -> impl Iterator<Item = Vec<Declared<'c>>> {
        let mut all = self.walk(config);
        self.waves.iter().map(move |count| all.by_ref().take(*count).flatten().collect())
    }

    /// Returns the resource blocks that a block refers to or names in `depends_on`, by address.
    pub fn dependencies(&self, block: &Block) -> Vec<&Block> {
        self.around(block, Direction::Outgoing)
    }

    /// Returns the resource blocks that refer to a block or name it in `depends_on`, by address.
    pub fn dependents(&self, block: &Block) -> Vec<&Block> {
        self.around(block, Direction::Incoming)
    }

    fn around(&self, block: &Block, direction: Direction) -> Vec<&Block> {
        let Some(start) = self.nodes.get(block) else { return Vec::new() };
        let mut found = BTreeSet::new();
        let mut passed = BTreeSet::new();
        let mut stack = vec![*start];
        while let Some(node) = stack.pop() {
            for next in self.links.neighbours(node, direction) {
                if self.blocks.get(next).is_some_and(|block| !block.is_data) {
                    found.insert(next);
                } else if passed.insert(next) {
                    stack.push(next);
                }
            }
        }
        found.into_iter().map(|node| &self.blocks[node]).collect()
    }

    fn connect(&mut self, config: &Config, workers: &dyn Workers) {
        let first_local = self.blocks.len();
        let locals: FxHashMap<Name, usize> =
            self.locals.iter().cloned().zip(first_local..).collect();
        let needs = Needs { blocks: &self.nodes, locals: &locals };
        let resources: Vec<&ResourceConfig> = config.resources.values().collect();
        let parts: Vec<_> = resources.chunks(PART).collect();
        let found = work::map(workers, parts.len(), |part| {
            let mut found = Vec::new();
            for (node, resource) in (part * PART..).zip(parts[part]) {
                needs.of_resource(resource, &mut |to, at| found.push((node, to, at)));
            }
            found
        });
        for (from, to, at) in found.into_iter().flatten() {
            self.links.add(from, to, at);
        }
        for (node, data) in (config.resources.len()..).zip(config.data.values()) {
            needs.of_data(data, &mut |to, at| self.links.add(node, to, at));
        }
        for (node, local) in (first_local..).zip(config.locals.values()) {
            needs.of_value(&local.value, &mut |to, at| self.links.add(node, to, at));
        }
    }

    /// Sorts the blocks, without those in a cycle or behind one.
    fn sort(&mut self) {
        let blocks = self.blocks.len();
        let mut missing = self.links.needs();
        // The number of sorted blocks at the time when the last dependency of a node is sorted.
        let mut needed = vec![0; missing.len()];
        let mut ready = Ready { blocks, ..Ready::default() };
        (0..missing.len()).filter(|node| missing[*node] == 0).for_each(|node| ready.push(node));
        self.order.reserve(blocks);
        while let Some(node) = ready.pop() {
            if node < blocks {
                self.append(node, needed[node]);
            }
            let done = if node < blocks { self.order.len() } else { needed[node] };
            for dependent in self.links.neighbours(node, Direction::Incoming) {
                needed[dependent] = needed[dependent].max(done);
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    ready.push(dependent);
                }
            }
        }
    }

    /// Appends a block to the order: to the last wave, or to a new one if the block depends on a member of
    /// the last.
    fn append(&mut self, node: usize, needed: usize) {
        let begin = self.order.len() - self.waves.last().copied().unwrap_or_default();
        match self.waves.last_mut() {
            Some(wave) if needed <= begin => *wave += 1,
            _ => self.waves.push(1),
        }
        self.order.push(node);
    }

    fn add_the_rest(&mut self) {
        let sorted: BTreeSet<usize> = self.order.iter().copied().collect();
        for node in (0..self.blocks.len()).filter(|node| !sorted.contains(node)) {
            self.order.push(node);
            self.waves.push(1);
        }
    }

    fn cycles(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for group in self.links.groups() {
            // A cycle of locals alone was reported when they were typed.
            let holds_block = group.first().is_some_and(|first| *first < self.blocks.len());
            if holds_block && self.links.is_cycle(&group) {
                let cycle = self.links.cycle(&group);
                let members: Vec<(String, Span)> =
                    cycle.into_iter().map(|(node, at)| (self.name(node), *at)).collect();
                diagnostics.push(say::cycle(&members, group.len()));
            }
        }
        diagnostics.sort();
        diagnostics
    }

    fn name(&self, node: usize) -> String {
        match self.blocks.get(node) {
            Some(block) => block.to_string(),
            None => local_shown(&self.locals[node - self.blocks.len()]).into_owned(),
        }
    }
}

/// A search for the nodes that a block needs.
struct Needs<'a> {
    blocks: &'a FxHashMap<Block, usize>,
    locals: &'a FxHashMap<Name, usize>,
}

impl Needs<'_> {
    /// Finds the nodes that a resource needs, with the places of the references.
    fn of_resource(&self, resource: &ResourceConfig, found: &mut dyn FnMut(usize, Span)) {
        for value in expressions(resource) {
            self.of_value(value, found);
        }
        self.of_addresses(&resource.depends_on, found);
    }

    /// Finds the nodes that a data block needs, with the places of the references.
    fn of_data(&self, data: &DataConfig, found: &mut dyn FnMut(usize, Span)) {
        for value in data.expressions() {
            self.of_value(value, found);
        }
        self.of_addresses(&data.depends_on, found);
    }

    fn of_addresses(&self, depends_on: &[(Address, Span)], found: &mut dyn FnMut(usize, Span)) {
        for (address, at) in depends_on {
            if let Some(to) = self.blocks.get(&address.block) {
                found(*to, *at);
            }
        }
    }

    /// Finds the nodes that an expression needs, with the places of the references.
    fn of_value(&self, value: &SpecExpr, found: &mut dyn FnMut(usize, Span)) {
        roots(&value.expr, &mut |root, range| {
            let to = match root {
                Root::Resource(block) => self.blocks.get(block),
                Root::Local(name) => self.locals.get(name),
                _ => None,
            };
            if let Some(to) = to {
                found(*to, value.span_of(range));
            }
        });
    }
}

/// The nodes whose dependencies are all sorted.
#[derive(Default)]
struct Ready {
    /// The number of nodes that are blocks; the nodes from this number on are locals.
    blocks: usize,
    open: BinaryHeap<Reverse<usize>>,
    locals: Vec<usize>,
}

impl Ready {
    fn push(&mut self, node: usize) {
        if node < self.blocks { self.open.push(Reverse(node)) } else { self.locals.push(node) }
    }

    /// Takes the next node. Locals go first, so that they do not change the order of the blocks.
    fn pop(&mut self) -> Option<usize> {
        self.locals.pop().or_else(|| Some(self.open.pop()?.0))
    }
}

/// Returns every expression of a resource that may refer to other blocks.
pub(crate) fn expressions(resource: &ResourceConfig) -> impl Iterator<Item = &SpecExpr> {
    let lifecycle = &resource.lifecycle;
    let flags = [
        &lifecycle.enabled,
        &lifecycle.prevent_destroy,
        &lifecycle.allow_data_loss,
        &lifecycle.retain,
        &lifecycle.create_before_destroy,
    ];
    resource
        .attributes
        .values()
        .map(|item| &item.value)
        .chain(&resource.for_each)
        .chain(flags.into_iter().flatten())
        .chain(&lifecycle.replace_triggered_by)
        .chain(lifecycle.conditions().flat_map(|it| [&it.condition, &it.message]))
}

#[cfg(test)]
mod tests;
