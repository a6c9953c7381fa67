//! Executing a plan: ready steps at once, each journaled before its call and after its answer.
//!
//! One task owns the journal, the state and the schedule; calls run beside it. In each turn the
//! answers that came in are folded, the steps that became ready are prepared, and all records of
//! the turn are made durable in one write before the calls begin. Nothing is decided here that the
//! plan left open, but one thing: what became of a call in doubt, which is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::address::{Address, Name};
use engine::event::{Event, Summary};
use engine::journal::{CallId, Outcome, PhaseRef, ProgramKind, Record, Resolution, Started};
use engine::plan::live::{overlay, stored_attributes};
use engine::plan::{Action, Change, Plan, Step, StepId, agree, lint, saved};
use engine::schema::{Identity, Operation, SeenIn, Sends, TypeSchema};
use engine::state::{Nonce, ObjectId, OutputValue};
use engine::stored::{Stored, seal, seal_attributes};
use engine::value::{Attributes, Datum, Paths, Value};
use provider_port::{Call, Error, Kind, Notice, Provider, Reply};
use tokio::task::JoinSet;
use tokio::time::Instant as Moment;
use tokio_util::sync::CancellationToken;

use crate::fill::{FillScope, known};
use crate::lookup::{Found, creates, look_up, seen};
use crate::observe::sensitive;
use crate::prepare::{self, Unfit};
use crate::scheduler::{Scheduler, Status};
use crate::session::Session;
use crate::{ApplyError, Host, Providers};

/// How often one step is begun: once, and again after a look-up found that nothing happened.
const TRIES_MAX: usize = 3;

/// A call begins within this time after its record, or not at all: a process that stood still in
/// between may have lost its place to another run, which believes that nothing more comes.
const SEND_WITHIN: Duration = Duration::from_secs(5);

/// For how long a given-up create is looked for: 30 days, in milliseconds.
const WATCH_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Takes events. Called from the run's own task and from running calls.
pub type Emit = Arc<dyn Fn(Event) + Send + Sync>;

/// What an execution needs beside the session.
pub struct Execution<'a> {
    /// The plan, which has passed its linter.
    pub plan: &'a Plan,
    /// The providers.
    pub providers: &'a Providers,
    /// Clock and randomness.
    pub host: &'a dyn Host,
    /// The variables, for secrets that the plan does not hold.
    pub variables: &'a BTreeMap<Name, Datum>,
    /// At most this many calls at once per provider instance; none: as many as it bears.
    pub parallelism: Option<usize>,
    /// Where events go.
    pub emit: Emit,
    /// Cancelled when no new step may begin.
    pub stop: &'a CancellationToken,
    /// The run's name.
    pub run: &'a str,
}

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// In counts.
    pub summary: Summary,
    /// The steps that failed.
    pub failures: Vec<Failure>,
    /// The addresses of which nobody knows what happened.
    pub in_doubt: Vec<Address>,
    /// The steps that did not begin because the run was stopped.
    pub remaining: Vec<Step>,
    /// The outputs that are known now; sensitive ones in clear.
    pub outputs: BTreeMap<Name, (Value, bool)>,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose object.
    pub address: Address,
    /// What was to be done.
    pub operation: Operation,
    /// What happened.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Runs a plan to its end, to a stop, or to a failure of the store.
pub async fn execute(session: &mut Session, input: &Execution<'_>) -> Result<Report, ApplyError> {
    let mut run = Run::new(session, input);
    run.open()?;
    let ended = run.steps().await;
    // Calls that still run when the store fails have durable intents: the next run looks them up.
    run.calls.shutdown().await;
    ended?;
    run.close().await
}

/// What a task beside the run brought back.
enum Answer {
    Called(Box<Result<Reply, Error>>),
    LookedUp(Found),
}

/// A call that is under way.
struct InFlight {
    call: CallId,
    started: Started,
    desired: Arc<Attributes>,
    schema: Arc<TypeSchema>,
    provider: Arc<dyn Provider>,
    tries: usize,
    since: Instant,
    /// Whether an earlier try of the step, or this one, was in doubt.
    doubted: bool,
    /// What did not come true after the call had done its work.
    unfulfilled: Option<Unfit>,
}

struct Run<'a> {
    session: &'a mut Session,
    input: &'a Execution<'a>,
    scheduler: Scheduler<'a>,
    calls: JoinSet<(StepId, Answer)>,
    in_flight: BTreeMap<StepId, InFlight>,
    busy: BTreeMap<Name, usize>,
    /// Steps to begin again, with how often they were begun.
    again: Vec<(StepId, usize)>,
    /// Objects with secrets, in clear.
    clear: BTreeMap<Address, Attributes>,
    /// Told once the records that they report are durable.
    events: Vec<Event>,
    report: Report,
    /// No new step begins.
    halted: bool,
}

impl<'a> Run<'a> {
    fn new(session: &'a mut Session, input: &'a Execution<'a>) -> Self {
        Self {
            session,
            input,
            scheduler: Scheduler::new(input.plan),
            calls: JoinSet::new(),
            in_flight: BTreeMap::new(),
            busy: BTreeMap::new(),
            again: Vec::new(),
            clear: BTreeMap::new(),
            events: Vec::new(),
            report: Report::default(),
            halted: false,
        }
    }

    fn open(&mut self) -> Result<(), ApplyError> {
        let plan = self.input.plan;
        let run = self.input.run.to_owned();
        (self.input.emit)(Event::RunStarted { run: run.clone(), steps: plan.steps.len() });
        let serial = self.session.snapshot().serial;
        let at_ms = self.input.host.now_ms();
        let digest = saved::digest(plan);
        self.session.record(Record::RunOpened { run, serial, plan: digest, at_ms })?;
        for record in &plan.seen {
            self.session.record(record.clone())?;
        }
        self.unwatch_old(at_ms)?;
        Ok(())
    }

    /// What has not surfaced in a month will not.
    fn unwatch_old(&mut self, now_ms: u64) -> Result<(), ApplyError> {
        let watched = &self.session.snapshot().watched;
        let old = watched.iter().filter(|w| now_ms.saturating_sub(w.since_ms) > WATCH_MS);
        let nonces: Vec<Nonce> = old.map(|watched| watched.nonce.clone()).collect();
        for nonce in nonces {
            self.session.record(Record::Unwatched { nonce })?;
        }
        Ok(())
    }

    /// Turns until nothing runs and nothing can begin.
    async fn steps(&mut self) -> Result<(), ApplyError> {
        loop {
            let begun = self.begin().await?;
            // Taken before the write: what came in between counts as well.
            let mut since = Moment::now();
            self.session.flush().await?;
            while !begun.is_empty() && since.elapsed() > SEND_WITHIN {
                since = Moment::now();
                self.session.confirm().await?;
            }
            for event in self.events.drain(..) {
                (self.input.emit)(event);
            }
            for step in begun {
                self.call(step, since);
            }
            if self.calls.is_empty() {
                // A step that only touched the state may have made others ready.
                if self.halted || self.scheduler.ready_providers().is_empty() {
                    return Ok(());
                }
                continue;
            }
            self.take_answers().await?;
        }
    }

    async fn take_answers(&mut self) -> Result<(), ApplyError> {
        let stop = self.input.stop;
        let first = if self.halted {
            self.calls.join_next().await
        } else {
            tokio::select! {
                // In this order, and not in a random one: a stop comes first.
                biased;
                () = stop.cancelled() => {
                    self.halted = true;
                    self.report.summary.cancelled = true;
                    (self.input.emit)(Event::Stopping { running: self.calls.len() });
                    return Ok(());
                }
                answer = self.calls.join_next() => answer,
            }
        };
        let mut next = first;
        while let Some(answer) = next {
            // A task that panicked leaves its step in flight: it is in doubt, as after a crash.
            if let Ok((step, answer)) = answer {
                self.answer(step, answer)?;
            }
            next = self.calls.try_join_next();
        }
        Ok(())
    }

    /// Prepares every step that may begin, and records their intents.
    async fn begin(&mut self) -> Result<Vec<StepId>, ApplyError> {
        if self.input.stop.is_cancelled() && !self.halted {
            self.halted = true;
            self.report.summary.cancelled = true;
        }
        let mut begun = Vec::new();
        if self.halted {
            for (step, _) in std::mem::take(&mut self.again) {
                self.skip_rest(step, Status::Failed, "the run was stopped");
            }
            return Ok(begun);
        }
        for (step, tries) in std::mem::take(&mut self.again) {
            if self.begin_step(step, tries).await? {
                begun.push(step);
            }
        }
        for provider in self.scheduler.ready_providers() {
            let bound = self.bound(&provider);
            while self.busy.get(&provider).copied().unwrap_or(0) < bound {
                let Some(step) = self.scheduler.take(&provider) else { break };
                if self.begin_step(step, 0).await? {
                    begun.push(step);
                }
            }
        }
        Ok(begun)
    }

    fn bound(&self, provider: &Name) -> usize {
        let own = self.input.providers.get(provider).map_or(1, |p| p.concurrency());
        self.input.parallelism.unwrap_or(own).min(own).max(1)
    }

    /// Records the intent of one step. Returns whether there is a call to make.
    async fn begin_step(&mut self, id: StepId, tries: usize) -> Result<bool, ApplyError> {
        let step = self.scheduler.step(id);
        let change = &self.input.plan.changes[step.change];
        let Some(phase) = step.phase else {
            if let Some(object) = step.object.clone() {
                let address = step.address.clone();
                self.session.record(Record::Forgot { address, object })?;
            }
            self.finish_step(id, None, Instant::now());
            return Ok(false);
        };
        let Some((provider, schema)) = self.provider(change) else {
            self.fail_step(id, Unfit::missing_provider(&change.provider));
            return Ok(false);
        };
        self.reveal(change).await;
        let desired = match phase.kind {
            ProgramKind::Delete => Ok(Attributes::new()),
            _ => prepare::desired(change, &schema, &self.scope()),
        };
        let desired = match desired {
            Ok(desired) => desired,
            Err(unfit) => {
                self.fail_step(id, unfit);
                return Ok(false);
            }
        };
        let started = self.started(step, phase, change, &schema, &desired);
        let call = started.call;
        self.session.record(Record::Started(Box::new(started.clone())))?;
        let (address, operation) = (step.address.clone(), step.operation);
        self.events.push(Event::StepStarted { step: id.to_string(), address, operation });
        *self.busy.entry(change.provider.clone()).or_default() += 1;
        self.in_flight.insert(
            id,
            InFlight {
                call,
                started,
                desired: Arc::new(desired),
                schema,
                provider,
                tries,
                since: Instant::now(),
                doubted: tries > 0,
                unfulfilled: None,
            },
        );
        Ok(true)
    }

    fn provider(&self, change: &Change) -> Option<(Arc<dyn Provider>, Arc<TypeSchema>)> {
        let provider = self.input.providers.get(&change.provider)?.clone();
        let schema = provider.schema().types.get(&change.address.block.ty)?.clone();
        Some((provider, schema))
    }

    fn scope(&self) -> FillScope<'_> {
        FillScope {
            snapshot: self.session.snapshot(),
            providers: self.input.providers,
            variables: self.input.variables,
            clear: &self.clear,
        }
    }

    fn started(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
        desired: &Attributes,
    ) -> Started {
        let creates = phase.kind == ProgramKind::Create && phase.phase == 0;
        let unique = matches!(schema.identity, Identity::UniqueName { .. });
        let name = schema.name_attribute.as_ref().filter(|_| unique && creates);
        Started {
            call: CallId(self.session.snapshot().next_call),
            step: step.id.to_string(),
            address: step.address.clone(),
            provider: change.provider.clone(),
            operation: step.operation,
            phase,
            object: if creates { None } else { self.object_of(step) },
            nonce: creates.then(|| self.nonce()),
            name: name.and_then(|name| match desired.get(name) {
                Some(Value::String(text)) => Some(text.clone()),
                _ => None,
            }),
            deposes: step.deposes,
            managed: change.managed.clone(),
            sensitive: change.sensitive.clone(),
            dependencies: change.dependencies.clone(),
            at_ms: self.input.host.now_ms(),
        }
    }

    fn nonce(&self) -> Nonce {
        let random = self.input.host.random();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&random[..16]);
        Nonce::from_random(bytes)
    }

    /// The object that a step acts on: the planned one, else what an earlier step made.
    fn object_of(&self, step: &Step) -> Option<ObjectId> {
        step.object.clone().or_else(|| {
            let entry = self.session.snapshot().entries.get(&step.address)?;
            entry.current.as_ref().map(|object| object.id.clone())
        })
    }

    /// Brings into the clear what the residuals of a change need and the state only fingerprints.
    async fn reveal(&mut self, change: &Change) {
        let mut needed = lint::slots(change.after.iter().flat_map(|after| after.values()));
        for expr in change.secrets.values() {
            let unknown = Value::unknown(engine::types::Type::Any, expr.clone());
            needed.extend(lint::slots([&unknown]));
        }
        needed.remove(&change.address);
        for address in needed {
            if self.clear.contains_key(&address) || !self.holds_sealed(&address) {
                continue;
            }
            if let Some(attributes) = self.revealed(&address).await {
                self.clear.insert(address, attributes);
            }
        }
    }

    fn holds_sealed(&self, address: &Address) -> bool {
        let entry = self.session.snapshot().entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        current.is_some_and(|object| !object.attributes.sealed.is_empty())
    }

    /// The secrets of an object: computed from its own spec, else read from the API.
    async fn revealed(&self, address: &Address) -> Option<Attributes> {
        let change = self.input.plan.change(address)?;
        let (provider, schema) = self.provider(change)?;
        if !change.secrets.is_empty() {
            let scope = self.scope();
            let mut clear = Attributes::new();
            for (name, expr) in &change.secrets {
                clear.insert(name.clone(), known(expr, &scope).ok()?.value);
            }
            engine::plan::live::derive(&schema, &mut clear, &mut Paths::none());
            return Some(clear);
        }
        let id = change.object.as_ref()?;
        let object = provider.read(&address.block.ty, id).await.ok()?;
        Some(object.attributes)
    }

    /// Begins the call of a step whose intent is durable.
    fn call(&mut self, id: StepId, since: Moment) {
        let Some(flight) = self.in_flight.get(&id) else { return };
        let step = self.scheduler.step(id);
        let change = &self.input.plan.changes[step.change];
        let (provider, started) = (flight.provider.clone(), flight.started.clone());
        let (desired, changed) = (flight.desired.clone(), prepare::changed(change));
        let live = self.live(&started, &flight.schema);
        let emit = self.input.emit.clone();
        let (name, address) = (id.to_string(), step.address.clone());
        self.calls.spawn(async move {
            let progress = |notice: Notice| emit(event_of(notice, &name, &address));
            let call = Call {
                ty: &started.address.block.ty,
                phase: started.phase,
                id: started.object.as_ref(),
                nonce: started.nonce.as_ref(),
                desired: &desired,
                live: live.as_ref(),
                changed: &changed,
                progress: &progress,
            };
            let result = if since.elapsed() > SEND_WITHIN {
                Err(Error::new(Kind::NotSent, "this process stood still before the call"))
            } else {
                provider.perform(&call).await
            };
            (id, Answer::Called(Box::new(result)))
        });
    }

    /// The call's object as the state knows it.
    fn live(&self, started: &Started, schema: &TypeSchema) -> Option<Attributes> {
        let entry = self.session.snapshot().entries.get(&started.address)?;
        let object = entry.object(started.object.as_ref()?)?;
        stored_attributes(&object.attributes, schema).ok()
    }

    fn look_up(&mut self, id: StepId) {
        let Some(flight) = self.in_flight.get(&id) else { return };
        let (provider, schema) = (flight.provider.clone(), flight.schema.clone());
        let (started, desired) = (flight.started.clone(), flight.desired.clone());
        self.calls.spawn(async move {
            let found = look_up(&provider, &schema, &started, Some(&desired)).await;
            (id, Answer::LookedUp(found))
        });
    }

    fn answer(&mut self, id: StepId, answer: Answer) -> Result<(), ApplyError> {
        match answer {
            Answer::Called(result) => match *result {
                Ok(reply) => self.replied(id, &reply),
                Err(error) => self.failed(id, &error),
            },
            Answer::LookedUp(found) => self.looked_up(id, found),
        }
    }

    /// An answer to a create that shows no object leaves open which object it made.
    fn replied(&mut self, id: StepId, reply: &Reply) -> Result<(), ApplyError> {
        let makes = self.in_flight.get(&id).is_some_and(|flight| creates(&flight.started));
        if makes && reply.object.is_none() {
            return self.doubt(id, &Error::new(Kind::InDoubt, "the answer shows no object"));
        }
        self.done(id, reply.object.as_ref())
    }

    fn done(
        &mut self,
        id: StepId,
        object: Option<&provider_port::Object>,
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let gone =
            flight.started.phase.kind == ProgramKind::Delete && flight.started.phase.is_last();
        let seen = object.filter(|_| !gone).map(|object| {
            let known = self.known(&flight);
            let key = &self.session.snapshot().seal_key;
            seen(object, &known, &flight.schema, &flight.started, key)
        });
        self.keep_clear(&flight, object);
        let made = seen.as_ref().map(|seen| seen.id.to_string());
        let call = flight.call;
        self.session.record(Record::Finished { call, outcome: Outcome::Done { object: seen } })?;
        self.finish_step(id, made, flight.since);
        Ok(())
    }

    /// What is known of an object before its answer: what the state has, and what was sent of the
    /// attributes that the API never shows.
    fn known(&self, flight: &InFlight) -> Attributes {
        let mut known = self.live(&flight.started, &flight.schema).unwrap_or_default();
        let PhaseRef { kind, program, phase, .. } = flight.started.phase;
        let programs = match kind {
            ProgramKind::Create => &flight.schema.create,
            ProgramKind::Update => &flight.schema.update,
            ProgramKind::Delete => return known,
        };
        let sends = programs.get(program).and_then(|p| p.phases.get(phase)).map(|p| &p.sends);
        let hidden: Attributes = flight
            .desired
            .iter()
            .filter(|(name, _)| {
                let attribute = flight.schema.attributes.get(*name);
                attribute.is_some_and(|attribute| attribute.seen_in == SeenIn::Never)
                    && sends.is_some_and(|sends: &Sends| sends.carries(name))
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let paths = sensitive(&flight.schema, &flight.started.sensitive);
        let key = &self.session.snapshot().seal_key;
        known = overlay(&known, &seal_attributes(&hidden, &paths, key));
        known
    }

    fn keep_clear(&mut self, flight: &InFlight, object: Option<&provider_port::Object>) {
        let secret = !sensitive(&flight.schema, &flight.started.sensitive).is_empty();
        if !secret || flight.started.phase.kind == ProgramKind::Delete {
            return;
        }
        let empty = Attributes::new();
        let answered = object.map_or(&empty, |object| &object.attributes);
        let clear = overlay(&flight.desired, answered);
        self.clear.insert(flight.started.address.clone(), clear);
    }

    fn failed(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.in_flight.get_mut(&id) else { return Ok(()) };
        let deletes = flight.started.phase.kind == ProgramKind::Delete;
        match error.kind {
            Kind::NotFound if deletes => return self.vanished(id),
            Kind::InDoubt => return self.doubt(id, error),
            Kind::StillWaiting => {
                flight.unfulfilled =
                    Some(Unfit { message: error.to_string(), help: error.help.clone() });
                return self.doubt(id, error);
            }
            // A refusal after a doubt may refuse the repetition of what did happen.
            Kind::Rejected | Kind::NotFound if flight.doubted => return self.doubt(id, error),
            Kind::Unauthenticated => self.halted = true,
            _ => {}
        }
        let Some(flight) = self.land(id) else { return Ok(()) };
        let reason = error.to_string();
        let outcome = Outcome::NoEffect { reason: reason.clone() };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.fail_step(id, Unfit { message: reason, help: error.help.clone() });
        Ok(())
    }

    /// The object of a delete is gone: all of its program is done.
    fn vanished(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let outcome = Outcome::Done { object: None };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.finish_step(id, None, flight.since);
        Ok(())
    }

    fn doubt(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.in_flight.get_mut(&id) else { return Ok(()) };
        flight.doubted = true;
        let (call, reason) = (flight.call, error.to_string());
        self.session.record(Record::Doubted { call, reason })?;
        self.look_up(id);
        Ok(())
    }

    fn looked_up(&mut self, id: StepId, found: Found) -> Result<(), ApplyError> {
        let Some(flight) = self.in_flight.get(&id) else { return Ok(()) };
        let deletes_last =
            flight.started.phase.kind == ProgramKind::Delete && flight.started.phase.is_last();
        match found {
            Found::Unknown(why) => self.stay_in_doubt(id, &why),
            found if flight.unfulfilled.is_some() => self.unfulfilled(id, found),
            Found::There(object) if creates(&flight.started) => self.done(id, Some(&object)),
            Found::There(object) if happened(flight, &object) => self.done(id, Some(&object)),
            Found::There(_) => self.nothing_happened(id),
            Found::Absent if creates(&flight.started) => self.create_absent(id),
            Found::Absent if deletes_last => self.vanished(id),
            Found::Absent => self.object_gone(id),
        }
    }

    /// The call did its work, and what it waited for did not come true: the object is recorded as
    /// it is, and the step has failed.
    fn unfulfilled(&mut self, id: StepId, found: Found) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let resolution = match found {
            Found::There(object) => {
                let known = self.known(&flight);
                let key = &self.session.snapshot().seal_key;
                let object = seen(&object, &known, &flight.schema, &flight.started, key);
                Resolution::Found { object }
            }
            _ if creates(&flight.started) => Resolution::Absent { at_ms: self.input.host.now_ms() },
            _ => Resolution::Gone,
        };
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        if let Some(unfit) = flight.unfulfilled {
            self.fail_step(id, unfit);
        }
        Ok(())
    }

    /// A create left nothing: its nonce is watched, and it begins again under a new one.
    fn create_absent(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let at_ms = self.input.host.now_ms();
        let resolution = Resolution::Absent { at_ms };
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        self.try_again(id, flight.tries);
        Ok(())
    }

    fn nothing_happened(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let reason = "the object shows that nothing happened".to_owned();
        let outcome = Outcome::NoEffect { reason };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.try_again(id, flight.tries);
        Ok(())
    }

    fn object_gone(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let resolution = Resolution::Gone;
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        let message = "the object is gone".to_owned();
        let help = Some("plan again: it will be made anew".to_owned());
        self.fail_step(id, Unfit { message, help });
        Ok(())
    }

    fn try_again(&mut self, id: StepId, tries: usize) {
        if tries + 1 < TRIES_MAX {
            self.again.push((id, tries + 1));
            return;
        }
        let message = format!("{TRIES_MAX} tries ended without an answer, and nothing happened");
        self.fail_step(id, Unfit { message, help: Some("apply again later".to_owned()) });
    }

    fn stay_in_doubt(&mut self, id: StepId, why: &str) -> Result<(), ApplyError> {
        let Some(flight) = self.land(id) else { return Ok(()) };
        let reason = why.to_owned();
        self.session.record(Record::Doubted { call: flight.call, reason: reason.clone() })?;
        let step = self.scheduler.step(id);
        self.report.in_doubt.push(step.address.clone());
        let (address, operation) = (step.address.clone(), step.operation);
        let step = id.to_string();
        self.events.push(Event::StepDoubted { step, address, operation, reason });
        self.skip_rest(id, Status::Doubted, "it is in doubt");
        Ok(())
    }

    /// Takes a call out of those under way.
    fn land(&mut self, id: StepId) -> Option<InFlight> {
        let flight = self.in_flight.remove(&id)?;
        if let Some(busy) = self.busy.get_mut(&flight.started.provider) {
            *busy = busy.saturating_sub(1);
        }
        Some(flight)
    }

    fn finish_step(&mut self, id: StepId, made: Option<String>, since: Instant) {
        let step = self.scheduler.step(id);
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.events.push(Event::StepFinished {
            step: id.to_string(),
            address: step.address.clone(),
            operation: step.operation,
            id: made,
            ms,
        });
        self.scheduler.done(id);
    }

    fn fail_step(&mut self, id: StepId, unfit: Unfit) {
        let step = self.scheduler.step(id);
        let (address, operation) = (step.address.clone(), step.operation);
        let Unfit { message, help } = unfit;
        self.report.failures.push(Failure {
            address: address.clone(),
            operation,
            message: message.clone(),
            help: help.clone(),
        });
        let name = id.to_string();
        self.events.push(Event::StepFailed { step: name, address, operation, message, help });
        self.skip_rest(id, Status::Failed, "it failed");
    }

    fn skip_rest(&mut self, id: StepId, status: Status, why: &str) {
        for (skipped, cause) in self.scheduler.fail(id, status) {
            let needed = self.scheduler.step(cause);
            let reason = if cause == id {
                format!("it needs {} {}, and {why}", needed.operation.word(), needed.address)
            } else {
                format!("it needs {} {}, which is skipped", needed.operation.word(), needed.address)
            };
            let address = self.scheduler.step(skipped).address.clone();
            self.report.summary.skipped += 1;
            self.events.push(Event::StepSkipped { step: skipped.to_string(), address, reason });
        }
    }

    async fn close(mut self) -> Result<Report, ApplyError> {
        self.report.remaining = self.scheduler.not_begun().cloned().collect();
        // A call whose task ended without an answer is in doubt, as after a crash.
        for flight in std::mem::take(&mut self.in_flight).into_values() {
            self.report.in_doubt.push(flight.started.address);
        }
        self.count();
        let outputs = self.outputs();
        self.session.record(Record::Outputs { outputs })?;
        let outcome = if self.report.summary.cancelled {
            "cancelled"
        } else if self.report.failures.is_empty() && self.report.in_doubt.is_empty() {
            "done"
        } else {
            "failed"
        };
        self.session.record(Record::RunClosed { outcome: outcome.to_owned() })?;
        self.session.flush().await?;
        for event in self.events.drain(..) {
            (self.input.emit)(event);
        }
        (self.input.emit)(Event::RunFinished(self.report.summary.clone()));
        Ok(self.report)
    }

    fn count(&mut self) {
        let mut undone: BTreeSet<usize> = BTreeSet::new();
        for step in &self.input.plan.steps {
            if self.scheduler.status(step.id) != Status::Done {
                undone.insert(step.change);
            }
        }
        let summary = &mut self.report.summary;
        for (index, change) in self.input.plan.changes.iter().enumerate() {
            if undone.contains(&index) {
                continue;
            }
            match change.action {
                Action::Create => summary.created += 1,
                Action::Import => summary.imported += 1,
                Action::Update => summary.updated += 1,
                Action::Replace => summary.replaced += 1,
                Action::Delete => summary.deleted += 1,
                Action::Forget => summary.forgotten += 1,
                _ => {}
            }
        }
        summary.failed = self.report.failures.len();
        summary.in_doubt = self.report.in_doubt.len();
    }

    /// The outputs as the state keeps them. One that cannot be computed keeps its last value.
    fn outputs(&mut self) -> BTreeMap<Name, OutputValue> {
        let mut kept = self.session.snapshot().outputs.clone();
        let mut known_now = BTreeMap::new();
        for (name, change) in &self.input.plan.outputs {
            if change.action == Action::Delete {
                kept.remove(name);
                continue;
            }
            let scope = self.scope();
            let value = match (&change.secret, &change.after) {
                (Some(expr), _) => known(expr, &scope).map(|datum| datum.value),
                (None, Some(after)) => crate::fill::fill(after, &scope),
                (None, None) => continue,
            };
            let Ok(value) = value else { continue };
            let paths = if change.sensitive { Paths::whole() } else { Paths::none() };
            let sealed = seal(&value, &paths, &self.session.snapshot().seal_key);
            let stored = Stored::of_sealed(&sealed);
            kept.insert(name.clone(), OutputValue { value: stored, sensitive: change.sensitive });
            known_now.insert(name.clone(), (value, change.sensitive));
        }
        self.report.outputs = known_now;
        kept
    }
}

/// Whether an object shows that an in-doubt change of it did happen.
fn happened(flight: &InFlight, object: &provider_port::Object) -> bool {
    let PhaseRef { kind, program, phase, .. } = flight.started.phase;
    let programs = match kind {
        ProgramKind::Create => &flight.schema.create,
        ProgramKind::Update => &flight.schema.update,
        // A drain may always be repeated, and a delete left an object that is there.
        ProgramKind::Delete => return false,
    };
    let Some(phase) = programs.get(program).and_then(|p| p.phases.get(phase)) else { return false };
    let key = engine::digest::SealKey::from_random([0; 32]);
    flight
        .started
        .managed
        .iter()
        .filter(|name| phase.sends.carries(name))
        .filter_map(|name| flight.desired.get(name).zip(object.attributes.get(name)))
        .all(|(wanted, live)| agree(wanted, live, &key))
}

fn event_of(notice: Notice, step: &str, address: &Address) -> Event {
    let (step, address) = (step.to_owned(), address.clone());
    match notice {
        Notice::Waiting(condition) => Event::StepWaiting { step, address, condition },
        Notice::Retrying { reason, after } => {
            Event::StepRetried { step, address, reason, after_ms: millis(after) }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Unfit {
    fn missing_provider(provider: &Name) -> Self {
        Self {
            message: format!("the provider `{provider}` is not configured"),
            help: Some(format!("declare [provider.{provider}]")),
        }
    }
}
