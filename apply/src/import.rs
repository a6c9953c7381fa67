//! `import`: takes one object that exists over into the state, and calls nothing that changes it.
//!
//! The planner says whether that may be: the import is planned as an `[[import]]` block is,
//! for its address alone, and only the record that takes the object over is kept of the plan.

use std::collections::BTreeMap;

use engine::address::Address;
use engine::config::{Config, ImportConfig};
use engine::diagnostics::Diagnostics;
use engine::journal::Record;
use engine::plan::input::{Options, Target};
use engine::state::ObjectId;

use crate::ApplyError;
use crate::planning::{Request, make};
use crate::session::Session;

/// Takes an object over as `address`. With errors among the diagnostics nothing was recorded.
pub async fn import(
    session: &mut Session,
    request: &Request<'_>,
    address: &Address,
    id: &ObjectId,
) -> Result<Diagnostics, ApplyError> {
    let import = ImportConfig { id: id.clone(), span: None };
    let config =
        Config { imports: BTreeMap::from([(address.clone(), import)]), ..request.config.clone() };
    let options =
        Options { targets: vec![Target::Instance(address.clone())], ..Options::default() };
    let request = Request { config: &config, options: &options, refresh: true, ..*request };
    // A block that did its work does nothing more. Who asks for it again by id means it.
    let mut snapshot = session.snapshot().clone();
    snapshot.taken_over.remove(address);
    let (plan, mut found) = make(&snapshot, &request).await?;
    if found.has_errors() {
        return Ok(found);
    }
    let taken = plan.seen.into_iter().find(
        |record| matches!(record, Record::Adopted { address: to, deposed: false, .. } if to == address),
    );
    match taken {
        Some(record) => {
            session.record(record)?;
            session.flush().await?;
        }
        None => found.push(engine::diagnostics::Diagnostic::error(format!(
            "{address} cannot be taken over now: it is in the state, disabled, or in doubt"
        ))),
    }
    Ok(found)
}
