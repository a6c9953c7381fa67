//! Handing objects over from one state to another, under both locks.
//!
//! The other state gets an object before this one lets it go. If the command is killed in between, both
//! states have the object, and the same command finishes the work.

use std::collections::BTreeMap;

use engine::address::{Address, Name};
use engine::journal::Record;
use engine::sorted::Set;
use engine::state::{Entry, LOCAL_SERVICE, Object, Progress, Snapshot};

use crate::ApplyError;
use crate::session::Session;

/// The reason why objects cannot be handed over. Neither state was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandOverError {
    /// A call for the object is in doubt.
    #[error("a call for {0} is in doubt")]
    InDoubt(Address),
    /// The object is not finished, and only the state that made it knows its one-time name.
    #[error("{0} is unfinished: an earlier run created it and did not finish")]
    Unfinished(Address),
    /// The other state has another object at the address.
    #[error("{0} is in the other state already")]
    Taken(Address),
    /// The other state has the object under another address.
    #[error("{0} stands for the same object in the other state")]
    Owned(Address),
    /// The provider acts on the service that belongs to the folder of this state.
    #[error(
        "the provider {provider} acts on the service of this folder, which no other folder has"
    )]
    OwnService {
        /// The provider instance.
        provider: Name,
    },
    /// The provider of the same name acts on another service in the other state.
    #[error("the provider {provider} acts on {here} here, and on {there} there")]
    Elsewhere {
        /// The provider instance.
        provider: Name,
        /// The service of the provider in this state.
        here: String,
        /// The service of the provider in the other state.
        there: String,
    },
}

/// The number of objects that were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// The number of all objects.
    pub objects: usize,
    /// The number of objects of which the state has fingerprints of secrets. Those mean nothing to another
    /// state.
    pub with_secrets: usize,
}

/// The records that hand objects over: those for the other state, and those for this one.
#[derive(Debug, Default)]
struct Records {
    there: Vec<Record>,
    here: Vec<Record>,
    counts: HandedOver,
}

/// Hands objects over. `addresses` maps the address of each object in this state to its address in the other
/// one.
pub async fn hand_over(
    here: &mut Session,
    there: &mut Session,
    addresses: &BTreeMap<Address, Address>,
) -> Result<Result<HandedOver, HandOverError>, ApplyError> {
    let records = match records(here.snapshot(), there.snapshot(), addresses) {
        Ok(records) => records,
        Err(why) => return Ok(Err(why)),
    };
    for record in records.there {
        there.record(record)?;
    }
    there.flush().await?;
    for record in records.here {
        here.record(record)?;
    }
    here.flush().await?;
    Ok(Ok(records.counts))
}

fn records(
    here: &Snapshot,
    there: &Snapshot,
    addresses: &BTreeMap<Address, Address>,
) -> Result<Records, HandOverError> {
    let mut records = Records::default();
    for (from, to) in addresses {
        let Some(entry) = here.entries.get(from) else { continue };
        check(here, there, (from, to), entry)?;
        let is_known = |object: &Object| {
            there.entries.get(to).is_some_and(|entry| entry.object(&object.id).is_some())
        };
        let dependencies: Set<Address> =
            entry.dependencies.iter().filter_map(|on| addresses.get(on)).cloned().collect();
        for (object, deposed) in objects(entry) {
            if !is_known(object) {
                records.there.push(Record::Adopted {
                    address: to.clone(),
                    provider: entry.provider.clone(),
                    object: foreign(object),
                    dependencies: dependencies.clone(),
                    deposed,
                });
            }
            let (address, object_id) = (from.clone(), object.id.clone());
            records.here.push(Record::Forgot { address, object: object_id });
            records.counts.objects += 1;
            let has_secrets = !object.attributes.sealed.is_empty();
            records.counts.with_secrets += usize::from(has_secrets);
        }
    }
    Ok(records)
}

/// Returns the objects of an entry, each with true if a replace has put it aside.
fn objects(entry: &Entry) -> impl Iterator<Item = (&Object, bool)> {
    let current = entry.current.iter().map(|object| (object, false));
    current.chain(entry.deposed.iter().map(|object| (object, true)))
}

/// Returns an object as another state can have it: without the fingerprints that were made with this state's
/// key.
fn foreign(object: &Object) -> Object {
    let (made_with, input_fingerprints) = (BTreeMap::new(), BTreeMap::new());
    Object { made_with, input_fingerprints, ..object.clone() }
}

fn check(
    here: &Snapshot,
    there: &Snapshot,
    (from, to): (&Address, &Address),
    entry: &Entry,
) -> Result<(), HandOverError> {
    let is_called = |snapshot: &Snapshot, address: &Address| {
        snapshot.pending.values().any(|pending| pending.started.address == *address)
    };
    if is_called(here, from) {
        return Err(HandOverError::InDoubt(from.clone()));
    }
    if is_called(there, to) {
        return Err(HandOverError::InDoubt(to.clone()));
    }
    if objects(entry).any(|(object, _)| matches!(object.progress, Progress::Created { .. })) {
        return Err(HandOverError::Unfinished(from.clone()));
    }
    let known = there.entries.get(to);
    let is_same = |known: &Entry| {
        known.provider == entry.provider
            && objects(known).all(|(object, _)| entry.object(&object.id).is_some())
    };
    if !known.is_none_or(is_same) {
        return Err(HandOverError::Taken(to.clone()));
    }
    let ty = &from.block.ty;
    for (object, _) in objects(entry) {
        let mut owners = there.owners(&entry.provider, ty, &object.id);
        if let Some(owner) = owners.find(|owner| *owner != to) {
            return Err(HandOverError::Owned(owner.clone()));
        }
    }
    same_service(here, there, &entry.provider)
}

fn same_service(here: &Snapshot, there: &Snapshot, provider: &Name) -> Result<(), HandOverError> {
    let service = |snapshot: &Snapshot| {
        snapshot.locations.get(provider).map(|location| location.service.clone())
    };
    match (service(here), service(there)) {
        // Each folder has one of its own.
        (Some(local), _) if local == LOCAL_SERVICE => {
            Err(HandOverError::OwnService { provider: provider.clone() })
        }
        (Some(here), Some(there)) if here != there => {
            Err(HandOverError::Elsewhere { provider: provider.clone(), here, there })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use engine::digest::SealKey;
    use engine::state::{Location, ObjectId};
    use engine::stored::Stored;

    use super::*;

    fn snapshot(addresses: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::new("lineage".to_owned(), SealKey::from_random([7; 32]));
        for (number, address) in addresses.iter().enumerate() {
            let object = Object {
                id: ObjectId(format!("d-{number}").into()),
                progress: Progress::Ready,
                attributes: Stored::default(),
                managed: Set::new(),
                sensitive: engine::value::Paths::none(),
                delete_sent_ms: None,
                made_with: BTreeMap::new(),
                input_fingerprints: BTreeMap::new(),
            };
            let entry = Entry { current: Some(object), ..Entry::without_object("cloud".into()) };
            snapshot.entries.insert(address.parse().unwrap(), entry);
        }
        snapshot
    }

    /// The result of handing `disk.a` over as `disk.b`.
    fn handed(here: &mut Snapshot, there: &mut Snapshot) -> Result<HandedOver, HandOverError> {
        let pair = ("disk.a".parse().unwrap(), "disk.b".parse().unwrap());
        let records = records(here, there, &BTreeMap::from([pair]))?;
        records.there.iter().for_each(|record| there.fold(record).unwrap());
        records.here.iter().for_each(|record| here.fold(record).unwrap());
        Ok(records.counts)
    }

    #[test]
    fn an_object_changes_hands_once() {
        let (mut here, mut there) = (snapshot(&["disk.a"]), snapshot(&[]));
        // Killed after the first half: both have it, and the next run ends that.
        let before = here.clone();
        assert_eq!(handed(&mut here, &mut there).unwrap().objects, 1);
        here = before;
        assert_eq!(handed(&mut here, &mut there).unwrap().objects, 1);
        assert!(here.entries.is_empty() && there.entries.len() == 1);
    }

    #[test]
    fn nothing_is_handed_over_where_it_would_be_lost() {
        let mut here = snapshot(&["disk.a"]);
        let taken = handed(&mut here, &mut snapshot(&["disk.x", "disk.b"])).unwrap_err();
        assert_eq!(taken.to_string(), "disk.b is in the other state already");
        let owned = handed(&mut here, &mut snapshot(&["disk.x"])).unwrap_err();
        assert_eq!(owned.to_string(), "disk.x stands for the same object in the other state");
        let location = |service: &str| Location { service: service.to_owned(), account: None };
        here.locations.insert("cloud".into(), location("a.example"));
        let mut there = snapshot(&[]);
        there.locations.insert("cloud".into(), location("b.example"));
        assert!(handed(&mut here, &mut there).is_err());
        here.locations.insert("cloud".into(), location(LOCAL_SERVICE));
        assert!(handed(&mut here, &mut snapshot(&[])).is_err());
        assert_eq!(here.entries.len(), 1);
    }
}
