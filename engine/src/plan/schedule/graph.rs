//! The step graph: the steps of all changes before they have an order.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::Address;
use crate::journal::PhaseRef;
use crate::plan::draft::Draft;
use crate::plan::{Step, StepId};
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::ObjectId;

/// The index of a node in its graph.
pub(super) type NodeId = usize;

/// A step that has no place in the order yet.
pub(super) struct Node {
    pub(super) draft: usize,
    pub(super) operation: Operation,
    pub(super) phase: Option<PhaseRef>,
    pub(super) object: Option<ObjectId>,
    pub(super) deposes: bool,
    pub(super) needs: Set<NodeId>,
}

/// The nodes of one draft that others wait for.
#[derive(Default)]
pub(super) struct Milestones {
    /// The first node that makes or changes the object.
    pub(super) first_up: Option<NodeId>,
    /// The node after which dependants can use the object.
    pub(super) ready: Option<NodeId>,
    /// The nodes of the create that are part of this plan: one of them gives the object its name.
    pub(super) created: Vec<NodeId>,
    /// The node that judges the preconditions, before the object is made or changed.
    pub(super) require: Option<NodeId>,
    /// The first and the last node of the delete.
    pub(super) deletes: Option<(NodeId, NodeId)>,
    /// The node after which the object no longer depends on other objects.
    pub(super) release: Option<NodeId>,
    /// True for a replace that deletes before it creates.
    pub(super) delete_first: bool,
}

/// The nodes of all changes and the edges between them.
#[derive(Default)]
pub(super) struct StepGraph {
    pub(super) nodes: Vec<Node>,
    pub(super) milestones: Vec<Milestones>,
    /// Nodes that take a unique name, each with the node that gives it up.
    pub(super) handovers: Vec<(NodeId, NodeId)>,
}

impl StepGraph {
    /// Returns true if a node comes after another one, or is it.
    pub(super) fn waits_for(&self, node: NodeId, other: NodeId) -> bool {
        self.before(node, Some(other)).contains(&other)
    }

    /// Returns a node and all nodes that come before it.
    pub(super) fn all_before(&self, node: NodeId) -> FxHashSet<NodeId> {
        self.before(node, None)
    }

    /// Returns a node and nodes that come before it; stops at `until`.
    fn before(&self, node: NodeId, until: Option<NodeId>) -> FxHashSet<NodeId> {
        let (mut open, mut seen) = (vec![node], FxHashSet::default());
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                if until == Some(next) {
                    break;
                }
                open.extend(&self.nodes[next].needs);
            }
        }
        seen
    }
}

impl Node {
    /// Returns the step. The nodes that it needs already have their places in the order.
    pub(super) fn step(&self, id: StepId, place: &[Option<StepId>], drafts: &[Draft]) -> Step {
        let mut needs: Vec<StepId> = self.needs.iter().filter_map(|&need| place[need]).collect();
        needs.sort_unstable();
        Step {
            id,
            operation: self.operation,
            address: drafts[self.draft].change.address.clone(),
            change: self.draft,
            phase: self.phase,
            object: self.object.clone(),
            deposes: self.deposes,
            needs,
        }
    }
}

/// Returns the index of each address's draft, without those of deposed objects.
pub(super) fn by_address(drafts: &[Draft]) -> FxHashMap<&Address, usize> {
    let mut indices = FxHashMap::default();
    indices.reserve(drafts.len());
    let current = drafts.iter().enumerate().filter(|(_, draft)| !draft.change.deposed);
    indices.extend(current.map(|(index, draft)| (&draft.change.address, index)));
    indices
}
