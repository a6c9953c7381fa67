//! One runner: a process with its dice, and its boundaries, at which it can die or be stopped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::plan::Plan;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use engine::value::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api_variant::Harness;
use crate::cloud::{
    Cloud, FRESH_MS, LATE_MS, Live, Request, SETTLE_MS, STALE_MS, Shared, VERY_LATE_MS, lock,
};
use crate::faults::Rates;
use crate::keys;
use crate::report::Tale;
use crate::rng::Rng;
use crate::schedule::{Narrow, Spec};

/// A process.
pub(crate) struct Runner {
    pub(crate) number: usize,
    pub(crate) harness: Harness,
    pub(crate) cloud: Shared,
    pub(crate) spec: Spec,
    pub(crate) destroy: bool,
    /// What is replaced because a person asked.
    pub(crate) asked: Option<String>,
    /// What is taken over by commands before the run.
    pub(crate) commands: BTreeMap<String, ObjectId>,
    /// Which part of the spec the run is about.
    pub(crate) narrow: Option<(Narrow, String)>,
    pub(crate) rates: Rates,
    rng: Mutex<Rng>,
    /// How often a fault of each class struck.
    pub(crate) struck: Mutex<BTreeMap<&'static str, u64>>,
    boundaries: AtomicU64,
    /// After every so many writes of records the journal is taken for too long.
    pub(crate) grows_every: Option<u64>,
    crash_at: Option<u64>,
    pause: Option<(u64, u64)>,
    paused_until: Mutex<Option<Instant>>,
    pub(crate) dead: AtomicBool,
    pub(crate) fenced: AtomicBool,
    /// When it was asked to stop, by the world's time.
    pub(crate) stopped_ms: Mutex<Option<u64>>,
    pub(crate) crashed: Notify,
    /// Told when it is stopped, dies or ends, whatever comes first.
    pub(crate) out: Notify,
    pub(crate) plan: Mutex<Option<Arc<Plan>>>,
    /// What looks showed lately, and when.
    shown: Mutex<VecDeque<(u64, ObjectId, Arc<Live>)>>,
    /// What it tells of its steps.
    pub(crate) tale: Arc<Mutex<Tale>>,
    pub(crate) schema: Arc<ProviderSchema>,
}

impl Runner {
    pub(crate) fn new(number: usize, cloud: &Shared, spec: &Spec, seed: u64) -> Self {
        let harness = lock(cloud).harness;
        Self {
            number,
            harness,
            cloud: cloud.clone(),
            spec: spec.clone(),
            destroy: false,
            asked: None,
            commands: BTreeMap::new(),
            narrow: None,
            rates: Rates::default(),
            rng: Mutex::new(Rng::new(seed)),
            struck: Mutex::default(),
            boundaries: AtomicU64::new(0),
            grows_every: None,
            crash_at: None,
            pause: None,
            paused_until: Mutex::new(None),
            dead: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            stopped_ms: Mutex::new(None),
            crashed: Notify::new(),
            out: Notify::new(),
            plan: Mutex::new(None),
            shown: Mutex::default(),
            tale: Arc::default(),
            schema: harness.schema(),
        }
    }

    pub(crate) fn crashing(mut self, at: Option<u64>) -> Self {
        self.crash_at = at;
        self
    }

    pub(crate) fn pausing(mut self, pause: Option<(u64, u64)>) -> Self {
        self.pause = pause;
        self
    }

    pub(crate) fn with_rng<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.lock().unwrap())
    }

    pub(crate) fn chance(&self, rate: u64) -> bool {
        self.with_rng(|rng| rng.per_mille(rate))
    }

    /// Whether a fault strikes, counted by its class: what never strikes proves nothing.
    pub(crate) fn strikes(&self, class: &'static str, rate: u64) -> bool {
        let strikes = self.chance(rate);
        if strikes {
            *self.struck.lock().unwrap().entry(class).or_default() += 1;
        }
        strikes
    }

    pub(crate) fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.with_rng(|rng| {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&rng.next().to_le_bytes());
            }
        });
        bytes
    }

    /// Somebody asks it to stop.
    pub(crate) fn asked_to_stop(&self) {
        let now = lock(&self.cloud).now_ms();
        *self.stopped_ms.lock().unwrap() = Some(now);
        self.note("is asked to stop");
    }

    /// A place where the process can die, or stand still.
    pub(crate) async fn boundary(&self, what: &str) {
        self.die_at(what).await;
        self.stand_still_at(what).await;
    }

    /// A place where the process can die. What is on the wire does not stand still with it.
    pub(crate) async fn die_at(&self, what: &str) {
        if self.dies_now(what) {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the process is dead, or dies right here.
    pub(crate) fn dies_now(&self, what: &str) -> bool {
        let number = self.boundaries.fetch_add(1, Ordering::Relaxed);
        if self.crash_at == Some(number) {
            let mut cloud = lock(&self.cloud);
            cloud.note(format_args!("r{} dies at {what}", self.number));
            cloud.count("crashes");
            drop(cloud);
            self.dead.store(true, Ordering::Relaxed);
            self.crashed.notify_one();
            self.out.notify_one();
        }
        self.dead.load(Ordering::Relaxed)
    }

    async fn stand_still_at(&self, what: &str) {
        let number = self.boundaries.load(Ordering::Relaxed);
        let first = !self.fenced.load(Ordering::Relaxed);
        if let Some((_, ms)) = self.pause.filter(|(at, _)| first && *at <= number) {
            let mut cloud = lock(&self.cloud);
            cloud.note(format_args!("r{} stands still at {what}", self.number));
            cloud.count("takeovers");
            drop(cloud);
            *self.paused_until.lock().unwrap() = Some(Instant::now() + Duration::from_millis(ms));
            self.fenced.store(true, Ordering::Relaxed);
            self.out.notify_one();
        }
        self.stand_still().await;
    }

    /// A process that stands still does nothing at all.
    pub(crate) async fn stand_still(&self) {
        let until = *self.paused_until.lock().unwrap();
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        lock(&self.cloud).note(format_args!("r{} {what}", self.number));
    }

    /// How far behind a look is.
    pub(crate) fn behind_ms(&self) -> u64 {
        let stale = self.strikes("stale", self.rates.stale);
        if stale { self.with_rng(|rng| rng.below(STALE_MS)) } else { 0 }
    }

    /// A look shows it an object.
    pub(crate) fn is_shown(&self, cloud: &Cloud, id: &ObjectId, live: &Arc<Live>) {
        let now = cloud.now_ms();
        let mut shown = self.shown.lock().unwrap();
        while shown.front().is_some_and(|(at, ..)| at + FRESH_MS < now) {
            shown.pop_front();
        }
        shown.push_back((now, id.clone(), live.clone()));
    }

    /// Whether its last look showed it a value of an object, not too long ago; or any look of the last seconds, in
    /// which a run goes by what its plan saw. One look may be two requests, each of which shows a part.
    pub(crate) fn was_shown(
        &self,
        cloud: &Cloud,
        id: &ObjectId,
        name: &str,
        value: &Value,
    ) -> bool {
        let now = cloud.now_ms();
        let shown = self.shown.lock().unwrap();
        let own = shown.iter().rev().filter(|(_, own, _)| own == id);
        own.enumerate().any(|(number, (at, _, live))| {
            let within = if number < 2 { FRESH_MS } else { SETTLE_MS };
            at + within >= now && live.has(name, value)
        })
    }

    /// How long a request is under way whose client gave up. What makes something may show after
    /// weeks, when a queue was cleared or a backup was put back; its one-time name is looked for as long.
    pub(crate) fn late_by(&self, request: &Request) -> u64 {
        self.with_rng(|rng| {
            let after = rng.below(LATE_MS);
            match request.creates && rng.per_mille(200) {
                _ if request.is_prompt() => after % keys::LATE_MS,
                true => rng.below(VERY_LATE_MS),
                false => after,
            }
        })
    }

    /// How long after it was accepted a create makes its object: mostly while its run waits for it.
    pub(crate) fn shows_after(&self, request: &Request) -> u64 {
        let quick = self.with_rng(|rng| rng.below(LATE_MS));
        if request.is_prompt() { quick % keys::LATE_MS } else { self.late_by(request).max(quick) }
    }

    pub(crate) async fn latency(&self) {
        let slow = self.strikes("slow", self.rates.slow);
        let ms = self.with_rng(|rng| rng.below(if slow { 60_000 } else { 400 }));
        sleep(Duration::from_millis(ms)).await;
    }

    pub(crate) async fn short_latency(&self) {
        let ms = self.with_rng(|rng| rng.below(400));
        sleep(Duration::from_millis(ms)).await;
    }
}
