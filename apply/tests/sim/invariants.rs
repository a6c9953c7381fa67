//! The conditions that hold after every run, and those that hold at the end, once no fault occurs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::plan::agree;
use engine::plan::facts::prior::stored_attributes;
use engine::state::{Nonce, ObjectId, Progress, Snapshot};

use crate::api_variant::{Harness, PUBLIC};
use crate::cloud::{Live, lock};
use crate::schedule::{Spec, Wanted};
use crate::simulation::Simulation;

/// Returns the durable state as the next run will see it; None if there is none, or if it cannot be read.
pub(crate) async fn durable(simulation: &Simulation) -> Option<Snapshot> {
    let loaded = match simulation.store.load().await {
        Ok(loaded) => loaded,
        Err(error) => {
            let error = simulation.store.without_path(&error.to_string());
            lock(&simulation.cloud).violation(format!("what is durable cannot be read: {error}"));
            return None;
        }
    };
    let Some(mut snapshot) = loaded.snapshot else {
        // No run has written a first state yet.
        return None;
    };
    for record in &loaded.records {
        if let Err(error) = snapshot.fold(record) {
            lock(&simulation.cloud).violation(format!("what is durable does not fold: {error}"));
            return None;
        }
    }
    Some(snapshot)
}

/// Checks after a run that the durable state names every object that exists because of a run, that it shows
/// no secret, and that it follows from the state before. Also checks that no object of a stranger was
/// touched.
pub(crate) async fn after_run(simulation: &Simulation, number: usize) {
    let snapshot = durable(simulation).await;
    let (mut ids, mut nonces) = (BTreeSet::<ObjectId>::new(), Vec::<Nonce>::new());
    if let Some(snapshot) = &snapshot {
        for entry in snapshot.entries.values() {
            ids.extend(entry.current.iter().chain(&entry.deposed).map(|own| own.id.clone()));
        }
        nonces.extend(snapshot.watched.iter().map(|watched| watched.nonce.clone()));
        let pending = snapshot.pending.values();
        nonces.extend(pending.filter_map(|pending| pending.started.nonce.clone()));
    }
    let shown = simulation.has_secret && simulation.store.shows_a_secret().await;
    let mut cloud = lock(&simulation.cloud);
    if shown {
        cloud.violation(format!("run {number}: a secret stands in the state"));
    }
    if std::mem::take(&mut cloud.was_cut) {
        cloud.let_go(&ids);
    }
    if let Some(snapshot) = &snapshot {
        cloud.take_over_what(snapshot);
    }
    let lost: Vec<String> = cloud
        .objects
        .iter()
        .filter(|(id, live)| {
            let Some((_, nonce)) = &live.owner else { return false };
            !ids.contains(*id) && !nonces.contains(nonce)
        })
        .map(|(id, live)| format!("{id} `{}`", live.name()))
        .collect();
    for lost in lost {
        cloud.violation(format!("run {number}: nothing durable names {lost}"));
    }
    strangers(&mut cloud);
    match &snapshot {
        Some(snapshot) => goes_on(&mut cloud, snapshot),
        None if cloud.last.is_some() => cloud.violation("there is no state any more".to_owned()),
        None => {}
    }
}

/// Checks that a state keeps its lineage for ever, and that its serial and its next call number never go
/// back.
fn goes_on(cloud: &mut crate::cloud::Cloud, now: &Snapshot) {
    let before = cloud.last.replace((now.lineage.clone(), now.serial, now.next_call));
    let Some((lineage, serial, next_call)) = before else { return };
    if lineage != now.lineage || serial > now.serial || next_call > now.next_call {
        cloud.violation(format!("serial {serial} of the state was followed by {}", now.serial));
    }
}

/// Checks that the objects of strangers are as they were when they were made.
fn strangers(cloud: &mut crate::cloud::Cloud) {
    let now: BTreeMap<_, _> = cloud
        .objects
        .iter()
        .filter(|(_, live)| live.owner.is_none())
        .map(|(id, live)| (id.clone(), live.clone()))
        .collect();
    if now != cloud.strangers {
        cloud.violation("a stranger's object was touched".to_owned());
    }
}

/// Checks that state, spec and cloud agree, object by object.
pub(crate) async fn whole(simulation: &Simulation, spec: &Spec) {
    let Some(snapshot) = durable(simulation).await else { return };
    let mut cloud = lock(&simulation.cloud);
    let harness = cloud.harness;
    let schema = harness.schema();
    strangers(&mut cloud);
    let ours: BTreeMap<ObjectId, Arc<Live>> = cloud
        .objects
        .iter()
        .filter(|(_, live)| live.owner.is_some())
        .map(|(id, live)| (id.clone(), live.clone()))
        .collect();
    let mut found = Vec::new();
    if let Some(pending) = snapshot.pending.values().next() {
        found.push(format!("{} is still in doubt", pending.started.address));
    }
    let mut ids: BTreeMap<String, ObjectId> = BTreeMap::new();
    for (address, entry) in &snapshot.entries {
        if !entry.deposed.is_empty() {
            found.push(format!("{address} still has deposed objects"));
        }
        let Some(current) = &entry.current else { continue };
        if current.progress != Progress::Ready {
            found.push(format!("{address} is not ready: {:?}", current.progress));
        }
        ids.insert(address.to_string(), current.id.clone());
        let live = ours.get(&current.id);
        if harness == Harness::Port && *address.block.ty == *"disk" && cloud.is_orderly() {
            let left = live.filter(|live| !live.mounted);
            found.extend(left.map(|_| format!("{address} was not mounted")));
        }
        let Some(live) = ours.get(&current.id) else {
            found.push(format!("{address} is {} in the state, which is not live", current.id));
            continue;
        };
        let schema = &schema.types[&address.block.ty];
        let stored = stored_attributes(&current.attributes, schema).unwrap_or_default();
        for (name, value) in &live.attributes {
            let own = stored.get(harness.say(name));
            if !own.is_some_and(|own| agree(value, own, &snapshot.seal_key)) {
                found.push(format!("{address}: `{name}` is not in the state what is live"));
            }
        }
    }
    let wanted = spec.wanted(harness);
    for (address, wanted) in &wanted {
        match ids.get(address).and_then(|id| ours.get(id)) {
            Some(live) => found.extend(differs(address, wanted, live, &ids)),
            None => found.push(format!("{address} is wanted and is not there")),
        }
    }
    for address in ids.keys().filter(|address| !wanted.contains_key(*address)) {
        found.push(format!("{address} is in the state and not wanted"));
    }
    for (id, live) in &ours {
        if !ids.values().any(|own| own == id) {
            found.push(format!("{id} `{}` is an orphan", live.name()));
        }
    }
    for found in found {
        cloud.violation(found);
    }
}

fn differs(
    address: &str,
    wanted: &Wanted,
    live: &Live,
    ids: &BTreeMap<String, ObjectId>,
) -> Option<String> {
    let named = live.name() == wanted.name;
    let texts = wanted.texts.iter().all(|(name, text)| live.text(name) == Some(text));
    let numbers = wanted.numbers.iter().all(|(name, number)| {
        live.number(name).and_then(|own| u64::try_from(own).ok()) == Some(*number)
    });
    let references = wanted
        .references
        .iter()
        .all(|(name, target)| ids.get(target).is_some_and(|id| live.text(name) == Some(&*id.0)));
    // A unit lets go of a disk that the spec no longer names.
    let lets_go = wanted.references.contains_key("disk_id")
        || live.text("disk_id").is_none_or(|id| id.is_empty() || id == PUBLIC);
    (!named || !texts || !numbers || !references || !lets_go)
        .then(|| format!("{address} is not what is wanted: {:?}", live.attributes))
}

/// Checks that neither the cloud nor the state has any object of ours after a destroy.
pub(crate) async fn nothing_left(simulation: &Simulation) {
    let snapshot = durable(simulation).await;
    let mut cloud = lock(&simulation.cloud);
    strangers(&mut cloud);
    let left: Vec<String> = cloud
        .objects
        .iter()
        .filter(|(_, live)| live.owner.is_some())
        .map(|(id, _)| id.to_string())
        .collect();
    if !left.is_empty() {
        cloud.violation(format!("the destroy left {}", left.join(", ")));
    }
    if let Some(address) = snapshot.and_then(|snapshot| snapshot.entries.into_keys().next()) {
        cloud.violation(format!("the destroy left {address} in the state"));
    }
}
