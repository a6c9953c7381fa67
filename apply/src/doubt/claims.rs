//! Claims of creates in doubt on objects. Several creates may have found the same object, or an address may
//! stand for it already.

use std::collections::BTreeSet;

use engine::address::Address;
use engine::journal::{CallId, Record, Resolution, Started};
use engine::state::{ObjectId, Snapshot};

/// Returns the creates that found an object which an earlier create of the list found, too. The object
/// belongs to the first create, and the others made nothing: their look-up went by a name that several
/// objects may be given. If the spec wants the object at another address, the plan goes on from there.
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

/// Removes the creates that found an object which another address stands for and keeps. As long as it does,
/// nobody can tell what those creates made.
pub(crate) fn leave_out_claimed(snapshot: &Snapshot, records: &mut Vec<Record>) {
    // A record that an object is gone frees the object for a record that finds it, so it comes first. The
    // order of the others does not matter.
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

/// Returns the object that is gone according to a record.
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
