//! Whether others have come to use what a saved plan ends, or to bear a name that it gives.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::plan::{Change, bearers, taken, users};
use engine::state::ObjectId;

use super::{Fit, imports, stale};
use crate::ApplyError;

impl Fit<'_> {
    /// Nobody has come to bear a name that the plan gives to an object. Where it is nobody of the state, most likely
    /// it is the object itself: made by this plan, from a copy of the folder that has its own state.
    pub(super) fn check_names(&self) -> Result<(), ApplyError> {
        let known = &self.plan.base.bearers;
        for (to, bearers) in bearers(self.plan, &|change| self.schema(change), self.snapshot) {
            let is_new = |by: &Address| known.get(&to).is_none_or(|known| !known.contains(by));
            if let Some((by, name)) = bearers.iter().find(|(by, _)| is_new(by)) {
                let what = format!("{by} has taken the name {name}, which the plan gives to {to}");
                return stale(what);
            }
        }
        if self.observations.strangers.is_empty() {
            return Ok(());
        }
        let imported: BTreeSet<_> = imports(self.plan)
            .map(|(address, provider, id)| (provider, &address.block.ty, id))
            .collect();
        for change in &self.plan.changes {
            let Some(schema) = self.schema(change) else { continue };
            let Some(taken) = taken(change, &schema, self.observations) else { continue };
            let Change { address, provider, .. } = change;
            let known = self.plan.base.namesakes.get(address);
            let is_new = |id: &&ObjectId| {
                !known.is_some_and(|known| known.contains(*id))
                    && !imported.contains(&(provider, &address.block.ty, *id))
            };
            if let Some(object) = taken.bearers.iter().find(is_new) {
                return Err(ApplyError::Twin {
                    address: Box::new(address.clone()),
                    name: taken.name.to_owned(),
                    object: object.clone(),
                });
            }
        }
        Ok(())
    }

    /// Nobody has come to use what the plan ends: there might be nothing that keeps the API from ending it.
    pub(super) fn check_users(&self) -> Result<(), ApplyError> {
        let known = &self.plan.base.users;
        for (used, users) in users(self.plan, self.snapshot) {
            let is_new = |user: &&_| known.get(&used).is_none_or(|known| !known.contains(*user));
            if let Some(user) = users.iter().find(is_new) {
                return stale(format!("{user} uses {used} since then"));
            }
        }
        Ok(())
    }
}
