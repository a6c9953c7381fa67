//! `plumb state mv`, `plumb state rm` and `plumb state relocate`.

use std::collections::BTreeSet;

use engine::address::{Address, Name};
use engine::journal::Record;
use engine::state::Snapshot;

use super::{not_there, parse};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::stored_state;

pub(super) fn mv(
    folder: &Folder,
    from: &str,
    to: &str,
    output: &Output,
) -> Result<(), CommandError> {
    let (from, to) = (parse(from)?, parse(to)?);
    stored_state::edit(folder, "state mv", |snapshot| move_records(snapshot, &from, &to))?;
    let shown = |address: &Address| render::safe::text(&address.to_string());
    output.talk(&format!("moved {} to {}\n", shown(&from), shown(&to)));
    Ok(())
}

fn move_records(
    snapshot: &Snapshot,
    from: &Address,
    to: &Address,
) -> Result<Vec<Record>, CommandError> {
    if !snapshot.entries.contains_key(from) {
        return Err(not_there(&from.to_string(), snapshot));
    }
    if from.block.ty != to.block.ty {
        return Err(CommandError::new(format!(
            "an object of type {} cannot become one of type {}",
            from.block.ty, to.block.ty
        )));
    }
    if snapshot.entries.contains_key(to) {
        return Err(CommandError::new(format!("{to} is in the state already")));
    }
    nothing_pending(snapshot, from)?;
    nothing_pending(snapshot, to)?;
    Ok(vec![Record::Moved { from: from.clone(), to: to.clone() }])
}

pub(super) fn rm(
    folder: &Folder,
    addresses: &[String],
    output: &Output,
) -> Result<(), CommandError> {
    // One that is named twice goes once.
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

/// A call in doubt belongs to an address: who edits that address would lose what the call made.
fn nothing_pending(snapshot: &Snapshot, address: &Address) -> Result<(), CommandError> {
    if snapshot.pending.values().any(|pending| pending.started.address == *address) {
        return Err(CommandError::new(format!("a call for {address} is in doubt"))
            .status(Status::InDoubt)
            .help("the next `plumb apply` looks it up; `plumb resolve` decides it by hand"));
    }
    Ok(())
}
