//! Errors about secrets that a plan would have to send and cannot get. The plan reports them before any call
//! is made.
//!
//! The engine judges by a refresh, which mostly reads lists. Some APIs show a secret only when the object
//! itself is read, so the few objects in question are read here. A secret that is still unclear after that is
//! left to the run.

use std::collections::BTreeMap;

use engine::address::{Address, Name};
use engine::diagnostics::Diagnostics;
use engine::plan::{Lack, Missing, Plan, Why};
use engine::value::{Attributes, Value};

use crate::Providers;
use crate::read::read_object;

/// The attributes that reading an object showed; `None` where it could not be read.
type Shown<'p> = BTreeMap<&'p Address, Option<Attributes>>;

/// Returns one error for each attribute that cannot be sent.
pub(crate) async fn unavailable_secrets(plan: &Plan, providers: &Providers) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut shown = Shown::new();
    for missing in plan.lacks.iter().flat_map(|lack| &lack.missing).filter(|it| it.may_show) {
        if !shown.contains_key(&missing.address) {
            let read = read(&missing.address, plan, providers).await;
            shown.insert(&missing.address, read);
        }
    }
    let stays = |lack: &&Lack| lack.missing.iter().any(|missing| !may_be_had(missing, &shown));
    for lack in plan.lacks.iter().filter(stays) {
        found.push(lack.diagnostic());
    }
    found
}

fn may_be_had(missing: &Missing, shown: &Shown<'_>) -> bool {
    let has =
        |object: &Attributes, name: &Name| object.get(name).is_some_and(|it| *it != Value::Null);
    missing.may_show
        && missing.why != Why::Never
        && match shown.get(&missing.address) {
            Some(Some(object)) => has(object, &missing.attribute),
            _ => true,
        }
}

async fn read(address: &Address, plan: &Plan, providers: &Providers) -> Option<Attributes> {
    let change = plan.change(address)?;
    let id = change.object.as_ref()?;
    let provider = providers.get(&change.provider)?;
    Some(read_object(&**provider, &address.block.ty, id).await.ok()?.attributes)
}
