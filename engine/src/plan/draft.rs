//! A decided change, with the data that checks and scheduling need beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::Name;
use crate::plan::decide::resume::RemainingPhases;
use crate::plan::facts::deferrals::Deferral;
use crate::plan::{Action, Change, Missing};
use crate::schema::{Phase, TypeSchema};
use crate::value::Attributes;

/// The flags of an instance's `lifecycle`.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a yes-or-no of its own in the spec")]
pub(in crate::plan) struct Flags {
    pub(in crate::plan) prevent_destroy: bool,
    pub(in crate::plan) allow_data_loss: bool,
    pub(in crate::plan) create_first: Option<bool>,
    /// True if an object that would be deleted is let go instead.
    pub(in crate::plan) retain: bool,
    /// True if a resource in `replace_triggered_by` changes.
    pub(in crate::plan) triggered: bool,
}

/// A change with the data that checks and scheduling need beside it.
pub(in crate::plan) struct Draft {
    pub(in crate::plan) change: Change,
    /// The live object with its secrets sealed, as a plan shows it. `change.before` has them in clear.
    pub(in crate::plan) redacted: Option<Arc<Attributes>>,
    pub(in crate::plan) schema: Arc<TypeSchema>,
    /// The flags of the instance's `lifecycle`; for an instance that goes, only those that protect it.
    pub(in crate::plan) flags: Flags,
    /// True if a replace creates before it deletes.
    pub(in crate::plan) create_first: bool,
    /// True if a replace lets the old object go instead of deleting it.
    pub(in crate::plan) retains: bool,
    /// True if a replace leaves the old object to a later plan.
    pub(in crate::plan) keeps_old: bool,
    /// The attributes that differ.
    pub(in crate::plan) changed: BTreeSet<Name>,
    /// The attributes that the spec gave the last time and no longer gives.
    pub(in crate::plan) unmanaged: Vec<Name>,
    /// The secrets that no run has in clear, by the attribute of the planned object that needs them.
    pub(in crate::plan) missing: BTreeMap<Name, Vec<Missing>>,
    /// The phases that an earlier run left undone, for an update.
    pub(in crate::plan) rest: Option<RemainingPhases>,
    /// The reason that nothing is done; none if the plan may change the object.
    pub(in crate::plan) deferral: Option<Deferral>,
}

impl Draft {
    /// Returns a draft of a change, without further data.
    pub(in crate::plan) fn new(change: Change, schema: Arc<TypeSchema>) -> Self {
        Self {
            change,
            redacted: None,
            schema,
            flags: Flags::default(),
            create_first: false,
            retains: false,
            keeps_old: false,
            changed: BTreeSet::new(),
            unmanaged: Vec::new(),
            missing: BTreeMap::new(),
            rest: None,
            deferral: None,
        }
    }

    /// Returns the phases that an earlier run left undone, with all phases of their program.
    pub(in crate::plan) fn rest(&self) -> Option<(RemainingPhases, &[Phase])> {
        let rest = self.rest?;
        Some((rest, &self.schema.programs(rest.kind).get(rest.program)?.phases))
    }

    /// Returns true if the plan deletes the current object.
    pub(in crate::plan) fn is_deleted(&self) -> bool {
        match self.change.action {
            Action::Delete => true,
            Action::Replace => !self.retains && !self.keeps_old,
            _ => false,
        }
    }

    /// Returns true if the spec does not give an attribute now, even if it gave it the last time.
    pub(in crate::plan) fn is_silent_about(&self, attribute: &Name) -> bool {
        self.unmanaged.contains(attribute) || !self.change.managed.contains(attribute)
    }

    /// Returns true if the plan takes the current object out of the state and leaves it alone.
    pub(in crate::plan) fn is_forgotten(&self) -> bool {
        match self.change.action {
            Action::Forget => true,
            Action::Replace => self.retains,
            _ => false,
        }
    }
}
