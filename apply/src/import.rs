//! `import`: takes one object that exists over into the state, and calls nothing that changes it.
//!
//! The planner says whether that may be: the import is planned as an `[[import]]` block is,
//! for its address alone, and only the record that takes the object over is kept of the plan.

use std::collections::BTreeMap;

use engine::address::Address;
use engine::diagnostics::Diagnostics;
use engine::state::ObjectId;

use crate::ApplyError;
use crate::adopt;
use crate::planning::Request;
use crate::session::Session;

/// Takes an object over as `address`. With errors among the diagnostics nothing was recorded.
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
