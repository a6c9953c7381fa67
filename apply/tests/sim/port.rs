//! The harness at the provider port: a provider that executes the calls of the executor in the simulated
//! cloud.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::ProgramKind;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use engine::value::Attributes;
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};

use crate::audit::{Asking, Meant};
use crate::cloud::{Cloud, LATE_MS, Live, Request, SETTLE_MS, lock};
use crate::keys;
use crate::runner::Runner;
use crate::shapes;
use crate::tickets;

impl Runner {
    fn doubt(why: &str) -> Error {
        Error::new(Kind::InDoubt, why)
    }

    /// Waits as long as a look at the cloud takes. The look may fail.
    async fn look(&self, what: &str) -> Result<(), Error> {
        self.boundary(what).await;
        self.latency().await;
        lock(&self.cloud).catch_up();
        self.boundary(what).await;
        if self.strikes("looks_fail", self.rates.looks_fail) {
            self.note(format_args!("{what} fails"));
            return Err(Self::doubt("the look failed"));
        }
        Ok(())
    }

    fn object(&self, id: &ObjectId, live: &Live) -> Object {
        let mut attributes = live.attributes.clone();
        let sensitive = &mut engine::value::Paths::none();
        engine::plan::facts::prior::derive(
            &self.schema.types[&live.ty],
            &mut attributes,
            sensitive,
        );
        Object { id: id.clone(), attributes }
    }

    /// Returns the objects that a list shows. The list may lag or leave objects out.
    fn listed(&self, ty: &str) -> Vec<Object> {
        let ago = self.behind_ms();
        let cloud = lock(&self.cloud);
        let objects = cloud.ago(ago);
        let is_left_out = |id| {
            ty != keys::TYPE
                && self.strikes("incomplete", self.rates.incomplete)
                && cloud.is_young(id)
        };
        let own = objects.iter().filter(|(id, live)| &*live.ty == ty && !is_left_out(id));
        let show = |(id, live): (&ObjectId, &Arc<Live>)| {
            self.note_shown(&cloud, id, live);
            self.object(id, live)
        };
        own.map(show).collect()
    }
}

impl Runner {
    /// Returns the ticket that a lost create was to make; None if it does not exist. A ticket is read by its
    /// id.
    fn ticket_of(&self, create: &Lookup<'_>) -> Option<Object> {
        let id = ObjectId(create.desired?.get("name")?.as_str()?.into());
        let live = lock(&self.cloud).seen(&id, self.behind_ms())?;
        Some(self.object(&id, &live))
    }
}

fn shapes_sent(runner: &Runner, call: &Call<'_>) -> Attributes {
    let schema = &runner.schema.types[call.ty];
    shapes::sent(schema, schema.phase(call.phase).unwrap(), call)
}

/// A request on the wire. If its sender dies, the request may still arrive.
pub(crate) struct SentRequest<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) request: Option<Request>,
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let (arrives, after) =
            self.runner.with_rng(|rng| (rng.per_mille(500), rng.below(LATE_MS / 2)));
        if arrives {
            let mut cloud = lock(&self.runner.cloud);
            let after = if request.is_prompt() { after % keys::LATE_MS } else { after };
            let at = cloud.now_ms() + after;
            cloud.postpone(at, request);
        }
    }
}

/// The provider that a runner calls.
pub(crate) struct PortProvider(pub(crate) Arc<Runner>);

#[async_trait]
impl Provider for PortProvider {
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
        let ago = self.0.behind_ms();
        let cloud = lock(&self.0.cloud);
        match cloud.seen(id, ago) {
            Some(live) => {
                self.0.note_shown(&cloud, id, &live);
                Ok(self.0.object(id, &live))
            }
            None => Err(Error::new(Kind::NotFound, format!("{ty} {id} does not exist"))),
        }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.0.look("find").await?;
        if ty == tickets::TYPE {
            return Ok(self.0.ticket_of(create).into_iter().collect());
        }
        let mut found = self.0.listed(ty);
        let own = create.desired.and_then(|desired| desired.get("name")?.as_str());
        found.retain(|object| {
            let name = object.attributes["name"].as_str().unwrap();
            if ty == keys::TYPE { own == Some(name) } else { create.nonce.is(name) }
        });
        Ok(found)
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let runner = &*self.0;
        runner.die_at("call").await;
        if let Some(id) = call.id.filter(|_| !call.phase.calls()) {
            return runner.wait_for(call.ty, id).await;
        }
        let sent = shapes_sent(runner, call);
        let Meant { address, call: number } = runner.audit(&Asking::from(call), &sent);
        let rates = &runner.rates;
        let words = match (call.phase.kind, call.phase.phase) {
            (ProgramKind::Create, 0) => "create",
            (ProgramKind::Create, _) => "activate",
            (ProgramKind::Update, _) => "update",
            (ProgramKind::Delete, _) => "delete",
        };
        let id = call.id.map_or("", |id| &id.0);
        runner.note(format_args!("{words} {} {id} for {address}", call.ty));
        for (class, rate, kind) in [
            ("not_sent", rates.not_sent, Kind::NotSent),
            ("throttled", rates.throttled, Kind::Throttled),
            ("refused", rates.refused, Kind::Rejected),
            ("unauthenticated", rates.unauthenticated, Kind::Unauthenticated),
        ] {
            if runner.strikes(class, rate) {
                runner.note(format_args!("  {kind:?}"));
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
            sent,
            address,
            call: number,
            words,
        };
        runner.send(request).await
    }
}

impl Runner {
    /// Performs the wait of a phase without its call: it looks, and changes nothing.
    async fn wait_for(&self, ty: &str, id: &ObjectId) -> Result<Reply, Error> {
        self.note(format_args!("waits for {ty} {id}"));
        self.latency().await;
        let live = {
            let cloud = lock(&self.cloud);
            cloud.objects.get(id).map(|live| self.object(id, live))
        };
        if live.is_none() || self.strikes("still_waiting", self.rates.still_waiting) {
            self.note("  still waiting");
            return Err(Error::new(Kind::StillWaiting, "it is not ready").about(live));
        }
        Ok(Reply { object: live })
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let is_quick = request.is_prompt();
        let mut sent = SentRequest { runner: self, request: Some(request) };
        if is_quick {
            self.short_latency().await;
        } else {
            self.latency().await;
        }
        self.die_at("on the wire").await;
        let request = sent.request.take().unwrap();
        drop(sent);
        if self.strikes("lost_before", self.rates.lost_before) {
            self.note("  lost before");
            return Err(Self::doubt("no answer"));
        }
        if self.strikes("late", self.rates.late) {
            let after = self.late_by(&request);
            self.note("  late");
            let mut cloud = lock(&self.cloud);
            let at = cloud.now_ms() + after;
            cloud.postpone(at, request);
            return Err(Self::doubt("no answer yet"));
        }
        if request.creates
            && self.rates.accepted > 0
            && self.strikes("accepted", self.rates.accepted)
        {
            self.note("  accepted");
            let after = self.shows_after(&request);
            let mut cloud = lock(&self.cloud);
            let at = cloud.now_ms() + after;
            cloud.postpone(at, request);
            return Ok(Reply { object: None });
        }
        let done = {
            let mut cloud = lock(&self.cloud);
            cloud.catch_up();
            let first = self.reply(&mut cloud, &request);
            if !request.is_prompt() && self.strikes("doubled", self.rates.doubled) {
                cloud.note_second_execution(&request);
                let second = self.reply(&mut cloud, &request);
                if self.with_rng(|rng| rng.per_mille(500)) { second } else { first }
            } else {
                first
            }
        };
        self.latency().await;
        self.boundary("answer").await;
        if self.strikes("lost_after", self.rates.lost_after) {
            self.note("  lost after");
            return Err(Self::doubt("no answer"));
        }
        let reply = done?;
        if self.strikes("still_waiting", self.rates.still_waiting) {
            self.note("  still waiting");
            return Err(Error::new(Kind::StillWaiting, "it is not ready"));
        }
        // Some answers do not show the object.
        if self.strikes("bare", self.rates.bare) {
            self.note("  bare");
            return Ok(Reply { object: None });
        }
        Ok(reply)
    }

    /// Executes a request, and returns the answer with the object as it is at that moment.
    fn reply(&self, cloud: &mut Cloud, request: &Request) -> Result<Reply, Error> {
        let id = cloud.effect(request)?;
        let live = id.and_then(|id| cloud.objects.get(&id).map(|live| self.object(&id, live)));
        Ok(Reply { object: live })
    }
}
