//! The decisions of a plan.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::address::Address;
use crate::plan::context::Context;
use crate::plan::decide::triggers::Changing;
use crate::plan::draft::Draft;

/// The decisions of a plan.
pub(in crate::plan) struct Decisions {
    pub(in crate::plan) drafts: Vec<Draft>,
    /// The addresses of the state that the spec wants.
    pub(in crate::plan) handled: FxHashSet<Address>,
    /// The addresses that a call in doubt is about, and those that depend on them.
    pub(in crate::plan) in_doubt: BTreeSet<Address>,
    /// The changes of objects that `replace_triggered_by` names.
    pub(in crate::plan) changing: Changing,
}

impl Decisions {
    /// Returns decisions without any draft.
    pub(in crate::plan) fn new(context: &Context<'_>) -> Self {
        Self {
            drafts: Vec::with_capacity(context.input.config.resources.len()),
            handled: FxHashSet::default(),
            in_doubt: context.blocked.clone(),
            changing: Changing::new(context.input.config),
        }
    }

    /// Returns true if the plan covers the object of an address.
    pub(in crate::plan) fn is_chosen(&self, context: &Context<'_>, address: &Address) -> bool {
        if self.handled.contains(address) {
            context.selection.includes(address)
        } else {
            context.selection.includes_removal(address)
        }
    }

    /// Sorts the drafts by address; those of deposed objects follow the one of their address.
    pub(in crate::plan) fn sort(&mut self) {
        self.drafts.sort_by(|a, b| {
            let (a, b) = (&a.change, &b.change);
            (&a.address, a.deposed, &a.object).cmp(&(&b.address, b.deposed, &b.object))
        });
    }

    /// Returns the draft of an address's own object. The drafts must be sorted.
    pub(in crate::plan) fn draft(&self, address: &Address) -> Option<&Draft> {
        let key = (address, false);
        let of = |draft: &Draft| (&draft.change.address, draft.change.deposed) < key;
        let draft = self.drafts.get(self.drafts.partition_point(of));
        draft.filter(|draft| draft.change.address == *address && !draft.change.deposed)
    }
}
