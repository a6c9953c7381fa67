//! The order in which objects are written: an object comes after those that it refers to.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::model::{Found, Place, Surroundings};
use super::references::targets;
use crate::address::Name;

/// Objects that are written together.
pub(super) struct Batch {
    /// The objects, by index.
    pub(super) objects: Vec<usize>,
    /// True if the objects have one type and none refers to another of its type, so that they may share a
    /// block. A spec in which blocks refer to each other, or to themselves, is not valid.
    pub(super) is_groupable: bool,
}

/// Returns the objects in batches: each object refers only to objects of earlier batches. If references form
/// a circle, the last one is left out.
pub(super) fn batches(surroundings: &Surroundings<'_>, found: &[Found]) -> Vec<Batch> {
    let index: BTreeMap<Place, usize> =
        found.iter().enumerate().map(|(at, object)| (object.place(), at)).collect();
    let edges: Vec<(usize, usize)> = found
        .iter()
        .enumerate()
        .flat_map(|(from, object)| {
            let to = targets(surroundings, object);
            to.into_iter().filter_map(|to| index.get(&to).copied()).map(move |to| (from, to))
        })
        .collect();
    let types: BTreeSet<&Name> = found.iter().map(|object| &object.ty).collect();
    let types: Vec<&Name> = types.into_iter().collect();
    let type_of = |object: usize| types.binary_search(&&found[object].ty).unwrap_or_default();
    let type_edges: BTreeSet<(usize, usize)> =
        edges.iter().map(|(from, to)| (type_of(*from), type_of(*to))).collect();
    let type_edges: Vec<_> = type_edges.into_iter().collect();
    let mut batches = Vec::new();
    for circle in postorder(types.len(), &type_edges) {
        let is_groupable = circle.len() == 1 && !type_edges.contains(&(circle[0], circle[0]));
        let own: Vec<usize> =
            (0..found.len()).filter(|object| circle.contains(&type_of(*object))).collect();
        let objects = if is_groupable { own } else { in_order(&own, &edges) };
        batches.push(Batch { objects, is_groupable });
    }
    batches
}

/// Returns some objects, each after those that it refers to.
fn in_order(own: &[usize], edges: &[(usize, usize)]) -> Vec<usize> {
    let place: BTreeMap<usize, usize> =
        own.iter().enumerate().map(|(at, object)| (*object, at)).collect();
    let inside = |(from, to): &(usize, usize)| Some((*place.get(from)?, *place.get(to)?));
    let edges: Vec<_> = edges.iter().filter_map(inside).collect();
    postorder(own.len(), &edges).into_iter().flatten().map(|at| own[at]).collect()
}

/// Returns the circles of a graph, and the nodes that are in no circle, each after those that its edges lead
/// to.
fn postorder(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut graph = DiGraph::<(), ()>::new();
    let indices: Vec<NodeIndex> = (0..nodes).map(|_| graph.add_node(())).collect();
    for (from, to) in edges {
        graph.add_edge(indices[*from], indices[*to], ());
    }
    let circles = tarjan_scc(&graph).into_iter();
    circles.map(|circle| circle.into_iter().map(NodeIndex::index).collect()).collect()
}
