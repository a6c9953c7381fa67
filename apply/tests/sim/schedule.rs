//! The course of one simulation as data: specs, runs, and the faults of each run.
//!
//! All of it is drawn from a seed before anything runs, so that shrinking can take parts away.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::api_variant::Harness;
use crate::faults::Rates;
use crate::imports::{self, Offer, Place};
use crate::keys::{self, Keys};
use crate::rare_faults;
use crate::rng::Rng;
use crate::secrets;
use crate::tickets::{self, Tickets};

/// A spec in the types of the simulated cloud: disks, images, units, keys and tickets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spec {
    pub(crate) disks: BTreeMap<u8, Disk>,
    pub(crate) images: BTreeMap<u8, Image>,
    pub(crate) units: BTreeMap<u8, Unit>,
    /// The keys of two blocks with `for_each`. Each key makes a disk, and a unit that uses it.
    pub(crate) fleet: Vec<&'static str>,
    pub(crate) fleet_workers: u64,
    /// The imports of the spec: for each resource the id of the object that it takes over.
    pub(crate) imports: BTreeMap<Place, String>,
    /// The objects that their own unique names identify.
    pub(crate) keys: Keys,
    /// The objects whose ids the spec chooses.
    pub(crate) tickets: Tickets,
    /// The number of the secret that all units have; None if they have no secret.
    pub(crate) secret: Option<u64>,
    /// True if the id of each unit is an output.
    pub(crate) outputs: bool,
    /// True if a unit that uses none of our disks leaves the attribute out. Otherwise the attribute names the
    /// public volume (at the wire only).
    pub(crate) leaves_out: bool,
    /// The order of replacing a disk: with `create_before_destroy` the new disk is made before the old one is
    /// deleted. Two disks may have one name.
    pub(crate) disks_first: First,
    /// The largest size of a disk so far. A disk that comes back gets this size: the old one may still be
    /// there, and cannot shrink.
    pub(crate) largest: u64,
}

/// The use of `create_before_destroy` for disks. Their type deletes the old object first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum First {
    /// Used in no run so far.
    #[default]
    Never,
    /// Used in an earlier run, but not in this one. The objects that the earlier run deposed may still be
    /// there.
    Before,
    /// Used in this run.
    Now,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) zone: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) disk: Option<u8>,
    pub(crate) image: Option<u8>,
    pub(crate) workers: u64,
}

/// An object as a spec wants it. A reference is given as the address of the object that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) texts: BTreeMap<&'static str, String>,
    pub(crate) numbers: BTreeMap<&'static str, u64>,
    pub(crate) references: BTreeMap<&'static str, String>,
}

pub(crate) const HOUR_MS: u64 = 60 * 60 * 1_000;

const ZONES: [&str; 2] = ["eu", "us"];
const KINDS: [&str; 3] = ["thin", "full", "odd"];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

impl Spec {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut spec = Self { fleet_workers: rng.below(4), ..Self::default() };
        for _ in 0..rng.between(1, 6) {
            spec.grow(rng);
        }
        if rng.per_mille(300) {
            spec.fleet = KEYS[..=rng.index(3)].to_vec();
        }
        spec
    }

    fn grow(&mut self, rng: &mut Rng) {
        let key = u8::try_from(rng.below(4)).unwrap();
        match rng.below(3) {
            0 => {
                let (size, zone) = (self.largest.max(10), ZONES[rng.index(ZONES.len())]);
                let disk = Disk { name: format!("d{key}"), size, zone };
                self.disks.entry(key).or_insert(disk);
            }
            1 => {
                let image = Image { name: format!("i{key}"), kind: KINDS[rng.index(KINDS.len())] };
                self.images.entry(key).or_insert(image);
            }
            _ => {
                let (disk, image) = (self.some_disk(rng), self.some_image(rng));
                let workers = rng.below(4);
                let unit = Unit { name: format!("unit{key}"), disk, image, workers };
                self.units.entry(key).or_insert(unit);
            }
        }
    }

    fn some_disk(&self, rng: &mut Rng) -> Option<u8> {
        let keys: Vec<u8> = self.disks.keys().copied().collect();
        (!keys.is_empty() && rng.per_mille(800)).then(|| *rng.pick(&keys))
    }

    fn some_image(&self, rng: &mut Rng) -> Option<u8> {
        let keys: Vec<u8> = self.images.keys().copied().collect();
        (!keys.is_empty() && rng.per_mille(500)).then(|| *rng.pick(&keys))
    }

    /// Makes one change that a person may make to a spec between two runs.
    fn change(&mut self, rng: &mut Rng) {
        match rng.below(8) {
            0 => self.grow(rng),
            1 => self.remove(rng),
            2 => self.rename(rng),
            3 => {
                for unit in self.units.values_mut() {
                    unit.workers = rng.below(5);
                }
            }
            4 => {
                if let Some(disk) = self.disks.values_mut().next_back() {
                    disk.size += rng.between(1, 20);
                    self.largest = self.largest.max(disk.size);
                }
            }
            5 => {
                if let Some(disk) = self.disks.values_mut().next() {
                    disk.zone = ZONES[rng.index(ZONES.len())];
                }
                if let Some(image) = self.images.values_mut().next() {
                    image.kind = KINDS[rng.index(KINDS.len())];
                }
            }
            6 => {
                let (disk, image) = (self.some_disk(rng), self.some_image(rng));
                if let Some(unit) = self.units.values_mut().next() {
                    (unit.disk, unit.image) = (disk, image);
                }
            }
            _ => {
                let key = *rng.pick(&KEYS);
                if self.fleet.contains(&key) {
                    self.fleet.retain(|own| *own != key);
                } else {
                    self.fleet.push(key);
                    self.fleet.sort_unstable();
                }
            }
        }
    }

    fn rename(&mut self, rng: &mut Rng) {
        let suffix = rng.below(100);
        match rng.below(3) {
            0 => {
                if let Some(disk) = self.disks.values_mut().next() {
                    disk.name = format!("d-{suffix}");
                }
            }
            1 => {
                if let Some((key, image)) = self.images.iter_mut().next() {
                    image.name = format!("i{key}-{suffix}");
                }
            }
            _ => {
                if let Some(unit) = self.units.values_mut().next() {
                    unit.name = format!("u-{suffix}");
                }
            }
        }
    }

    fn remove(&mut self, rng: &mut Rng) {
        let key = u8::try_from(rng.below(4)).unwrap();
        match rng.below(3) {
            0 => self.without_disk(key),
            1 => self.without_image(key),
            _ => drop(self.units.remove(&key)),
        }
    }

    fn without_disk(&mut self, key: u8) {
        self.disks.remove(&key);
        for unit in self.units.values_mut().filter(|unit| unit.disk == Some(key)) {
            unit.disk = None;
        }
    }

    fn without_image(&mut self, key: u8) {
        self.images.remove(&key);
        for unit in self.units.values_mut().filter(|unit| unit.image == Some(key)) {
            unit.image = None;
        }
    }

    /// Returns all specs that have one thing less than this one, for shrinking.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut push = |edit: &dyn Fn(&mut Self)| {
            let mut spec = self.clone();
            edit(&mut spec);
            all.push(spec);
        };
        for key in self.units.keys() {
            push(&|spec| drop(spec.units.remove(key)));
        }
        for key in self.disks.keys() {
            push(&|spec| spec.without_disk(*key));
        }
        for key in self.images.keys() {
            push(&|spec| spec.without_image(*key));
        }
        for key in &self.fleet {
            push(&|spec| spec.fleet.retain(|own| own != key));
        }
        for key in self.keys.keys() {
            push(&|spec| spec.keys.retain(|own, _| own != key));
        }
        for key in self.tickets.keys() {
            push(&|spec| spec.tickets.retain(|own, _| own != key));
        }
        push(&|spec| spec.secret = None);
        push(&|spec| spec.outputs = false);
        push(&|spec| spec.leaves_out = false);
        if self.disks_first == First::Now {
            push(&|spec| spec.disks_first = First::Before);
        }
        all.retain(|smaller| smaller != self);
        let mut push = |edit: &dyn Fn(&mut Self)| {
            let mut spec = self.clone();
            edit(&mut spec);
            all.push(spec);
        };
        for place in self.imports.keys() {
            push(&|spec| drop(spec.imports.remove(place)));
        }
        all
    }

    pub(crate) fn text(&self, harness: Harness) -> String {
        let mut out = String::new();
        let say = |word| harness.say(word);
        let (disk, image, unit) = (say("disk"), say("image"), say("unit"));
        let (zone_is, kind_is, workers_are) = (say("zone"), say("kind"), say("workers"));
        let (disk_id, image_id) = (say("disk_id"), say("image_id"));
        for (key, Disk { name, size, zone }) in &self.disks {
            writeln!(out, "[resource.{disk}.d{key}]\nname = \"{name}\"\nsize = {size}").unwrap();
            writeln!(out, "{zone_is} = \"{}\"", say(zone)).unwrap();
            let is_first = self.disks_first == First::Now;
            let first = if is_first { ", create_before_destroy = true" } else { "" };
            writeln!(out, "lifecycle = {{ allow_data_loss = true{first} }}").unwrap();
        }
        for (key, Image { name, kind }) in &self.images {
            writeln!(out, "[resource.{image}.i{key}]\nname = \"{name}\"").unwrap();
            writeln!(out, "{kind_is} = \"{}\"", say(kind)).unwrap();
            if harness == Harness::Http {
                writeln!(out, "image_name = \"registry.example/x:1\"").unwrap();
            }
        }
        for (key, own) in &self.units {
            writeln!(out, "[resource.{unit}.u{key}]\nname = \"{}\"", own.name).unwrap();
            writeln!(out, "{workers_are} = {}", own.workers).unwrap();
            match own.disk {
                Some(key) => writeln!(out, "{disk_id} = \"${{{disk}.d{key}.id}}\"").unwrap(),
                None if self.leaves_out => {}
                None => out.push_str(no_disk(harness)),
            }
            match own.image {
                Some(key) => writeln!(out, "{image_id} = \"${{{image}.i{key}.id}}\"").unwrap(),
                None => out.push_str(unused(harness)),
            }
            out.push_str(hardware(harness));
            out.push_str(&self.secret_line(harness));
        }
        if !self.fleet.is_empty() {
            write!(
                out,
                "[local]\nkeys = {keys:?}\n\n[resource.{disk}.fleet]\nfor_each = \"${{local.keys}}\"\n\
                 name = \"f-${{each.key}}\"\nsize = 10\n{zone_is} = \"{zone}\"\n\n\
                 [resource.{unit}.fleet]\nfor_each = \"${{local.keys}}\"\nname = \"f-${{each.key}}\"\n\
                 {disk_id} = \"${{{disk}.fleet[each.key].id}}\"\n{workers_are} = {workers}\n",
                keys = self.fleet,
                zone = say("eu"),
                workers = self.fleet_workers,
            )
            .unwrap();
            out.push_str(unused(harness));
            out.push_str(hardware(harness));
        }
        self.key_blocks(harness, &mut out);
        self.ticket_blocks(harness, &mut out);
        self.output_blocks(harness, &mut out);
        self.secret_block(harness, &mut out);
        self.import_blocks(harness, &mut out);
        out
    }

    /// Writes an output for each unit: its id.
    fn output_blocks(&self, harness: Harness, out: &mut String) {
        let unit = harness.say("unit");
        for key in self.units.keys().filter(|_| self.outputs) {
            writeln!(out, "[output.u{key}]\nvalue = \"${{{unit}.u{key}.id}}\"").unwrap();
        }
    }

    /// Returns the objects that must be live at the end, once no fault occurs any more, by address.
    pub(crate) fn wanted(&self, harness: Harness) -> BTreeMap<String, Wanted> {
        let (disk, image, unit) = (harness.say("disk"), harness.say("image"), harness.say("unit"));
        let mut all = BTreeMap::new();
        for (key, Disk { name, size, zone }) in &self.disks {
            all.insert(format!("{disk}.d{key}"), wanted_disk(name, *size, harness.say(zone)));
        }
        for (key, Image { name, kind }) in &self.images {
            let texts = BTreeMap::from([("kind", harness.say(kind).to_owned())]);
            let own = Wanted { name: name.clone(), texts, ..Wanted::default() };
            all.insert(format!("{image}.i{key}"), own);
        }
        for (key, Unit { name, disk: used_disk, image: used_image, workers }) in &self.units {
            let of_disk = used_disk.map(|key| ("disk_id", format!("{disk}.d{key}")));
            let of_image = used_image.map(|key| ("image_id", format!("{image}.i{key}")));
            let references = of_disk.into_iter().chain(of_image).collect();
            let numbers = BTreeMap::from([("workers", *workers)]);
            let own = Wanted { name: name.clone(), numbers, references, texts: BTreeMap::new() };
            all.insert(format!("{unit}.u{key}"), own);
        }
        for key in &self.fleet {
            let (own, name) = (format!("{disk}.fleet[\"{key}\"]"), format!("f-{key}"));
            let user = Wanted {
                name: name.clone(),
                numbers: BTreeMap::from([("workers", self.fleet_workers)]),
                references: BTreeMap::from([("disk_id", own.clone())]),
                texts: BTreeMap::new(),
            };
            all.insert(format!("{unit}.fleet[\"{key}\"]"), user);
            all.insert(own, wanted_disk(&name, 10, harness.say("eu")));
        }
        all.extend(self.wanted_keys(harness));
        all.extend(self.wanted_tickets(harness));
        all
    }
}

/// Returns the line with an attribute that an endpoint of the service requires and that the simulated cloud
/// does not have. The line is empty at the port.
fn hardware(harness: Harness) -> &'static str {
    if harness == Harness::Http { "gpu_ids = \"ADA_24\"\n" } else { "" }
}

/// Returns the line that gives the public volume to a unit that uses none of our disks. Without this line the
/// unit would keep its old disk, and the service deletes no disk that is in use. The line is empty at the
/// port.
fn no_disk(harness: Harness) -> &'static str {
    if harness == Harness::Http { "network_volume_id = \"public\"\n" } else { "" }
}

/// Returns the line that gives the public template to a unit that uses none of our images. An endpoint of the
/// service must have a template. The line is empty at the port.
fn unused(harness: Harness) -> &'static str {
    if harness == Harness::Http { "template_id = \"public\"\n" } else { "" }
}

fn wanted_disk(name: &str, size: u64, zone: &str) -> Wanted {
    Wanted {
        name: name.to_owned(),
        texts: BTreeMap::from([("zone", zone.to_owned())]),
        numbers: BTreeMap::from([("size", size)]),
        references: BTreeMap::new(),
    }
}

/// One run and its faults.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    pub(crate) spec: Spec,
    pub(crate) destroy: bool,
    /// True if a person asks for the replacement of the first unit.
    pub(crate) replaces: bool,
    /// The part of the spec that the run is about, with a number that chooses the instance; None if the run
    /// is about the whole spec.
    pub(crate) narrow: Option<(Narrow, usize)>,
    pub(crate) parallelism: usize,
    pub(crate) seed: u64,
    pub(crate) rates: Rates,
    /// The boundary at which the process dies, counted from 0; None if it does not die.
    pub(crate) crash_at: Option<u64>,
    /// The time in milliseconds after which the run is asked to stop, from the start of the plan's execution;
    /// None if it is not asked.
    pub(crate) stop_after_ms: Option<u64>,
    /// The time in milliseconds between saving the plan and applying it; None if the run saves no plan.
    pub(crate) saved_for_ms: Option<u64>,
    /// A second runner beside the first one; None if there is none.
    pub(crate) other: Option<Other>,
    /// The boundary at which the second runner dies, counted from 0; None if it does not die.
    pub(crate) other_crash_at: Option<u64>,
    /// The act of a stranger before the run; None if there is none.
    pub(crate) meddling: Option<Meddling>,
    /// The time in milliseconds after which a stranger changes an object, from the start of the run; None if
    /// no stranger does.
    pub(crate) meddles_after: Option<u64>,
    /// The number of appends after which the journal claims to be too long, so that the run saves the state
    /// in between; None if it never does.
    pub(crate) grows_every: Option<u64>,
    /// The number of times that a stranger picks an object and deletes it, if `meddling` says so.
    pub(crate) deletes: usize,
    /// The objects that strangers make right before the run, and that specs may take over.
    pub(crate) offers: Vec<Offer>,
    /// The time in milliseconds after which a stranger deletes an offered object, from the start of the run;
    /// None if no stranger does.
    pub(crate) withdraws: Option<u64>,
    /// True if import commands before the run take the objects over, and not the spec.
    pub(crate) by_command: bool,
    /// The time in milliseconds after this run in which nobody runs.
    pub(crate) idle_ms: u64,
}

/// The part of the spec that a chosen instance stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Narrow {
    /// Only the instance, and the resources that go with it.
    Target,
    /// Everything but the instance and the resources that go with it.
    Exclude,
}

/// A second runner.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    /// Starts `after_ms` after the first runner, and waits up to `wait_ms` for the lock.
    Waits { after_ms: u64, wait_ms: u64 },
    /// The first runner stands still for `for_ms`, at the first chance from boundary `at` on. Meanwhile the
    /// second one takes over.
    TakesOver { at: u64, for_ms: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Meddling {
    /// Deletes one or more of our objects.
    Deletes,
    /// Changes one of our objects.
    Changes,
    /// Makes an object with the name of one of ours.
    Makes,
}

/// The whole course of a simulation: its harness, its store, and its runs in order.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) harness: Harness,
    pub(crate) store: StoreKind,
    pub(crate) runs: Vec<RunPlan>,
}

/// The kind of the store that keeps the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The store in memory.
    Memory,
    /// The file store, over a disk that fails.
    File,
}

impl Schedule {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        // Close seeds give similar first numbers, so the first number is the seed of the real stream.
        let mut rng = Rng::new(rng.next());
        let swarm = Rates::draw(&mut rng);
        let mut spec = Spec::draw(&mut rng);
        let mut runs = Vec::new();
        let mut deletions_left = 1;
        for number in 0..rng.between(1, 4) {
            for _ in 0..(if number == 0 { 0 } else { rng.between(0, 3) }) {
                spec.change(&mut rng);
            }
            let mut run = RunPlan::draw(&mut rng, spec.clone(), &swarm);
            if matches!(run.meddling, Some(Meddling::Deletes)) {
                if deletions_left == 0 {
                    run.meddling = None;
                } else {
                    deletions_left -= 1;
                }
            }
            runs.push(run);
        }
        imports::draw(seed, &mut runs);
        keys::draw(seed, &mut runs);
        tickets::draw(seed, &mut runs);
        secrets::draw(seed, &mut runs);
        draw_details(seed, &mut runs);
        draw_order(seed, &mut runs);
        rare_faults::draw(seed, &mut runs);
        // Plumb asks a person if many objects are gone at once.
        if runs.iter().all(|run| run.withdraws.is_none()) {
            let mut own = Rng::new(Rng::new(seed ^ 0xde1).next());
            for run in &mut runs {
                let most = if own.per_mille(300) { 10 } else { 3 };
                run.deletes = 1 + own.index(most);
            }
        }
        let harness = if seed % 6 == 5 { Harness::Http } else { Harness::Port };
        let store = if seed % 14 == 9 { StoreKind::File } else { StoreKind::Memory };
        Self { harness, store, runs }
    }
}

/// Draws outputs, references that are left out, and the rate of accepted creates, from a random stream of its
/// own.
fn draw_details(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0x0b7).next());
    let outputs = rng.per_mille(300);
    for run in &mut *runs {
        run.spec.outputs = outputs && rng.per_mille(900);
        run.spec.leaves_out = rng.per_mille(200);
    }
    let accepted = if rng.per_mille(200) { rng.between(50, 400) } else { 0 };
    for run in runs.iter_mut().filter(|run| run.rates != Rates::default()) {
        run.rates.accepted = accepted;
    }
}

/// Draws the order in which disks are replaced, from a random stream of its own. One run in twenty deviates
/// from the order of its schedule.
fn draw_order(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0xf15).next());
    let first = rng.per_mille(250);
    let mut before = First::Never;
    for run in runs {
        run.spec.disks_first = if first == rng.per_mille(50) { before } else { First::Now };
        if run.spec.disks_first == First::Now {
            before = First::Before;
        }
    }
}

impl RunPlan {
    pub(crate) fn asked(&self, harness: Harness) -> Option<String> {
        let unit = self.spec.units.keys().next().filter(|_| self.replaces)?;
        Some(format!("{}.u{unit}", harness.say("unit")))
    }

    /// Returns the part of the spec that the run is about, and the address of the instance. The address is in
    /// the spec, or may have left it. None if the run is about the whole spec.
    pub(crate) fn narrowed(&self, harness: Harness) -> Option<(Narrow, String)> {
        let (narrow, at) = self.narrow?;
        let mut names: Vec<String> = self.spec.wanted(harness).into_keys().collect();
        names.extend(
            ["disk", "image", "unit"]
                .map(|ty| format!("{}.{}{}", harness.say(ty), &ty[..1], at % 4)),
        );
        Some((narrow, names.swap_remove(at % names.len())))
    }

    fn draw(rng: &mut Rng, spec: Spec, swarm: &Rates) -> Self {
        let rates = if rng.per_mille(150) { Rates::default() } else { swarm.clone() };
        let other = match rng.below(10) {
            0 => {
                Some(Other::Waits { after_ms: rng.below(20_000), wait_ms: rng.below(2) * 120_000 })
            }
            1 | 2 => Some(Other::TakesOver {
                at: rng.between(1, 60),
                for_ms: *rng.pick(&[100, 3_000, 20_000, 200_000]),
            }),
            _ => None,
        };
        let meddling = match rng.below(12) {
            0 => Some(Meddling::Deletes),
            1 => Some(Meddling::Changes),
            2 | 3 => Some(Meddling::Makes),
            _ => None,
        };
        let (destroy, replaces) = (rng.per_mille(60), rng.per_mille(120));
        let parallelism = *rng.pick(&[1, 2, 4, 16]);
        let seed = rng.next();
        // A random stream of its own, so that draws from it do not change the other draws of a seed.
        let mut own = Rng::new(seed ^ 0x9a7);
        let which = if own.per_mille(500) { Narrow::Target } else { Narrow::Exclude };
        let narrow = own.per_mille(150).then(|| (which, own.index(64)));
        let grows_every = own.per_mille(150).then(|| own.between(1, 6));
        // In an idle time of hours Plumb gives up whatever it looks for only for seconds or for an hour.
        let long = own.per_mille(100).then(|| own.between(1, 240) * HOUR_MS);
        let other_crash_at = own.per_mille(300).then(|| own.between(1, 90));
        let meddles_after = own.per_mille(500).then(|| own.below(20_000));
        let crash_at = rng.per_mille(500).then(|| rng.between(1, 90));
        let stop_after_ms = rng.per_mille(100).then(|| rng.below(15_000));
        let saved_for_ms = rng.per_mille(150).then(|| *rng.pick(&[0, 5_000, 60_000]));
        let idle_ms = *rng.pick(&[0, 100, 3_000, 30_000, 200_000]);
        Self {
            spec,
            destroy,
            replaces,
            narrow,
            parallelism,
            seed,
            rates,
            crash_at,
            stop_after_ms,
            saved_for_ms,
            other,
            other_crash_at,
            meddling,
            meddles_after,
            grows_every,
            deletes: 1,
            offers: Vec::new(),
            withdraws: None,
            by_command: false,
            idle_ms: long.unwrap_or(idle_ms),
        }
    }
}
