//! Edges that every plan has: an object is made after those that it is made from, and a unique name is taken
//! after its holder gave it up.

use crate::address::Name;
use crate::plan::Action;
use crate::plan::draft::Draft;
use crate::plan::facts::names::{Handover, NameTable};
use crate::plan::schedule::graph::{Milestones, NodeId, StepGraph, by_address};

impl StepGraph {
    /// Makes each object wait for those that it is made from.
    pub(super) fn follow_dependencies(&mut self, drafts: &[Draft]) {
        let indices = by_address(drafts);
        for (draft, own) in drafts.iter().zip(&self.milestones) {
            for node in [own.require, own.first_up].into_iter().flatten() {
                for dependency in &draft.change.dependencies {
                    let Some(&index) = indices.get(dependency) else { continue };
                    if let Some(ready) = self.milestones[index].ready {
                        self.nodes[node].needs.insert(ready);
                    }
                }
            }
        }
    }

    /// Makes the first delete of a replace that deletes first wait for the preconditions, unless these wait
    /// for the delete.
    pub(super) fn require_before_delete(&mut self) {
        for index in 0..self.milestones.len() {
            let own = &self.milestones[index];
            let first = own.deletes.map(|(first, _)| first).filter(|_| own.delete_first);
            let Some((require, delete)) = own.require.zip(first) else { continue };
            if !self.waits_for(require, delete) {
                self.nodes[delete].needs.insert(require);
            }
        }
    }

    /// Makes each draft that takes a unique name wait until the holder is gone, or has another name.
    pub(super) fn hand_over_names(&mut self, drafts: &[Draft], names: &NameTable<'_>) {
        for handover in names.handovers() {
            let holder = &self.milestones[handover.from];
            if let Some(free) = holder.deletes.map(|(_, gone)| gone).or(holder.release) {
                self.hand_over(&drafts[handover.to], handover, free);
            }
        }
    }

    fn hand_over(&mut self, draft: &Draft, handover: Handover<'_>, free: NodeId) {
        let Handover { attribute, to, .. } = handover;
        let Some(taker) = self.taker(&self.milestones[to], draft, attribute) else { return };
        self.nodes[taker].needs.insert(free);
        self.handovers.push((taker, free));
        // If a later phase gives the name, objects that depend on this one do not wait for the name: they
        // wait for the create, or, if the object exists already, for nothing.
        let own = &mut self.milestones[to];
        if own.first_up != Some(taker) {
            own.ready = own.first_up;
        } else if matches!(draft.change.action, Action::Update | Action::Import) {
            own.ready = None;
        }
    }

    /// Returns the node that gives an object its name; none if only a later plan gives it.
    fn taker(&self, own: &Milestones, draft: &Draft, attribute: &Name) -> Option<NodeId> {
        let Some(&first) = own.created.first() else { return own.first_up };
        let program = self.nodes[first].phase.and_then(|it| draft.schema.create.get(it.program))?;
        own.created.get(draft.schema.naming_phase(program, attribute)).copied()
    }
}
