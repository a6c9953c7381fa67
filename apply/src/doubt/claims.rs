//! Claims of creates in doubt on objects: several may have found one, or an address may stand for it.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::journal::{CallId, Record, Resolution, Started};
use engine::state::{ObjectId, Snapshot};

/// Gives an object that more than one create found to the first of them, and returns the others, which made
/// nothing: they were looked for by a name that others may give, too. If the spec wants the object elsewhere,
/// the plan moves on from there.
pub(crate) fn later_claims(snapshot: &Snapshot, records: &[Record]) -> BTreeSet<CallId> {
    let mut claimed = BTreeSet::new();
    let mut later = BTreeSet::new();
    for record in records {
        let Record::Resolved { call, resolution: Resolution::Found { object } } = record else {
            continue;
        };
        let Some(started) = started_of(snapshot, record) else { continue };
        let own = (&started.provider, &started.address.block.ty, &object.id);
        if started.makes_its_object() && !claimed.insert(own) {
            later.insert(*call);
        }
    }
    later
}

/// Leaves out the creates whose object another address stands for and goes on to: what they made
/// cannot be told while that address stands for it.
pub(crate) fn leave_out_claimed(snapshot: &Snapshot, records: &mut Vec<Record>) {
    // What goes makes room for what is found, so it comes first; else the order does not matter.
    records.sort_by_key(|record| !is_gone(record));
    let gone: BTreeSet<(&Address, &ObjectId)> =
        records.iter().filter_map(|record| gone_by(snapshot, record)).collect();
    let is_free = |record: &Record| {
        let Record::Resolved { resolution: Resolution::Found { object }, .. } = record else {
            return true;
        };
        let Some(started) = started_of(snapshot, record) else { return true };
        let ty = &started.address.block.ty;
        let mut owners = snapshot.owners(&started.provider, ty, &object.id);
        started.object.is_some() || owners.all(|owner| gone.contains(&(owner, &object.id)))
    };
    let is_kept: Vec<bool> = records.iter().map(is_free).collect();
    let mut is_kept = is_kept.into_iter();
    records.retain(|_| is_kept.next().unwrap_or(true));
}

/// The object that is gone by a record.
fn gone_by<'a>(snapshot: &'a Snapshot, record: &'a Record) -> Option<(&'a Address, &'a ObjectId)> {
    match record {
        Record::Vanished { address, object } => Some((address, object)),
        _ if is_gone(record) => {
            let started = started_of(snapshot, record)?;
            Some((&started.address, started.object.as_ref()?))
        }
        _ => None,
    }
}

fn is_gone(record: &Record) -> bool {
    matches!(
        record,
        Record::Resolved { resolution: Resolution::Gone, .. } | Record::Vanished { .. }
    )
}

fn started_of<'a>(snapshot: &'a Snapshot, record: &Record) -> Option<&'a Started> {
    let Record::Resolved { call, .. } = record else { return None };
    snapshot.pending.get(call).map(|pending| &pending.started)
}
