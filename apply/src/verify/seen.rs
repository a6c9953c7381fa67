//! Whether what a saved plan takes into the state still fits, and what it deletes beside an
//! address's own object.

use engine::address::{Address, Name};
use engine::journal::Record;
use engine::plan::facts::prior::{overlay, stored_attributes};
use engine::plan::input::{Observations, Observed};
use engine::plan::{Action, Change};
use engine::state::{ObjectId, Snapshot};
use engine::value::{Attributes, Value};

use super::{Fit, as_seen, moved, sealed_like, shown, stale};
use crate::ApplyError;

/// What is to be made is not there, also as the state will have it once it has taken over what the plan saw:
/// another run may have found since what this plan took for gone.
fn check_absent(change: &Change, after: &Snapshot) -> Result<(), ApplyError> {
    let entry = after.entries.get(&change.address);
    match entry.and_then(|entry| entry.current.as_ref()) {
        Some(object) if change.action == Action::Create => {
            stale(format!("{} exists since then, as {}", change.address, object.id))
        }
        _ => Ok(()),
    }
}

/// What an address has is at the provider that the plan knows it at: an id of another may be anybody's there.
fn check_provider(address: &Address, planned: &Name, now: &Snapshot) -> Result<(), ApplyError> {
    match now.entries.get(address) {
        Some(entry) if entry.provider != *planned => {
            stale(format!("{address} is at provider `{}` since then", entry.provider))
        }
        _ => Ok(()),
    }
}

impl Fit<'_> {
    /// What the plan takes into the state without a call must still be so, and what it deletes
    /// beside an address's own object must still stand there.
    pub(super) fn check_seen(&self) -> Result<(), ApplyError> {
        let mut after = self.snapshot.clone();
        for record in &self.plan.seen {
            if self.plan.is_outdated(record, &after) {
                self.may_leave_out(record)?;
                continue;
            }
            if let Record::Vanished { address, object } = record
                && !self.is_gone(address, object)
            {
                return stale(format!("{address} is not what it was, {object}"));
            }
            if let Record::Adopted { address, provider, .. } = record {
                check_provider(address, provider, &after)?;
            }
            if self.plan.steps.is_empty() {
                self.check_still_so(record)?;
            }
            if let Err(error) = after.fold(record) {
                return stale(format!("the state changed since then: {error}"));
            }
        }
        for change in self.plan.changes.iter().filter(|c| c.action != Action::NoOp) {
            check_provider(&change.address, &change.provider, &after)?;
        }
        for change in self.plan.changes.iter().filter(|c| c.object.is_none()) {
            check_absent(change, &after)?;
        }
        for change in self.plan.changes.iter().filter(|c| c.deposed && c.action != Action::NoOp) {
            let entry = after.entries.get(&change.address);
            let mut beside = entry.iter().flat_map(|entry| &entry.deposed);
            if !beside.any(|object| Some(&object.id) == change.object.as_ref()) {
                return stale(format!("what stood beside {} is gone since then", change.address));
            }
            self.check_beside(change)?;
        }
        Ok(())
    }

    /// What the state has learned of an object since the plan was made stands, and nothing that the
    /// plan does goes by what it saw. A plan that does nothing but look would not do what it showed.
    fn may_leave_out(&self, record: &Record) -> Result<(), ApplyError> {
        match record {
            Record::Seen { address, .. } if self.plan.steps.is_empty() => {
                stale(format!("the state says something else of {address} since then"))
            }
            _ => Ok(()),
        }
    }

    /// What a plan that does nothing but look takes into the state is what is live: that is all it is for.
    /// What the answer leaves out is as it was seen.
    fn check_still_so(&self, record: &Record) -> Result<(), ApplyError> {
        let Record::Seen { address, object, attributes, sensitive, .. } = record else {
            return Ok(());
        };
        let schema = self.plan.change(address).and_then(|change| self.schema(change));
        let Some(schema) = schema else { return Ok(()) };
        let planned = stored_attributes(attributes, &schema).unwrap_or_default();
        let live = match self.observed(address, object) {
            Some(Observed::Live(seen)) => overlay(&planned, seen),
            Some(Observed::Gone) => return stale(format!("{address} is gone since then")),
            None => return Ok(()),
        };
        let live = sealed_like(live, &planned, &self.snapshot.seal_key);
        let moved = moved((Some(&planned), &live), &schema, sensitive);
        if moved.is_empty() {
            return Ok(());
        }
        stale(format!("{address} changed since then: {moved}"))
    }

    /// An object that is deleted beside an address's own is still what it was: somebody may have
    /// come to use it, or have given it another name, which makes it nobody's leftover.
    fn check_beside(&self, change: &Change) -> Result<(), ApplyError> {
        let (Some(schema), Some(id)) = (self.schema(change), &change.object) else { return Ok(()) };
        let known = self.snapshot.entries.get(&change.address).and_then(|entry| entry.object(id));
        let live = match (known, self.observed(&change.address, id)) {
            (Some(object), Some(Observed::Live(seen))) => {
                overlay(&stored_attributes(&object.attributes, &schema).unwrap_or_default(), seen)
            }
            (Some(_), _) => return Ok(()),
            (None, _) => match self.leftover(change, id)? {
                Some(attributes) => attributes,
                None => return Ok(()),
            },
        };
        as_seen(change, &self.sealed_as_planned(change, live), &schema)
    }

    /// What was seen of a leftover; none when it was not, as where it is gone.
    fn leftover(&self, change: &Change, id: &ObjectId) -> Result<Option<Attributes>, ApplyError> {
        let Observations { leftovers, strangers, .. } = self.observations;
        let ty = &change.address.block.ty;
        if let Some(owner) = self.snapshot.owners(&change.provider, ty, id).next() {
            stale(format!(
                "{id}, beside {}, was taken over by {owner} since then",
                change.address
            ))?;
        }
        let is_its_type = |provider: &Name, ty: &Name| {
            *provider == change.provider && *ty == change.address.block.ty
        };
        let mut named = strangers.iter().filter(|((provider, ty, _), _)| is_its_type(provider, ty));
        if let Some(((.., name), _)) = named.find(|(_, ids)| ids.contains(id)) {
            let name = shown(&Value::String(name.clone()));
            stale(format!("{id}, beside {}, is named {name} since then", change.address))?;
        }
        let seen = leftovers.iter().find(|leftover| leftover.id == *id);
        Ok(seen.map(|leftover| leftover.attributes.clone()))
    }
}
