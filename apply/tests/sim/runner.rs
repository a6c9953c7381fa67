//! One runner: its boundaries, at which it can die or be stopped, and its side of the port.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::ProgramKind;
use engine::plan::{Action, Plan};
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use engine::value::Value;
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::faults::Rates;
use crate::rng::Rng;
use crate::schedule::Spec;
use crate::shapes;
use crate::sky::{Intent, LATE_MS, Live, Request, SETTLE_MS, STALE_MS, Shared, lock};

/// A call of a run that was driven out may still leave so long after its record.
const SEND_WITHIN_MS: u64 = 5_000;

/// A process.
pub(crate) struct Runner {
    pub(crate) number: usize,
    pub(crate) sky: Shared,
    pub(crate) spec: Spec,
    pub(crate) destroy: bool,
    /// What is replaced because a person asked.
    pub(crate) asked: Option<String>,
    pub(crate) rates: Rates,
    rng: Mutex<Rng>,
    boundaries: AtomicU64,
    crash_at: Option<u64>,
    pause: Option<(u64, u64)>,
    paused_until: Mutex<Option<Instant>>,
    pub(crate) dead: AtomicBool,
    pub(crate) fenced: AtomicBool,
    pub(crate) crashed: Notify,
    /// Told when it is stopped, dies or ends, whatever comes first.
    pub(crate) out: Notify,
    pub(crate) plan: Mutex<Option<Plan>>,
    pub(crate) schema: Arc<ProviderSchema>,
}

impl Runner {
    pub(crate) fn new(number: usize, sky: &Shared, spec: &Spec, seed: u64) -> Self {
        Self {
            number,
            sky: sky.clone(),
            spec: spec.clone(),
            destroy: false,
            asked: None,
            rates: Rates::default(),
            rng: Mutex::new(Rng::new(seed)),
            boundaries: AtomicU64::new(0),
            crash_at: None,
            pause: None,
            paused_until: Mutex::new(None),
            dead: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            crashed: Notify::new(),
            out: Notify::new(),
            plan: Mutex::new(None),
            schema: crate::sky::schema(),
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

    fn with_rng<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.lock().unwrap())
    }

    pub(crate) fn chance(&self, rate: u64) -> bool {
        self.with_rng(|rng| rng.per_mille(rate))
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

    /// A place where the process can die, or stand still.
    pub(crate) async fn boundary(&self, what: &str) {
        self.die_at(what).await;
        self.stand_still_at(what).await;
    }

    /// A place where the process can die. What is on the wire does not stand still with it.
    async fn die_at(&self, what: &str) {
        let number = self.boundaries.fetch_add(1, Ordering::Relaxed);
        if self.crash_at == Some(number) {
            let mut sky = lock(&self.sky);
            sky.note(&format!("r{} dies at {what}", self.number));
            sky.count("crashes");
            drop(sky);
            self.dead.store(true, Ordering::Relaxed);
            self.crashed.notify_one();
            self.out.notify_one();
        }
        if self.dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn stand_still_at(&self, what: &str) {
        let number = self.boundaries.load(Ordering::Relaxed);
        let first = !self.fenced.load(Ordering::Relaxed);
        if let Some((_, ms)) = self.pause.filter(|(at, _)| first && *at <= number) {
            let mut sky = lock(&self.sky);
            sky.note(&format!("r{} stands still at {what}", self.number));
            sky.count("takeovers");
            drop(sky);
            *self.paused_until.lock().unwrap() = Some(Instant::now() + Duration::from_millis(ms));
            self.fenced.store(true, Ordering::Relaxed);
            self.out.notify_one();
        }
        let until = *self.paused_until.lock().unwrap();
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    pub(crate) fn note(&self, what: &str) {
        lock(&self.sky).note(&format!("r{} {what}", self.number));
    }

    async fn latency(&self) {
        let slow = self.chance(self.rates.slow);
        let ms = self.with_rng(|rng| rng.below(if slow { 60_000 } else { 400 }));
        sleep(Duration::from_millis(ms)).await;
    }

    fn doubt(why: &str) -> Error {
        Error::new(Kind::InDoubt, why)
    }

    /// A look at the world, which may fail.
    async fn look(&self, what: &str) -> Result<(), Error> {
        self.boundary(what).await;
        self.latency().await;
        lock(&self.sky).catch_up();
        self.boundary(what).await;
        if self.chance(self.rates.looks_fail) {
            self.note(&format!("{what} fails"));
            return Err(Self::doubt("the look failed"));
        }
        Ok(())
    }

    fn object(&self, id: &ObjectId, live: &Live) -> Object {
        let mut attributes = live.attributes.clone();
        let sensitive = &mut engine::value::Paths::none();
        engine::plan::live::derive(&self.schema.types[&live.ty], &mut attributes, sensitive);
        Object { id: id.clone(), attributes }
    }

    /// What a list shows, which may be old or incomplete.
    fn listed(&self, ty: &str) -> Vec<Object> {
        let stale = self.chance(self.rates.stale);
        let ago = if stale { self.with_rng(|rng| rng.below(STALE_MS)) } else { 0 };
        let objects = lock(&self.sky).ago(ago);
        let own = objects.iter().filter(|(_, live)| &*live.ty == ty);
        own.filter(|_| !self.chance(self.rates.incomplete))
            .map(|(id, live)| self.object(id, live))
            .collect()
    }

    /// Checks a mutating call against what is durable, what the plan shows and what is wanted, as
    /// it is sent; returns for whom it is.
    fn audit(&self, call: &Call<'_>) -> String {
        let plan = self.plan.lock().unwrap().clone();
        let mut sky = lock(&self.sky);
        sky.mutations += 1;
        sky.count("calls");
        let who = format!(
            "r{}: {:?} phase {} of {} {}",
            self.number,
            call.phase.kind,
            call.phase.phase,
            call.ty,
            call.id.map_or("anew", |id| &id.0),
        );
        let now = sky.now_ms();
        let record = sky.open.iter().find(|Intent { run, started, at_ms, ended }| {
            *run == self.number
                && (!ended || now <= at_ms + SEND_WITHIN_MS)
                && started.phase == call.phase
                && &*started.address.block.ty == call.ty
                && started.object.as_ref() == call.id
                && started.nonce.as_ref() == call.nonce
        });
        let Some(Intent { started, .. }) = record.cloned() else {
            sky.violation(format!("{who}: no durable record names this call"));
            return "nobody".to_owned();
        };
        let address = started.address.to_string();
        let step = plan
            .as_ref()
            .and_then(|plan| plan.steps.iter().find(|step| step.id.to_string() == started.step));
        let shown = step.is_some_and(|step| {
            step.address == started.address
                && step.phase == Some(call.phase)
                && (step.object.is_none() || step.object.as_ref() == call.id)
        });
        if !shown {
            sky.violation(format!("{who}: the plan does not show this call"));
        }
        if let Some(id) = call.id
            && let Some(live) = sky.objects.get(id).cloned()
        {
            if live.owner.is_none() {
                sky.violation(format!("{who}: it is a stranger's"));
            }
            let size = shapes_sent(self, call).get("size").cloned();
            if let Some(Value::Integer(size)) = size
                && live.number("size").is_some_and(|own| own > size)
                && call.phase.kind == ProgramKind::Update
                && !sky.disordered
                && !self.fenced.load(Ordering::Relaxed)
            {
                sky.violation(format!("{who}: it would shrink"));
            }
            if call.phase.kind == ProgramKind::Delete {
                let action = step.zip(plan.as_ref()).map(|(s, plan)| plan.changes[s.change].action);
                self.audit_delete(&mut sky, &who, &address, &live, action);
            }
        }
        self.audit_order(&mut sky, &who, call, &started.managed);
        address
    }

    /// What the spec wants as it is, is not deleted.
    fn audit_delete(
        &self,
        sky: &mut crate::sky::Sky,
        who: &str,
        address: &str,
        live: &Live,
        action: Option<Action>,
    ) {
        let wanted = self.spec.wanted();
        let Some(wanted) = wanted.get(address).filter(|_| !self.destroy) else { return };
        let same = wanted.texts.iter().all(|(name, text)| live.text(name) == Some(text));
        let asked = self.asked.as_deref() == Some(address);
        if live.is_named() && same && &*live.ty != "image" && !asked {
            sky.violation(format!("{who}: {address} is wanted as it is ({action:?})"));
        }
    }

    fn action_of(&self, address: &str) -> Option<Action> {
        let plan = self.plan.lock().unwrap();
        let changes = plan.as_ref().map_or(&[][..], |plan| &plan.changes);
        let own =
            changes.iter().find(|change| !change.deposed && change.address.to_string() == address);
        own.map(|change| change.action)
    }

    /// Whether an object depends on an address, as the plan shows it.
    fn depends(&self, live: &Live, on: &str) -> bool {
        let plan = self.plan.lock().unwrap();
        let changes = plan.as_ref().map_or(&[][..], |plan| &plan.changes);
        live.owner.as_ref().is_some_and(|(own, _)| {
            changes.iter().any(|change| {
                change.address.to_string() == *own
                    && change.dependencies.iter().any(|address| address.to_string() == on)
            })
        })
    }

    /// What is used is there before its user and after it.
    fn audit_order(
        &self,
        sky: &mut crate::sky::Sky,
        who: &str,
        call: &Call<'_>,
        managed: &std::collections::BTreeSet<engine::address::Name>,
    ) {
        if sky.disordered || self.fenced.load(Ordering::Relaxed) {
            return;
        }
        let uses = |attributes: &engine::value::Attributes, id: &ObjectId| {
            ["disk_id", "image_id"]
                .iter()
                .any(|name| attributes.get(*name).and_then(Value::as_str) == Some(&id.0))
        };
        if call.phase.kind == ProgramKind::Delete {
            let Some(id) = call.id.filter(|_| call.phase.is_last()) else { return };
            let own = sky.objects.get(id).and_then(|live| live.owner.clone());
            let Some((address, _)) = own else { return };
            // Those that use what is replaced follow the new one once it is there.
            if self.action_of(&address) == Some(Action::Replace) {
                return;
            }
            let user = sky.objects.iter().find(|(_, live)| {
                live.is_named() && uses(&live.attributes, id) && self.depends(live, &address)
            });
            if let Some((user, _)) = user {
                let user = user.clone();
                sky.violation(format!("{who}: {user} still uses it"));
            }
            return;
        }
        for name in ["disk_id", "image_id"].into_iter().filter(|name| managed.contains(*name)) {
            let Some(Value::String(used)) = call.desired.get(name) else { continue };
            let live = sky.objects.get(&ObjectId(used.clone()));
            if live.is_none() {
                sky.violation(format!("{who}: {used} is not there"));
            }
        }
    }
}

fn shapes_sent(runner: &Runner, call: &Call<'_>) -> engine::value::Attributes {
    let schema = &runner.schema.types[call.ty];
    let programs = match call.phase.kind {
        ProgramKind::Create => &schema.create,
        ProgramKind::Update => &schema.update,
        ProgramKind::Delete => &schema.delete,
    };
    let sends = &programs[call.phase.program].phases[call.phase.phase].sends;
    shapes::sent(schema, sends, call)
}

/// A request on the wire: when its sender dies, it may still arrive.
struct Wire<'a> {
    runner: &'a Runner,
    request: Option<Request>,
}

impl Drop for Wire<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let (arrives, after) =
            self.runner.with_rng(|rng| (rng.per_mille(500), rng.below(LATE_MS / 2)));
        if arrives {
            let mut sky = lock(&self.runner.sky);
            let at = sky.now_ms() + after;
            sky.postpone(at, request);
        }
    }
}

/// A runner's side of the provider port.
pub(crate) struct Cloud(pub(crate) Arc<Runner>);

#[async_trait]
impl Provider for Cloud {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.0.schema.clone()
    }

    fn settle(&self) -> Duration {
        Duration::from_millis(SETTLE_MS)
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        self.0.look("list").await?;
        Ok(self.0.listed(ty))
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        self.0.look("read").await?;
        let objects = lock(&self.0.sky).objects.clone();
        match objects.get(id) {
            Some(live) => Ok(self.0.object(id, live)),
            None => Err(Error::new(Kind::NotFound, format!("{ty} {id} does not exist"))),
        }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.0.look("find").await?;
        let mut found = self.0.listed(ty);
        found.retain(|object| create.nonce.is_in(object.attributes["name"].as_str().unwrap()));
        Ok(found)
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let runner = &*self.0;
        runner.die_at("call").await;
        let address = runner.audit(call);
        let rates = &runner.rates;
        let words = match (call.phase.kind, call.phase.phase) {
            (ProgramKind::Create, 0) => "create",
            (ProgramKind::Create, _) => "activate",
            (ProgramKind::Update, _) => "update",
            (ProgramKind::Delete, _) => "delete",
        };
        let id = call.id.map_or("", |id| &id.0);
        runner.note(&format!("{words} {} {id} for {address}", call.ty));
        for (rate, kind) in [
            (rates.not_sent, Kind::NotSent),
            (rates.throttled, Kind::Throttled { after: None }),
            (rates.refused, Kind::Rejected),
            (rates.unauthenticated, Kind::Unauthenticated),
        ] {
            if runner.chance(rate) {
                runner.note(&format!("  {kind:?}"));
                return Err(Error::new(kind, "a fault"));
            }
        }
        let request = Request {
            ty: call.ty.into(),
            kind: call.phase.kind,
            creates: words == "create",
            ends: call.phase.kind == ProgramKind::Delete && call.phase.is_last(),
            id: call.id.cloned(),
            nonce: call.nonce.cloned(),
            sent: shapes_sent(runner, call),
            address,
            words,
        };
        runner.send(request).await
    }
}

impl Runner {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let rates = &self.rates;
        let mut wire = Wire { runner: self, request: Some(request) };
        self.latency().await;
        self.die_at("on the wire").await;
        let request = wire.request.take().unwrap();
        drop(wire);
        if self.chance(rates.lost_before) {
            self.note("  lost before");
            return Err(Self::doubt("no answer"));
        }
        if self.chance(rates.late) {
            let after = self.with_rng(|rng| rng.below(LATE_MS));
            self.note("  late");
            let mut sky = lock(&self.sky);
            let at = sky.now_ms() + after;
            sky.postpone(at, request);
            return Err(Self::doubt("no answer yet"));
        }
        let done = {
            let mut sky = lock(&self.sky);
            sky.catch_up();
            let first = self.reply(&mut sky, &request);
            if self.chance(rates.doubled) {
                sky.count("doubled");
                sky.note("  doubled");
                let second = self.reply(&mut sky, &request);
                if self.with_rng(|rng| rng.per_mille(500)) { second } else { first }
            } else {
                first
            }
        };
        self.latency().await;
        self.boundary("answer").await;
        if self.chance(rates.lost_after) {
            self.note("  lost after");
            return Err(Self::doubt("no answer"));
        }
        let reply = done?;
        if self.chance(rates.still_waiting) {
            self.note("  still waiting");
            return Err(Error::new(Kind::StillWaiting, "it is not ready"));
        }
        // Some answers do not show what was made.
        if self.chance(rates.bare) {
            self.note("  bare");
            return Ok(Reply { object: None });
        }
        Ok(reply)
    }

    /// What happens, and the answer, as it is at that moment.
    fn reply(&self, sky: &mut crate::sky::Sky, request: &Request) -> Result<Reply, Error> {
        let id = sky.effect(request)?;
        let live = id.and_then(|id| sky.objects.get(&id).map(|live| self.object(&id, live)));
        Ok(Reply { object: live })
    }
}
