//! One runner: a process with its random numbers and its boundaries. At a boundary it can die or be stopped.

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

/// A simulated process that performs a run.
pub(crate) struct Runner {
    pub(crate) number: usize,
    pub(crate) harness: Harness,
    pub(crate) cloud: Shared,
    pub(crate) spec: Spec,
    pub(crate) destroy: bool,
    /// The address of the resource that a person asks to replace; None if nobody asks.
    pub(crate) asked: Option<String>,
    /// The imports that commands make before the run: addresses and ids.
    pub(crate) commands: BTreeMap<String, ObjectId>,
    /// The part of the spec that the run is about; None for the whole spec.
    pub(crate) narrow: Option<(Narrow, String)>,
    pub(crate) rates: Rates,
    rng: Mutex<Rng>,
    /// The number of times that a fault of each class struck.
    pub(crate) struck: Mutex<BTreeMap<&'static str, u64>>,
    boundaries: AtomicU64,
    /// The number of appends after which the journal claims to be too long; None if it never does.
    pub(crate) grows_every: Option<u64>,
    crash_at: Option<u64>,
    pause: Option<(u64, u64)>,
    paused_until: Mutex<Option<Instant>>,
    pub(crate) dead: AtomicBool,
    pub(crate) fenced: AtomicBool,
    /// The time at which the run was asked to stop, in milliseconds since the start of the simulation; None
    /// if it was not asked.
    pub(crate) stopped_ms: Mutex<Option<u64>>,
    pub(crate) crashed: Notify,
    /// Notified when the process stands still, dies or ends, whichever comes first.
    pub(crate) out: Notify,
    pub(crate) plan: Mutex<Option<Arc<Plan>>>,
    /// The objects that looks showed lately, each with the time of its look in milliseconds.
    shown: Mutex<VecDeque<(u64, ObjectId, Arc<Live>)>>,
    /// The ends of its steps, as the run tells them.
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

    /// Draws whether a fault strikes, and counts it by its class: a fault that never strikes proves nothing.
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

    /// Notes that somebody asks the run to stop.
    pub(crate) fn asked_to_stop(&self) {
        let now = lock(&self.cloud).now_ms();
        *self.stopped_ms.lock().unwrap() = Some(now);
        self.note("is asked to stop");
    }

    /// Passes a boundary, at which the process can die or stand still.
    pub(crate) async fn boundary(&self, what: &str) {
        self.die_at(what).await;
        self.stand_still_at(what).await;
    }

    /// Passes a boundary at which the process can die but not stand still: a request on the wire goes on even
    /// if its sender stands still.
    pub(crate) async fn die_at(&self, what: &str) {
        if self.counts_boundary(what) {
            std::future::pending::<()>().await;
        }
    }

    /// Counts a boundary. Returns true if the process is dead, or dies at this boundary.
    pub(crate) fn counts_boundary(&self, what: &str) -> bool {
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

    /// Waits as long as the process stands still: in that time it does nothing at all.
    pub(crate) async fn stand_still(&self) {
        let until = *self.paused_until.lock().unwrap();
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        lock(&self.cloud).note(format_args!("r{} {what}", self.number));
    }

    /// Draws the lag of a look in milliseconds; 0 if it is up to date.
    pub(crate) fn behind_ms(&self) -> u64 {
        let stale = self.strikes("stale", self.rates.stale);
        if stale { self.with_rng(|rng| rng.below(STALE_MS)) } else { 0 }
    }

    /// Notes that a look shows an object to the run.
    pub(crate) fn note_shown(&self, cloud: &Cloud, id: &ObjectId, live: &Arc<Live>) {
        let now = cloud.now_ms();
        let mut shown = self.shown.lock().unwrap();
        while shown.front().is_some_and(|(at, ..)| at + FRESH_MS < now) {
            shown.pop_front();
        }
        shown.push_back((now, id.clone(), live.clone()));
    }

    /// Returns true if a look showed the run this value of an object. One of its last two looks may be up to
    /// `FRESH_MS` old: one look may be two requests, each of which shows a part. Any other may be up to
    /// `SETTLE_MS` old, because for that long a run relies on what its plan saw.
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

    /// Draws the time in milliseconds after which a request takes effect whose client gave up. A create may
    /// take effect after weeks, for example when a queue is cleared or a backup is put back. Plumb looks for
    /// its one-time name for longer.
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

    /// Draws the time in milliseconds after which an accepted create makes its object. Mostly its run still
    /// waits for it then.
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
