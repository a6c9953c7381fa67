//! A saved plan: it is made again from the same inputs, and runs only if the new plan is the same.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::config::Config;
use engine::diagnostics::Diagnostics;
use engine::digest::Fingerprint;
use engine::plan::{Difference, Plan, compare};
use engine::state::Snapshot;

use crate::ApplyError;
use crate::planning::{Request, make, schemas};

/// Makes a saved plan again. Returns the new plan, reduced to what the saved plan does, too.
pub async fn make_again(
    planned: &Plan,
    snapshot: &Snapshot,
    request: &Request<'_>,
) -> Result<(Plan, Diagnostics), ApplyError> {
    if planned.base.lineage != snapshot.lineage {
        return Err(ApplyError::Stale(vec![Difference::State]));
    }
    let (now, found) = make(snapshot, request).await?;
    if found.has_errors() {
        return Err(ApplyError::Unplannable(found));
    }
    match compare(planned, now, request.config, &schemas(request.providers)) {
        Ok(plan) => Ok((plan, found)),
        Err(differences) => Err(ApplyError::Stale(differences)),
    }
}

/// Checks that the sensitive variables have the values with which the plan was made.
pub fn check_secrets(
    expected: &BTreeMap<Name, Fingerprint>,
    config: &Config,
    snapshot: &Snapshot,
) -> Result<(), ApplyError> {
    let differs = |(name, expected): &(&Name, &Fingerprint)| {
        let variable = config.variables.get(*name);
        variable.is_none_or(|variable| {
            Fingerprint::of(&variable.value.value, &snapshot.seal_key) != **expected
        })
    };
    match expected.iter().find(differs) {
        Some((name, _)) => Err(ApplyError::OtherSecret(name.clone())),
        None => Ok(()),
    }
}
