//! `plumb state rm` and `plumb state relocate`.

use std::collections::BTreeSet;

use engine::address::{Address, Name};
use engine::journal::Record;
use engine::state::Snapshot;

use super::{not_there, parse};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::stored_state;

pub(super) fn rm(
    folder: &Folder,
    addresses: &[String],
    output: &Output,
) -> Result<(), CommandError> {
    // An address that is given twice counts once.
    let addresses = addresses.iter().map(|text| parse(text)).collect::<Result<BTreeSet<_>, _>>()?;
    stored_state::edit(folder, "state rm", |snapshot| {
        let mut records = Vec::new();
        for address in &addresses {
            records.extend(forget_records(snapshot, address)?);
        }
        Ok(records)
    })?;
    for address in &addresses {
        let address = render::safe::text(&address.to_string());
        output.talk(&format!("forgot {address}; what it stood for stays where it is\n"));
    }
    Ok(())
}

pub(super) fn relocate(
    folder: &Folder,
    provider: &str,
    output: &Output,
) -> Result<(), CommandError> {
    let mut known = None;
    stored_state::edit(folder, "state relocate", |snapshot| {
        let provider = Name::from(provider);
        known = snapshot.locations.get(&provider).cloned();
        if known.is_none() {
            return Err(not_located(&provider, snapshot));
        }
        Ok(vec![Record::Located { provider, location: None }])
    })?;
    let service = known.map(|known| known.service).unwrap_or_default();
    output.talk(&format!(
        "{provider} acted on {}; the next apply may act on another service or account\n",
        render::safe::text(&service)
    ));
    Ok(())
}

fn not_located(provider: &Name, snapshot: &Snapshot) -> CommandError {
    let known: Vec<_> = snapshot.locations.keys().map(ToString::to_string).collect();
    let shown = render::safe::text(provider);
    let error = CommandError::new(format!(
        "the state does not remember where the provider `{shown}` acted"
    ));
    match known.as_slice() {
        [] => error.help("it remembers no provider, so the next apply may act anywhere"),
        known => error.help(format!("it remembers {}", known.join(", "))),
    }
}

fn forget_records(snapshot: &Snapshot, address: &Address) -> Result<Vec<Record>, CommandError> {
    let Some(entry) = snapshot.entries.get(address) else {
        return Err(not_there(&address.to_string(), snapshot));
    };
    nothing_pending(snapshot, address)?;
    let forgot = |object: &engine::state::Object| Record::Forgot {
        address: address.clone(),
        object: object.id.clone(),
    };
    Ok(entry.current.iter().chain(&entry.deposed).map(forgot).collect())
}

/// Fails if a call about an address is in doubt: an edit of the address would lose the object that the call
/// may have made.
pub(super) fn nothing_pending(snapshot: &Snapshot, address: &Address) -> Result<(), CommandError> {
    if snapshot.pending.values().any(|pending| pending.started.address == *address) {
        return Err(CommandError::new(format!("a call for {address} is in doubt"))
            .status(Status::InDoubt)
            .help("the next `plumb apply` looks it up; `plumb resolve` decides it by hand"));
    }
    Ok(())
}
