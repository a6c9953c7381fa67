//! `import`: takes one existing object over into the state, without calls that change the object.
//!
//! The planner decides if the import may be done. It plans the import like an `[[import]]` block, for this
//! address alone; of that plan, only the record that takes the object over is kept.

use std::collections::BTreeMap;

use engine::address::Address;
use engine::diagnostics::Diagnostics;
use engine::state::ObjectId;

use crate::ApplyError;
use crate::adopt;
use crate::planning::Request;
use crate::session::Session;

/// Takes an object over as `address`. Records nothing if the diagnostics have errors.
pub async fn import(
    session: &mut Session,
    request: &Request<'_>,
    address: &Address,
    id: &ObjectId,
) -> Result<Diagnostics, ApplyError> {
    let imports = BTreeMap::from([(address.clone(), id.clone())]);
    let (plan, found) = adopt::plan(session.snapshot(), request, &imports).await?;
    if !found.has_errors() {
        adopt::take_over(session, &plan, &imports).await?;
    }
    Ok(found)
}
