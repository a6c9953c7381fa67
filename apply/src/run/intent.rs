//! The begin of steps: each ready step is prepared, its intent recorded, and its call started once the intent
//! is durable.

use std::sync::Arc;
use std::time::Duration;

use engine::address::{Address, Name};
use engine::event::Event;
use engine::journal::{CallId, PhaseRef, ProgramKind, Record, Started};
use engine::plan::{Change, Step, StepId};
use engine::schema::{Identity, TypeSchema};
use engine::sorted::Set;
use engine::state::{Nonce, ObjectId};
use engine::stored::seal_attributes;
use engine::value::{Attributes, Value};
use provider_port::{Notice, Provider, Secrets};
use tokio::time::Instant;

use super::call::{InFlight, SentAttributes};
use super::heartbeat::Heartbeat;
use super::prepare;
use super::send::Sending;
use super::{Answer, Run, StepContext};
use crate::ApplyError;
use crate::clock::Moment;
use crate::doubt::lookup::{Wanted, account_of, taken, wait_until_shown};
use crate::fill::FillScope;
use crate::refresh::sensitive;
use crate::step_error::StepError;
use crate::unseal::stored_object;

impl Run<'_> {
    /// Prepares every step that may begin, and records its intent.
    pub(super) async fn begin(&mut self) -> Result<Vec<StepId>, ApplyError> {
        self.heed_stop();
        let mut begun = Vec::new();
        for (step, tries) in std::mem::take(&mut self.calls.retries) {
            if self.halted {
                // The step had no effect. It remains to be done, as do the steps that need it.
                self.scheduler.give_back(step);
            } else if self.begin_step(step, tries).await? {
                begun.push(step);
            }
        }
        for provider in self.scheduler.ready_providers() {
            let bound = self.context().bound(&provider);
            while !self.halted && self.calls.count(&provider) < bound {
                let Some(step) = self.scheduler.take(&provider) else { break };
                if self.begin_step(step, 0).await? {
                    begun.push(step);
                }
            }
        }
        Ok(begun)
    }

    /// Notes that the run is to stop, so that no more step begins.
    fn heed_stop(&mut self) {
        if self.input.stop.is_cancelled() && !self.halted {
            self.halted = true;
            self.reporter.report.summary.cancelled = true;
        }
    }

    /// Records the intent of one step. Returns true if there is a call to make.
    pub(super) async fn begin_step(
        &mut self,
        id: StepId,
        tries: usize,
    ) -> Result<bool, ApplyError> {
        let step = self.scheduler.step(id);
        if self.acts_on_superseded(step) {
            self.calls.unwritten.insert(id);
            self.finish_step(id, None, Instant::now());
            return Ok(false);
        }
        if step.operation.only_judges() {
            self.judge_step(id).await;
            return Ok(false);
        }
        let change = &self.input.plan.changes[step.change];
        let only_waits = self.calls.waiting_only.contains(&id);
        let phase = step.phase.map(|it| if only_waits { it.only_waiting() } else { it });
        let Some(phase) = phase else {
            if let Some(object) = step.object.clone() {
                let address = step.address.clone();
                self.session.record(Record::Forgot { address, object })?;
            }
            self.calls.unwritten.insert(id);
            self.finish_step(id, None, Instant::now());
            return Ok(false);
        };
        let Some((provider, schema)) = self.context().provider(change) else {
            self.fail_step(id, StepError::missing_provider(&change.provider));
            return Ok(false);
        };
        self.reveal(change).await;
        self.heed_stop();
        if self.halted {
            self.scheduler.give_back(id);
            return Ok(false);
        }
        if let Some(trouble) = self.context().no_successor(step, phase, change) {
            self.fail_step(id, trouble);
            return Ok(false);
        }
        let (started, sent) = match self.context().call(step, phase, change, &schema) {
            Ok(call) => call,
            Err(trouble) => {
                self.fail_step(id, trouble);
                return Ok(false);
            }
        };
        self.session.record(Record::Started(Box::new(started.clone())))?;
        let (address, operation) = (step.address.clone(), step.operation);
        let since = self.calls.begin(id);
        let doubt = None;
        let flight = InFlight { started, sent, schema, provider, tries, since, doubt };
        let (step, doing) = (id.to_string(), flight.words().doing);
        self.reporter.events.push(Event::StepStarted { step, address, operation, doing });
        self.calls.add(id, flight);
        Ok(true)
    }

    /// Begins the call of a step whose intent is durable.
    pub(super) fn call(&mut self, id: StepId, since: &Moment) {
        let Some(flight) = self.calls.in_flight.get(&id) else { return };
        let step = self.scheduler.step(id);
        let change = &self.input.plan.changes[step.change];
        let emit = self.input.emit.clone();
        let (name, address) = (id.to_string(), step.address.clone());
        let sending = Sending {
            provider: flight.provider.clone(),
            started: flight.started.clone(),
            sent: flight.sent.clone(),
            live: self.context().live_to_send(step, change, flight),
            unchanged: self.context().unchanged(flight, change),
            secrets: Secrets {
                places: sensitive(&flight.schema, &flight.started.sensitive),
                variables: self.secrets.variables.clone(),
            },
            permit: self.calls.permits.permit(since.clone()),
            progress: move |notice: Notice| emit(event_of(notice, &name, &address)),
        };
        let heartbeat = Heartbeat::new(&self.input.emit, step, flight, false);
        self.calls.tasks.spawn(async move { (id, heartbeat.during(sending.go()).await) });
    }

    pub(super) fn look_up(&mut self, id: StepId) {
        let Some(flight) = self.calls.in_flight.get(&id) else { return };
        let flight = flight.clone();
        let taken = taken(self.session.snapshot(), &flight.schema, &flight.started);
        let key = self.session.snapshot().seal_key.clone();
        if flight.is_accepted() && flight.schema.identity != Identity::Ask {
            let (step, address) = (id.to_string(), flight.started.address.clone());
            let condition = "what the API accepted shows".to_owned();
            self.reporter.events.push(Event::StepWaiting { step, address, condition });
        }
        let heartbeat = Heartbeat::new(&self.input.emit, self.scheduler.step(id), &flight, true);
        self.calls.tasks.spawn(async move {
            // If this look-up shows that nothing happened, the same change is sent again. So a late effect
            // does no harm.
            let unsettled = false;
            let wanted = Wanted { call: flight.in_doubt(&key), taken: &taken, unsettled };
            let found = heartbeat.during(wait_until_shown(&flight.provider, wanted)).await;
            (id, Answer::LookedUp(found))
        });
    }
}

impl StepContext<'_> {
    pub(super) fn bound(&self, provider: &Name) -> usize {
        let own = self.input.providers.get(provider).map_or(1, |p| p.concurrency());
        self.input.parallelism.unwrap_or(own).min(own).max(1)
    }

    pub(super) fn provider(&self, change: &Change) -> Option<(Arc<dyn Provider>, Arc<TypeSchema>)> {
        let provider = self.input.providers.get(&change.provider)?.clone();
        let schema = provider.schema().types.get(&change.address.block.ty)?.clone();
        Some((provider, schema))
    }

    pub(super) fn scope(&self) -> FillScope<'_> {
        FillScope {
            snapshot: self.snapshot,
            providers: self.input.providers,
            variables: self.input.variables,
            looked_up: &self.input.plan.looked_up,
            clear: self.clear,
            takes_unshown_for_null: false,
        }
    }

    /// Returns the intent of a call, and the attributes that it sends.
    fn call(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
    ) -> Result<(Started, SentAttributes), StepError> {
        let secrets = self.delete_secrets(step, phase, change, schema);
        let desired = match phase.kind {
            ProgramKind::Delete => secrets.said,
            _ => prepare::desired(change, schema, phase, &self.scope())?,
        };
        let sent = SentAttributes {
            desired: Arc::new(desired),
            changed: Arc::new(prepare::changed(change)),
            ignored: change.ignored.clone(),
            readable: secrets.readable,
        };
        let mut started = self.started(step, phase, change, schema, &sent.desired);
        if phase.kind == ProgramKind::Delete {
            started.unshown = secrets.unknown;
        } else if !phase.makes() {
            // A create records none of these: its look-up compares all that the create sent.
            let known = self.live(&started, schema).unwrap_or_default();
            started.unshown = sent.borrow().unshown(schema, phase, &known, &self.snapshot.seal_key);
        }
        Ok((started, sent))
    }

    fn started(
        &self,
        step: &Step,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
        desired: &Attributes,
    ) -> Started {
        let object = if phase.makes() { None } else { self.object_of(step) };
        let name = self.name_given(phase, change, schema, desired);
        Started {
            call: CallId(self.snapshot.next_call),
            step: step.id.to_string(),
            address: step.address.clone(),
            provider: change.provider.clone(),
            operation: step.operation,
            phase,
            sensitive: self.sensitive_of(step, phase, change, object.as_ref()),
            object,
            nonce: phase.makes().then(|| self.nonce()),
            name: name.as_ref().and_then(|name| match name {
                Value::String(text) => Some(text.clone()),
                Value::Integer(number) => Some(number.to_string().into()),
                _ => None,
            }),
            secret_name: name.as_ref().and_then(|name| match name {
                Value::Sealed(sealed) => Some(sealed.fingerprint.clone()),
                _ => None,
            }),
            deposes: step.deposes,
            managed: change.managed.clone(),
            unshown: Set::new(),
            input_fingerprints: self.made_of(phase, change, schema, desired),
            dependencies: change.dependencies.clone(),
            account: self
                .input
                .providers
                .get(&change.provider)
                .and_then(|provider| account_of(&**provider, self.snapshot)),
            at_ms: self.input.host.now_ms(),
        }
    }

    /// Returns the name or id that a create gives to its object, if the spec chooses it by the type's
    /// identity. It is sealed if it is a secret.
    fn name_given(
        &self,
        phase: PhaseRef,
        change: &Change,
        schema: &TypeSchema,
        desired: &Attributes,
    ) -> Option<Value> {
        let name = schema.identity.chosen_attribute().filter(|_| phase.makes())?;
        let given = Attributes::from([(name.clone(), desired.get(name)?.clone())]);
        let places = sensitive(schema, &change.sensitive);
        seal_attributes(&given, &places, &self.snapshot.seal_key).remove(name)
    }

    pub(super) fn nonce(&self) -> Nonce {
        let random = self.input.host.random();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&random[..16]);
        Nonce::from_random(bytes)
    }

    /// Returns the object that a step acts on: the one in the plan, else the one that an earlier step made.
    pub(super) fn object_of(&self, step: &Step) -> Option<ObjectId> {
        step.object.clone().or_else(|| {
            let entry = self.snapshot.entries.get(&step.address)?;
            entry.current.as_ref().map(|object| object.id.clone())
        })
    }

    /// Returns the attributes of a call's object as the state has them.
    pub(super) fn live(&self, started: &Started, schema: &TypeSchema) -> Option<Attributes> {
        stored_object(self.snapshot, &started.address, started.object.as_ref()?, schema)
    }
}

fn event_of(notice: Notice, step: &str, address: &Address) -> Event {
    let (step, address) = (step.to_owned(), address.clone());
    match notice {
        Notice::Waiting(condition) => Event::StepWaiting { step, address, condition },
        Notice::Retrying { reason, after, attempt, attempts } => {
            let after_ms = millis(after);
            Event::StepRetried { step, address, reason, after_ms, attempt, attempts }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
