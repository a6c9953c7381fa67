//! Numbered nodes and their needs: order and cycles, without recursion.

use std::collections::VecDeque;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// A graph whose edges lead from a node to one that it needs; each edge has a reason.
#[derive(Clone, Debug)]
pub(crate) struct Links<E>(DiGraph<(), E>);

impl<E> Default for Links<E> {
    fn default() -> Self {
        Self(DiGraph::default())
    }
}

impl<E> Links<E> {
    /// Returns a graph of `nodes` nodes, numbered from 0, without edges.
    pub(crate) fn new(nodes: usize) -> Self {
        let mut graph = DiGraph::with_capacity(nodes, nodes);
        for _ in 0..nodes {
            graph.add_node(());
        }
        Self(graph)
    }

    /// Records that `from` needs `to`.
    pub(crate) fn add(&mut self, from: usize, to: usize, why: E) {
        self.0.add_edge(NodeIndex::new(from), NodeIndex::new(to), why);
    }

    /// Returns the nodes that a node needs, or that need it; a node appears once for each reason.
    pub(crate) fn neighbours(
        &self,
        node: usize,
        direction: Direction,
    ) -> impl Iterator<Item = usize> + '_ {
        self.0.neighbors_directed(NodeIndex::new(node), direction).map(NodeIndex::index)
    }

    /// Returns, for each node, the number of reasons to need others.
    pub(crate) fn needs(&self) -> Vec<usize> {
        let mut needs = vec![0; self.0.node_count()];
        for edge in self.0.raw_edges() {
            needs[edge.source().index()] += 1;
        }
        needs
    }

    /// Returns the nodes in groups, each group after those that it needs. If a group has more than one node,
    /// these need each other.
    ///
    /// Kosaraju's algorithm, because petgraph's Tarjan is recursive and a chain may be long.
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let sorted = |group: Vec<NodeIndex>| {
            let mut group: Vec<usize> = group.into_iter().map(NodeIndex::index).collect();
            group.sort_unstable();
            group
        };
        kosaraju_scc(&self.0).into_iter().map(sorted).collect()
    }

    /// Returns true if the nodes of a group need each other, or its only node needs itself.
    pub(crate) fn is_cycle(&self, group: &[usize]) -> bool {
        match group {
            [node] => self.neighbours(*node, Direction::Outgoing).any(|next| next == *node),
            group => group.len() > 1,
        }
    }

    /// Returns the shortest way from the first node of a cyclic group back to itself: each node with the
    /// reason that it needs the next one, the last node with the reason that it needs the first.
    pub(crate) fn cycle(&self, group: &[usize]) -> Vec<(usize, &E)> {
        let Some(first) = group.first().copied() else { return Vec::new() };
        let mut reached = std::collections::BTreeMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(node) = queue.pop_front() {
            let mut edges: Vec<_> = self.0.edges(NodeIndex::new(node)).collect();
            edges.sort_by_key(|edge| (edge.target(), edge.id()));
            for edge in edges {
                let target = edge.target().index();
                if target == first {
                    return way_back(first, node, edge.weight(), &reached);
                }
                if group.binary_search(&target).is_ok() && !reached.contains_key(&target) {
                    reached.insert(target, (node, edge.weight()));
                    queue.push_back(target);
                }
            }
        }
        Vec::new()
    }
}

fn way_back<'e, E>(
    first: usize,
    last: usize,
    why: &'e E,
    reached: &std::collections::BTreeMap<usize, (usize, &'e E)>,
) -> Vec<(usize, &'e E)> {
    let mut cycle = vec![(last, why)];
    let mut node = last;
    while node != first
        && let Some((before, why)) = reached.get(&node)
    {
        cycle.push((*before, why));
        node = *before;
    }
    cycle.reverse();
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(nodes: usize, edges: &[(usize, usize)]) -> Links<usize> {
        let mut links = Links::new(nodes);
        for (index, (from, to)) in edges.iter().enumerate() {
            links.add(*from, *to, index);
        }
        links
    }

    #[test]
    fn what_is_needed_comes_first() {
        assert_eq!(links(3, &[(0, 1), (1, 2)]).groups(), [[2], [1], [0]]);
    }

    #[test]
    fn a_cycle_is_told_from_its_first_member() {
        let links = links(5, &[(3, 1), (1, 2), (2, 3), (2, 4), (0, 0)]);
        let cycles: Vec<_> =
            links.groups().into_iter().filter(|group| links.is_cycle(group)).collect();
        assert_eq!(cycles, [vec![1, 2, 3], vec![0]]);
        assert_eq!(links.cycle(&cycles[0]), [(1, &1), (2, &2), (3, &0)]);
        assert_eq!(links.cycle(&cycles[1]), [(0, &4)]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let nodes = 200_000;
        let edges: Vec<_> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
        let links = links(nodes, &edges);
        let groups = links.groups();
        assert_eq!(groups.len(), 1);
        assert_eq!(links.cycle(&groups[0]).len(), nodes);
    }
}
