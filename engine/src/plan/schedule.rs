//! Scheduling: changes become steps, one for each phase, in an order that can be run.
//!
//! The executor knows no "replace" and no dependency: it sees steps and the steps that each needs. All
//! ordering is decided here:
//! - an object is made or changed after those that it is made from (`edges`);
//! - an object is deleted after all objects that depended on it let go of it (`delete_order`);
//! - the conditions of an object are judged before it is made or changed, and afterwards (`lower`);
//! - a unique name is taken after its holder gave it up (`edges`);
//! - in a replace that creates first, dependants follow the new object before the old one goes; an old object
//!   that is still used stays, for a later plan.

mod cycles;
mod delete_order;
mod edges;
mod graph;
mod lower;
pub(super) mod unused_secrets;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::decided_changes::DecidedChanges;
use crate::plan::draft::Draft;
use crate::plan::schedule::graph::{NodeId, StepGraph};
use crate::plan::{Step, StepId};

/// Turns changes into steps. Refuses changes whose steps wait for one another.
pub(in crate::plan) fn steps(
    changes: &DecidedChanges<'_>,
    key: &SealKey,
    found: &mut Diagnostics,
) -> Vec<Step> {
    let drafts = changes.drafts;
    let mut graph = StepGraph::lower(drafts, found);
    graph.hand_over_names(drafts, &changes.names);
    graph.follow_dependencies(drafts);
    let waits = graph.delete_after_release(changes, key, found);
    graph.require_before_delete();
    let steps = order(&graph, drafts).or_else(|stuck| {
        for reference in graph.break_cycles(changes, &stuck, &waits) {
            delete_order::refuse_if_held(drafts, reference, key, found);
        }
        order(&graph, drafts)
    });
    steps.unwrap_or_else(|stuck| {
        found.push(graph.circle(&stuck, drafts));
        Vec::new()
    })
}

/// Sorts the nodes so that each comes after those that it needs, by address if there is a choice. If some
/// nodes wait for one another, returns true for each node that is stuck.
fn order(graph: &StepGraph, drafts: &[Draft]) -> Result<Vec<Step>, Vec<bool>> {
    let mut open: Vec<usize> = graph.nodes.iter().map(|node| node.needs.len()).collect();
    let mut waiting: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        for &need in &node.needs {
            waiting[need].push(id);
        }
    }
    let mut heap: BinaryHeap<Reverse<NodeId>> =
        (0..graph.nodes.len()).filter(|&id| open[id] == 0).map(Reverse).collect();
    let mut place: Vec<Option<StepId>> = vec![None; graph.nodes.len()];
    let mut steps = Vec::with_capacity(graph.nodes.len());
    while let Some(Reverse(id)) = heap.pop() {
        let step = StepId(u32::try_from(steps.len()).unwrap_or(u32::MAX));
        place[id] = Some(step);
        steps.push(graph.nodes[id].step(step, &place, drafts));
        for &next in &waiting[id] {
            open[next] -= 1;
            if open[next] == 0 {
                heap.push(Reverse(next));
            }
        }
    }
    if steps.len() < graph.nodes.len() {
        return Err(place.iter().map(Option::is_none).collect());
    }
    Ok(steps)
}
