//! The order of deletes: an object is deleted after all its users let go of it, as far as that is possible.
//!
//! References come from several sources, and not all of them are true at the same time: the state may say of
//! two objects that each depends on the other, because the spec reversed a reference, or because two runs
//! wrote it. So these waits are left out if steps would wait for one another
//! ([`crate::plan::schedule::cycles`]). Without such a wait, the API may refuse a delete; the steps that
//! succeeded are done then, and the next plan has fewer waits.

use std::collections::BTreeMap;

use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::decided_changes::DecidedChanges;
use crate::plan::draft::Draft;
use crate::plan::facts::names;
use crate::plan::facts::reference_index::{Certainty, Reference};
use crate::plan::schedule::graph::{NodeId, StepGraph, by_address};
use crate::plan::{Action, diagnostics};
use crate::state::Progress;

/// Pairs of a delete and a step after which its object is no longer used, with the evidence for the use.
pub(super) type Waits = BTreeMap<(NodeId, NodeId), Certainty>;

impl StepGraph {
    /// Makes deletes wait for the users of their objects.
    pub(super) fn delete_after_release(
        &mut self,
        changes: &DecidedChanges<'_>,
        key: &SealKey,
        found: &mut Diagnostics,
    ) -> Waits {
        let drafts = changes.drafts;
        let mut waits = Waits::new();
        // The references whose wait may close a circle, by the release. The steps before a release are
        // computed once, however many objects it uses.
        let mut checked: BTreeMap<NodeId, Vec<(NodeId, &Reference<'_>, Certainty)>> =
            BTreeMap::new();
        for reference in changes.references.iter() {
            let (used, user) = (&self.milestones[reference.used], &self.milestones[reference.user]);
            let Some(((delete, _), release)) = used.deletes.zip(user.release) else { continue };
            let Some(evidence) = reference.evidence(drafts) else { continue };
            if used.delete_first || drafts[reference.user].change.deposed {
                checked.entry(release).or_default().push((delete, reference, evidence));
            } else {
                waits.insert((delete, release), evidence);
            }
        }
        for (release, deletes) in checked {
            let before = self.all_before(release);
            for (delete, reference, evidence) in deletes {
                // A replace that deletes first cannot wait for objects that wait for its new object: the
                // object that they use is already gone when they let go of it.
                if before.contains(&delete) {
                    refuse_if_held(drafts, reference, key, found);
                } else {
                    waits.entry((delete, release)).or_insert(evidence);
                }
            }
        }
        self.wait_for_successors(drafts, &mut waits);
        for &(delete, release) in waits.keys() {
            self.nodes[delete].needs.insert(release);
        }
        waits
    }

    /// Makes the delete of a deposed object wait until its address has a whole object again. An earlier run
    /// may have ended before that; until then the deposed object is the one in service.
    fn wait_for_successors(&self, drafts: &[Draft], waits: &mut Waits) {
        if drafts.iter().all(|draft| !draft.change.deposed) {
            return;
        }
        let indices = by_address(drafts);
        for (draft, own) in drafts.iter().zip(&self.milestones) {
            let Some((delete, _)) = own.deletes.filter(|_| draft.change.deposed) else { continue };
            let successor = indices.get(&draft.change.address);
            let whole = successor.and_then(|&index| self.whole(&drafts[index], index));
            if let Some(whole) = whole.filter(|&whole| !self.waits_for(whole, delete)) {
                waits.entry((delete, whole)).or_insert(Certainty::Assumed);
            }
        }
    }

    /// Returns the node after which an address has a whole object again; none if it has one now. It has none
    /// now if its object is half made, or gone. None also if a name of the new object is known only later:
    /// that may be the name of the deposed object, which then has to be deleted first.
    fn whole(&self, draft: &Draft, index: usize) -> Option<NodeId> {
        let is_half_made = matches!(draft.change.progress, Progress::Created { .. });
        let is_awaited = match draft.change.action {
            Action::Create => true,
            Action::Update | Action::Replace => is_half_made,
            _ => false,
        };
        self.milestones[index].ready.filter(|_| is_awaited && !names::has_an_unknown_name(draft))
    }
}

/// Refuses a delete that comes before the new object exists, if a user of the object keeps the API from
/// deleting it: no apply could do it.
pub(super) fn refuse_if_held(
    drafts: &[Draft],
    reference: &Reference<'_>,
    key: &SealKey,
    found: &mut Diagnostics,
) {
    let Some(attribute) = reference.holding() else { return };
    let [used, user] = [reference.used, reference.user].map(|draft| &drafts[draft]);
    let name = names::in_the_way(&used.change, &used.schema, key);
    let user = (&user.change.address, attribute);
    found.push(diagnostics::held_until_there_is_another(used, user, name));
}
