//! The dependency graph of a config: which resource blocks come after which.
//!
//! Blocks, not instances: which keys a `for_each` gives may only show while planning. Locals are
//! nodes too, so that a local used by many costs one edge for each use; they never show outside.

pub(crate) mod links;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use petgraph::Direction;
use rustc_hash::FxHashMap;

use crate::address::{Block, Name};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::Root;
use crate::expression::visit::roots;
use crate::spec::diagnostics as say;
use crate::spec::{Config, ResourceConfig, SpecExpr};
use links::Links;

/// The resource blocks of a config and what they depend on.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// By address; a block's index is its node.
    blocks: Vec<Block>,
    /// The nodes behind those of the blocks.
    locals: Vec<Name>,
    links: Links<Span>,
    nodes: FxHashMap<Block, usize>,
    /// The nodes of all blocks, each after what it depends on.
    order: Vec<usize>,
}

impl Graph {
    /// The graph of a config; each group of blocks that need each other is one diagnostic.
    pub fn new(config: &Config) -> (Self, Diagnostics) {
        let blocks: Vec<Block> = config.resources.keys().cloned().collect();
        let locals: Vec<Name> = config.locals.keys().cloned().collect();
        let nodes = blocks.iter().cloned().enumerate().map(|(node, block)| (block, node)).collect();
        let links = Links::new(blocks.len() + locals.len());
        let mut graph = Self { blocks, locals, links, nodes, order: Vec::new() };
        graph.connect(config);
        graph.order = graph.sorted();
        // Whatever is not in a cycle or behind one was sorted, which is cheaper to see.
        let diagnostics = if graph.order.len() < graph.blocks.len() {
            graph.order = graph.with_the_rest();
            graph.cycles()
        } else {
            Diagnostics::new()
        };
        (graph, diagnostics)
    }

    /// All blocks, each after what it depends on; by address where that leaves a choice. Members
    /// of a cycle, and what depends on them, come last.
    pub fn order(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.order.iter().map(|node| &self.blocks[*node])
    }

    /// The resources of a config in [`Self::order`].
    pub fn walk<'c>(
        &self,
        config: &'c Config,
    ) -> impl ExactSizeIterator<Item = Option<&'c ResourceConfig>> {
        let by_node: Vec<&ResourceConfig> = config.resources.values().collect();
        self.order.iter().map(move |node| {
            let block = &self.blocks[*node];
            // The config that the graph was made of has its blocks in the same places.
            let same = by_node.get(*node).copied().filter(|resource| resource.block == *block);
            same.or_else(|| config.resources.get(block))
        })
    }

    /// The blocks that a block refers to or names in `depends_on`, by address.
    pub fn dependencies(&self, block: &Block) -> Vec<&Block> {
        self.around(block, Direction::Outgoing)
    }

    /// The blocks that refer to a block or name it in `depends_on`, by address.
    pub fn dependents(&self, block: &Block) -> Vec<&Block> {
        self.around(block, Direction::Incoming)
    }

    fn around(&self, block: &Block, direction: Direction) -> Vec<&Block> {
        let Some(start) = self.nodes.get(block) else { return Vec::new() };
        let mut found = BTreeSet::new();
        let mut locals = BTreeSet::new();
        let mut stack = vec![*start];
        while let Some(node) = stack.pop() {
            for next in self.links.neighbours(node, direction) {
                if next < self.blocks.len() {
                    found.insert(next);
                } else if locals.insert(next) {
                    stack.push(next);
                }
            }
        }
        found.into_iter().map(|node| &self.blocks[node]).collect()
    }

    fn connect(&mut self, config: &Config) {
        let first_local = self.blocks.len();
        let locals: FxHashMap<Name, usize> =
            self.locals.iter().cloned().zip(first_local..).collect();
        for (node, resource) in config.resources.values().enumerate() {
            for value in expressions(resource) {
                self.refer(node, value, &locals);
            }
            for (address, at) in &resource.depends_on {
                if let Some(to) = self.nodes.get(&address.block) {
                    self.links.add(node, *to, *at);
                }
            }
        }
        for (node, value) in (first_local..).zip(config.locals.values()) {
            self.refer(node, value, &locals);
        }
    }

    fn refer(&mut self, node: usize, value: &SpecExpr, locals: &FxHashMap<Name, usize>) {
        let (nodes, links) = (&self.nodes, &mut self.links);
        roots(&value.expr, &mut |root, range| {
            let to = match root {
                Root::Resource(block) => nodes.get(block),
                Root::Local(name) => locals.get(name),
                _ => None,
            };
            if let Some(to) = to {
                links.add(node, *to, value.span_of(range));
            }
        });
    }

    /// The blocks in order, without those in a cycle or behind one.
    fn sorted(&self) -> Vec<usize> {
        let count = self.blocks.len() + self.locals.len();
        let mut missing = self.links.needs();
        // Locals go first, so that they do not disturb the order of the blocks.
        let mut locals = Vec::new();
        let mut blocks = BinaryHeap::new();
        let ready = |node, locals: &mut Vec<usize>, blocks: &mut BinaryHeap<Reverse<usize>>| {
            if node < self.blocks.len() { blocks.push(Reverse(node)) } else { locals.push(node) }
        };
        for node in (0..count).filter(|node| missing[*node] == 0) {
            ready(node, &mut locals, &mut blocks);
        }
        let mut order = Vec::with_capacity(self.blocks.len());
        while let Some(node) = locals.pop().or_else(|| Some(blocks.pop()?.0)) {
            if node < self.blocks.len() {
                order.push(node);
            }
            for dependent in self.links.neighbours(node, Direction::Incoming) {
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    ready(dependent, &mut locals, &mut blocks);
                }
            }
        }
        order
    }

    fn with_the_rest(&self) -> Vec<usize> {
        let sorted: BTreeSet<usize> = self.order.iter().copied().collect();
        let rest = (0..self.blocks.len()).filter(|node| !sorted.contains(node));
        self.order.iter().copied().chain(rest).collect()
    }

    fn cycles(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for group in self.links.groups() {
            // A cycle of locals alone was found when they were typed.
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
            None => format!("local.{}", self.locals[node - self.blocks.len()]),
        }
    }
}

/// Every expression of a resource that may refer to others.
fn expressions(resource: &ResourceConfig) -> impl Iterator<Item = &SpecExpr> {
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
}

#[cfg(test)]
mod tests;
