//! Keys: objects at the provider port that their own unique names identify.
//!
//! Plumb promises less for keys than for objects with a one-time name, so fewer faults strike them: a create
//! takes effect within the settle time or never, it is executed once, and no list leaves a key out. A name
//! passes from one key to the next, so it matters which key an address already has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::state::ObjectId;

use crate::api_variant::Harness;
use crate::cloud::{Objects, Request, SETTLE_MS, STALE_MS};
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec, Wanted};
use crate::tickets;

const NAMES: [&str; 4] = ["ada", "bea", "cleo", "dora"];

/// The keys that a spec wants, with their names. No two names are equal.
pub(crate) type Keys = BTreeMap<u8, &'static str>;

/// Gives keys to some of the schedules, from a random stream of its own, so that the other draws of a seed
/// stay the same.
pub(crate) fn draw(seed: u64, runs: &mut [RunPlan]) {
    let mut rng = Rng::new(Rng::new(seed ^ 0x6e7).next());
    if !rng.per_mille(250) {
        return;
    }
    let mut drawn = Drawn::default();
    for run in runs {
        for _ in 0..rng.between(1, 3) {
            drawn.change(&mut rng);
        }
        run.spec.keys.clone_from(&drawn.keys);
        // A look right after a name was passed on may still show the key that had it before.
        if rng.per_mille(500) {
            run.rates.stale = 600;
            run.rates.looks_fail = 100;
            run.rates.lost_after = 150;
            run.idle_ms = 0;
            run.crash_at = rng.per_mille(700).then(|| rng.between(4, 40));
        }
    }
}

/// The keys in the course of drawing.
#[derive(Default)]
pub(crate) struct Drawn {
    pub(crate) keys: Keys,
    /// The key that last had each name. A name never passes to a key with a lower number. So names never pass
    /// in a circle, whichever runs fail: a plan refuses a circle.
    bearers: BTreeMap<&'static str, u8>,
}

impl Drawn {
    /// Makes one change: a new key, a new name for an old key, or one key less. The next key may take the
    /// name that an old key gives up.
    pub(crate) fn change(&mut self, rng: &mut Rng) {
        let key = u8::try_from(rng.below(4)).unwrap();
        let free: Vec<_> = NAMES.into_iter().filter(|name| self.is_free(name, key)).collect();
        if free.is_empty() || rng.per_mille(150) {
            self.keys.remove(&key);
            return;
        }
        let name = *rng.pick(&free);
        let before = self.keys.insert(key, name);
        self.bearers.insert(name, key);
        if let Some(before) = before.filter(|_| key < 3 && rng.per_mille(700)) {
            self.keys.insert(key + 1, before);
            self.bearers.insert(before, key + 1);
        }
    }

    fn is_free(&self, name: &str, key: u8) -> bool {
        self.keys.values().all(|own| *own != name)
            && self.bearers.get(name).is_none_or(|last| *last <= key)
    }
}

impl Spec {
    pub(crate) fn key_blocks(&self, harness: Harness, out: &mut String) {
        for (key, name) in self.keys_in(harness) {
            writeln!(out, "[resource.key.k{key}]\nname = \"{name}\"").unwrap();
        }
    }

    pub(crate) fn wanted_keys(&self, harness: Harness) -> impl Iterator<Item = (String, Wanted)> {
        let wanted = |name: &str| Wanted { name: name.to_owned(), ..Wanted::default() };
        self.keys_in(harness).map(move |(key, name)| (format!("key.k{key}"), wanted(name)))
    }

    fn keys_in(&self, harness: Harness) -> impl Iterator<Item = (&u8, &&'static str)> {
        self.keys.iter().filter(move |_| harness == Harness::Port)
    }
}

/// The name of the type.
pub(crate) const TYPE: &str = "key";

impl Request {
    /// Returns true if the request takes effect soon and once, or never: the create of a key, which only its
    /// own name identifies, or any request for a ticket, whose id may have been another ticket's before.
    pub(crate) fn is_prompt(&self) -> bool {
        self.creates && &*self.ty == TYPE || &*self.ty == tickets::TYPE
    }
}

/// The time in milliseconds within which a prompt request takes effect. A look that begins after the settle
/// time still finds its object, even if the look lags.
pub(crate) const LATE_MS: u64 = SETTLE_MS - STALE_MS - 1_000;

/// Returns true if a key other than `own` has the name.
pub(crate) fn is_taken(objects: &Objects, name: &str, own: Option<&ObjectId>) -> bool {
    objects.iter().any(|(id, live)| &*live.ty == TYPE && live.name() == name && Some(id) != own)
}
