//! Objects of strangers that a spec takes over: the objects on offer, the imports that ask for them, and the
//! moment from which they are ours.
//!
//! The planner decides whether an object may be taken over. This file states only what must hold: no object
//! is taken over that nobody asked for, an object that is taken over is ours from its durable record on, and
//! a plan is refused for an import only if a person would agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use engine::journal::Record;
use engine::state::{Nonce, ObjectId, Snapshot};
use engine::value::{Attributes, Value};

use crate::api_variant::Harness;
use crate::cloud::{Cloud, Live, Objects};
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec};

/// A resource of a spec: its type and its key.
pub(crate) type Place = (&'static str, u8);

const TYPES: [&str; 3] = ["disk", "image", "unit"];

/// An object that a stranger makes, and that a spec may take over.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) ty: &'static str,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The zone of a disk or the kind of an image; empty for a unit.
    pub(crate) text: &'static str,
    /// The size of a disk or the workers of a unit; 0 for an image.
    pub(crate) number: u64,
}

impl Offer {
    /// Draws an offer that mostly fits what the spec wants.
    fn draw(rng: &mut Rng, (ty, key): Place, id: &str, spec: &Spec) -> Self {
        let other = rng.per_mille(150);
        let (name, text, number) = match ty {
            "disk" => spec.disks.get(&key).map_or(("d", "eu", 10), |disk| {
                let smaller = disk.size - rng.below(2) * rng.below(disk.size);
                (&disk.name, if other { "us" } else { disk.zone }, smaller)
            }),
            "image" => spec.images.get(&key).map_or(("i", "thin", 0), |image| {
                (&image.name, if other { "odd" } else { image.kind }, 0)
            }),
            _ => spec.units.get(&key).map_or(("u", "", 1), |unit| (&unit.name, "", unit.workers)),
        };
        // Two images cannot have the same name.
        let own = ty == "image" || rng.per_mille(300);
        let name = if own { format!("{ty}-of-a-stranger-{id}") } else { name.to_owned() };
        Self { ty, id: id.to_owned(), name, text, number }
    }

    fn live(&self, harness: Harness) -> Live {
        let mut attributes = Attributes::new();
        attributes.insert("id".into(), Value::string(&*self.id));
        attributes.insert("name".into(), Value::string(&*self.name));
        let number = Value::Integer(i64::try_from(self.number).unwrap());
        let text = Value::string(harness.say(self.text));
        match self.ty {
            "disk" => attributes.extend([("size".into(), number), ("zone".into(), text)]),
            "image" => attributes.extend([("kind".into(), text)]),
            _ => attributes.extend([("workers".into(), number)]),
        }
        Live { ty: self.ty.into(), attributes, owner: None, mounted: true }
    }
}

/// Gives imports to some of the schedules, from a random stream of its own, so that the other draws of a seed
/// stay the same.
pub(crate) fn draw(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0x1490).next());
    if !rng.per_mille(150) {
        return;
    }
    let mut imports: BTreeMap<Place, String> = BTreeMap::new();
    let mut offered = BTreeSet::new();
    let mut before = Spec::default();
    // Plumb asks a person if more than three objects are gone at once.
    let mut withdrawals_left = 2;
    for run in runs {
        if rng.per_mille(250) {
            imports.pop_first();
        }
        for _ in 0..rng.below(3) {
            let place = place(&mut rng, &before, &run.spec);
            // Mostly the id of an offered object. Sometimes an id that the object of a run may have,
            // whichever address it belongs to, or an id without an object.
            let id = match rng.below(8) {
                0 => format!("{}-000{}", place.0, rng.between(1, 4)),
                1 => format!("{}-nowhere", place.0),
                n => format!("{}-offer{}", place.0, n % 2),
            };
            if id.contains("offer") && offered.insert(id.clone()) {
                run.offers.push(Offer::draw(&mut rng, place, &id, &run.spec));
            }
            imports.retain(|_, own| *own != id);
            imports.insert(place, id);
        }
        run.spec.imports.clone_from(&imports);
        run.by_command = rng.per_mille(250);
        let withdraws = rng.per_mille(150).then(|| rng.below(8_000));
        run.withdraws = withdraws.filter(|_| withdrawals_left > 0);
        withdrawals_left -= usize::from(run.withdraws.is_some());
        before.clone_from(&run.spec);
    }
}

/// Draws the resource that an import is for: mostly a new one, if there is one.
fn place(rng: &mut Rng, before: &Spec, spec: &Spec) -> Place {
    let new: Vec<Place> = places(spec).filter(|place| !has(before, *place)).collect();
    let all: Vec<Place> = places(spec).collect();
    match (new.is_empty(), all.is_empty()) {
        (false, _) if rng.per_mille(800) => *rng.pick(&new),
        (_, false) => *rng.pick(&all),
        _ => (TYPES[rng.index(3)], u8::try_from(rng.below(4)).unwrap()),
    }
}

fn places(spec: &Spec) -> impl Iterator<Item = Place> {
    TYPES.into_iter().flat_map(|ty| (0..4).map(move |key| (ty, key))).filter(|p| has(spec, *p))
}

fn has(spec: &Spec, (ty, key): Place) -> bool {
    match ty {
        "disk" => spec.disks.contains_key(&key),
        "image" => spec.images.contains_key(&key),
        _ => spec.units.contains_key(&key),
    }
}

impl Spec {
    /// Returns the objects to take over, by address. Imports without a resource are left out.
    pub(crate) fn imported(&self, harness: Harness) -> BTreeMap<String, ObjectId> {
        let own = self.imports.iter().filter(|(place, _)| has(self, **place));
        own.map(|((ty, key), id)| {
            let address = format!("{}.{}{key}", harness.say(ty), &ty[..1]);
            (address, ObjectId(id.as_str().into()))
        })
        .collect()
    }

    /// Writes the import blocks of the spec.
    pub(crate) fn import_blocks(&self, harness: Harness, out: &mut String) {
        for (address, id) in self.imported(harness) {
            writeln!(out, "[[import]]\nto = '{address}'\nid = '{id}'").unwrap();
        }
    }
}

/// Returns the nonce that stands for the missing one-time name of an object that was taken over. No name
/// contains it.
fn none() -> Nonce {
    Nonce("taken over".into())
}

fn is_taken_over(live: &Live) -> bool {
    live.owner.as_ref().is_some_and(|(_, nonce)| *nonce == none())
}

impl Cloud {
    /// Makes an object of a stranger that is on offer.
    pub(crate) fn offer(&mut self, offer: &Offer) {
        let id = ObjectId(offer.id.as_str().into());
        self.note(format_args!("a stranger offers {id} `{}`", offer.name));
        self.count("offers");
        let live = Arc::new(offer.live(self.harness));
        self.strangers.insert(id.clone(), live.clone());
        self.edit(|objects| drop(objects.insert(id, live)));
    }

    /// Deletes an offered object, as a stranger does, whoever has the object by now.
    pub(crate) fn withdraw(&mut self) {
        let offered = self.objects.keys().find(|id| id.0.contains("offer")).cloned();
        let Some(id) = offered else { return };
        self.note(format_args!("a stranger deletes {id}"));
        self.count("withdrawn offers");
        self.disorder(id.clone());
        self.strangers.remove(&id);
        self.taken_away.insert(id.clone());
        self.edit(|objects| drop(objects.remove(&id)));
    }

    /// Notes that a spec asks for these imports.
    pub(crate) fn ask_for(&mut self, imported: BTreeMap<String, ObjectId>) {
        self.asked_for.extend(imported);
    }

    /// Notes durable records that take objects over: these objects are ours from now on.
    pub(crate) fn adopted(&mut self, run: usize, records: &[Record]) {
        for record in records {
            if let Record::Adopted { address, object, deposed: false, .. } = record {
                self.take_over(&format!("r{run}"), &address.to_string(), &object.id);
            }
        }
    }

    /// Notes that all objects that a state names are ours. An object that no spec asked for is a violation.
    pub(crate) fn take_over_what(&mut self, snapshot: &Snapshot) {
        if self.asked_for.is_empty() {
            return;
        }
        for (address, entry) in &snapshot.entries {
            for object in entry.current.iter().chain(&entry.deposed) {
                self.take_over("the state", &address.to_string(), &object.id);
            }
        }
    }

    fn take_over(&mut self, who: &str, address: &str, id: &ObjectId) {
        let Some(live) = self.objects.get(id) else { return };
        let known = live.owner.clone();
        if known.as_ref().is_some_and(|(own, _)| own == address) {
            return;
        }
        if !self.asked_for.contains(&(address.to_owned(), id.clone())) {
            self.violation(format!("{who}: {id} is no {address}, and nobody asked for it"));
            return;
        }
        self.count("imports");
        self.note(format_args!("  {id} is {address} now"));
        self.strangers.remove(id);
        let nonce = known.map_or_else(none, |(_, nonce)| nonce);
        let live = Arc::make_mut(self.objects.get_mut(id).unwrap());
        live.owner = Some((address.to_owned(), nonce));
    }

    /// Gives objects that were taken over back to strangers, if a power cut took them out of the state.
    /// `named` are the objects that the state still names.
    pub(crate) fn let_go(&mut self, named: &BTreeSet<ObjectId>) {
        let lost =
            |(id, live): &(&ObjectId, &Arc<Live>)| is_taken_over(live) && !named.contains(*id);
        let lost: Vec<ObjectId> =
            self.objects.iter().filter(lost).map(|(id, _)| id.clone()).collect();
        for id in lost {
            let live = self.objects.get_mut(&id).unwrap();
            Arc::make_mut(live).owner = None;
            self.strangers.insert(id, live.clone());
        }
    }
}

/// Returns the ids of the imports that a person would take out of a spec after a plan was refused for them.
pub(crate) fn hopeless(
    spec: &Spec,
    harness: Harness,
    objects: &Objects,
    state: Option<&Snapshot>,
) -> Vec<String> {
    let wanted = spec.wanted(harness);
    let is_hopeless = |(address, id): &(&String, &ObjectId)| {
        let Some(live) = objects.get(id) else { return true };
        let other = &wanted[*address];
        let replaces = other.texts.iter().any(|(name, text)| live.text(name) != Some(text));
        let shrinks =
            live.number("size").is_some_and(|size| size > other.numbers["size"].cast_signed());
        let held = state.into_iter().flat_map(|state| &state.entries).any(|(own, entry)| {
            let taken = entry.object(id).is_some();
            taken && own.to_string() != **address
        });
        // An object that a run made and that no address has is about to be deleted.
        let leftover = live.owner.is_some() && !is_taken_over(live);
        replaces || shrinks || held || leftover
    };
    let imported = spec.imported(harness);
    imported.iter().filter(is_hopeless).map(|(_, id)| id.to_string()).collect()
}
