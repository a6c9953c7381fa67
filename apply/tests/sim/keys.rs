//! Keys: objects that their own unique names identify, at the port.
//!
//! Of these less is promised than of what has a one-time name, so less goes wrong with them: a create
//! takes effect within the settle time or never, is done once, and no list leaves one out. Their names
//! pass from one to the next, which is what makes it matter whom an address stands for already.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::state::ObjectId;

use crate::api_variant::Harness;
use crate::cloud::{Objects, Request, SETTLE_MS, STALE_MS};
use crate::rng::Rng;
use crate::schedule::{RunPlan, Spec, Wanted};
use crate::tickets;

const NAMES: [&str; 4] = ["ada", "bea", "cleo", "dora"];

/// The keys that a spec wants, and their names, of which no two are alike.
pub(crate) type Keys = BTreeMap<u8, &'static str>;

/// Lets some of the schedules have keys, with dice of their own, so that what a seed draws beside it
/// stays what it was.
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
        // Who looks right after a name was passed on may still see its last bearer.
        if rng.per_mille(500) {
            run.rates.stale = 600;
            run.rates.looks_fail = 100;
            run.rates.lost_after = 150;
            run.idle_ms = 0;
            run.crash_at = rng.per_mille(700).then(|| rng.between(4, 40));
        }
    }
}

/// Keys as they are drawn.
#[derive(Default)]
pub(crate) struct Drawn {
    pub(crate) keys: Keys,
    /// Who bore a name last. Names are passed on to later keys only: never in a circle, whichever of
    /// the runs fail, which a plan refuses.
    bearers: BTreeMap<&'static str, u8>,
}

impl Drawn {
    /// A new key, a new name for an old one, whose name another one may take then, or one less.
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

/// What the type is called.
pub(crate) const TYPE: &str = "key";

impl Request {
    /// Whether it takes effect soon and once, or never: what nothing but its own name tells is made so, and
    /// what bears an id that was another's before.
    pub(crate) fn is_prompt(&self) -> bool {
        self.creates && &*self.ty == TYPE || &*self.ty == tickets::TYPE
    }
}

/// How late a prompt request may take effect: what is looked for is found
/// by a look that begins when the settle time is over, and is behind.
pub(crate) const LATE_MS: u64 = SETTLE_MS - STALE_MS - 1_000;

/// Whether another key bears a name.
pub(crate) fn is_taken(objects: &Objects, name: &str, own: Option<&ObjectId>) -> bool {
    objects.iter().any(|(id, live)| &*live.ty == TYPE && live.name() == name && Some(id) != own)
}
