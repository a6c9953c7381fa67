//! Cycles of steps: the least certain wait of a delete gives way, and a cycle without one is
//! reported.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use crate::address::Address;
use crate::diagnostics::Diagnostic;
use crate::plan::decided_changes::DecidedChanges;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::facts::reference_index::{Certainty, Reference};
use crate::plan::schedule::delete_order::Waits;
use crate::plan::schedule::graph::{NodeId, StepGraph};

/// The number of the circle that a node is in.
struct Circles(FxHashMap<NodeId, usize>);

impl Circles {
    /// The circle that two nodes are in together.
    fn of_both(&self, a: NodeId, b: NodeId) -> Option<usize> {
        let (a, b) = (self.0.get(&a)?, self.0.get(&b)?);
        (a == b).then_some(*a)
    }
}

/// The most steps that the search for circles looks at. Waits that would need more are left out.
const LOOKS_MAX: usize = 10_000_000;

impl StepGraph {
    /// Leaves out waits that prevent steps from ever starting, the least certain first. Returns the
    /// references whose replace cannot create first instead.
    pub(super) fn break_cycles<'s>(
        &mut self,
        changes: &'s DecidedChanges<'s>,
        stuck: &[bool],
        waits: &Waits,
    ) -> Vec<&'s Reference<'s>> {
        let circles = self.circles(stuck);
        let open = self.least_certain_last(&circles, changes, waits);
        let out: BTreeSet<(NodeId, NodeId)> = open.iter().copied().collect();
        for &(delete, _) in &out {
            self.nodes[delete].needs.retain(|&need| !out.contains(&(delete, need)));
        }
        let (mut looks, mut left_out) = (LOOKS_MAX, Vec::new());
        for (delete, release) in open {
            if !self.reaches(release, delete, &circles, &mut looks) {
                self.nodes[delete].needs.insert(release);
            } else if looks > 0 && self.replaces(delete) {
                left_out.extend(self.reference(changes, (delete, release)));
            }
        }
        left_out
    }

    /// Returns the waits inside circles that may give way; the least certain come last.
    fn least_certain_last(
        &self,
        circles: &Circles,
        changes: &DecidedChanges<'_>,
        waits: &Waits,
    ) -> Vec<(NodeId, NodeId)> {
        // If a draft takes a name from an object that it depends on, the wait for that dependency stays, and
        // the circle is reported: without the wait the API would refuse the same delete each time. The user
        // has to do it in two applies.
        let passing =
            self.handovers.iter().filter_map(|&(taker, free)| circles.of_both(taker, free));
        let passing: BTreeSet<usize> = passing.collect();
        let mut open: Vec<_> = waits
            .iter()
            .filter_map(|(&wait, &evidence)| {
                let circle = circles.of_both(wait.0, wait.1)?;
                let reference = self.reference(changes, wait);
                let certainty = reference.map_or(evidence, |it| it.certainty(evidence));
                let insists = evidence > Certainty::Assumed || certainty == Certainty::Held;
                // Of two equally certain waits, that of a replace is left out: the user can tell a replace to
                // create first.
                let order = (Reverse(certainty), self.replaces(wait.0), wait);
                (!insists || !passing.contains(&circle)).then_some(order)
            })
            .collect();
        open.sort_unstable();
        open.into_iter().map(|(.., wait)| wait).collect()
    }

    /// Returns the reference for which a delete waits.
    fn reference<'s>(
        &self,
        changes: &'s DecidedChanges<'s>,
        (delete, release): (NodeId, NodeId),
    ) -> Option<&'s Reference<'s>> {
        changes.references.get(self.nodes[delete].draft, self.nodes[release].draft)
    }

    /// Returns true if a node is the delete of a replace that deletes first.
    fn replaces(&self, delete: NodeId) -> bool {
        self.milestones[self.nodes[delete].draft].delete_first
    }

    /// Returns the circle of each stuck node. A node that only comes after a circle, or between two, is in no
    /// circle.
    fn circles(&self, stuck: &[bool]) -> Circles {
        let mut needs: DiGraph<NodeId, ()> = DiGraph::new();
        let place: FxHashMap<NodeId, NodeIndex> =
            (0..stuck.len()).filter(|&id| stuck[id]).map(|id| (id, needs.add_node(id))).collect();
        for (&id, &from) in &place {
            for need in self.nodes[id].needs.iter().filter_map(|need| place.get(need)) {
                needs.add_edge(from, *need, ());
            }
        }
        let circles = kosaraju_scc(&needs).into_iter().filter(|circle| circle.len() > 1);
        let nodes = circles.enumerate().flat_map(|(number, circle)| {
            let number = move |at| (at, number);
            circle.into_iter().map(number).collect::<Vec<_>>()
        });
        Circles(nodes.map(|(at, number)| (needs[at], number)).collect())
    }

    /// Returns true if a node comes after another node of its circle, or if the search looked at too many
    /// nodes.
    fn reaches(&self, from: NodeId, to: NodeId, circles: &Circles, looks: &mut usize) -> bool {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == to || *looks == 0 {
                return true;
            }
            *looks -= 1;
            let needs = self.nodes[next].needs.iter().copied();
            open.extend(
                needs.filter(|&need| circles.of_both(need, to).is_some() && seen.insert(need)),
            );
        }
        false
    }

    /// Returns the handovers of names that wait for one another: the taker, and the holder.
    fn circle_of_names<'d>(&self, drafts: &'d [Draft]) -> BTreeSet<(&'d Address, &'d Address)> {
        let circular = |(taker, free): &&(NodeId, NodeId)| self.waits_for(*free, *taker);
        let address = |node: NodeId| &drafts[self.nodes[node].draft].change.address;
        let circle = self.handovers.iter().filter(circular);
        circle.map(|&(taker, free)| (address(taker), address(free))).collect()
    }

    /// Returns the diagnostic for steps that wait for one another even without the waits of deletes.
    pub(super) fn circle(&self, stuck: &[bool], drafts: &[Draft]) -> Diagnostic {
        let names = self.circle_of_names(drafts);
        if let [(taker, bearer)] = names.iter().collect::<Vec<_>>()[..] {
            return diagnostics::name_comes_too_late(taker, bearer);
        }
        if !names.is_empty() {
            let takers: BTreeSet<String> = names.iter().map(|(it, _)| it.to_string()).collect();
            return diagnostics::names_in_a_circle(&takers.into_iter().collect::<Vec<_>>());
        }
        let stuck: BTreeSet<String> = (0..self.nodes.len())
            .filter(|&id| stuck[id])
            .map(|id| drafts[self.nodes[id].draft].change.address.to_string())
            .collect();
        let stuck = stuck.into_iter().collect::<Vec<_>>().join(", ");
        diagnostics::internal(format!("these wait for one another: {stuck}"))
    }
}
