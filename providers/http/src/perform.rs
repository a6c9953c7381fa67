//! Doing: one phase of one object. At most one mutating call, then at most one wait.

use std::collections::BTreeMap;
use std::time::Instant;

use engine::address::Name;
use engine::expression::evaluate;
use engine::journal::ProgramKind;
use engine::schema::{Identity, Presence};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Notice, Object, Reply};
use serde_json::Value as Json;

use crate::calls::{Payload, Prepared, Shown, unwritable};
use crate::classify::Failure;
use crate::codec;
use crate::descriptor::model::{Argument, CallModel, PhaseModel, Request, SendsModel, Wait};
use crate::descriptor::schema::takes_sends;
use crate::graphql::Selection;
use crate::reading::{Subject, id_text, unreadable, what};
use crate::template::{CallScope, Given, Unfilled};
use crate::wire::{Unwritable, Wire, at, encode, put};

/// One phase of one object, about to be performed.
struct Act<'a> {
    subject: Subject<'a>,
    phase: &'a PhaseModel,
    call: &'a Call<'a>,
}

impl Subject<'_> {
    /// Performs a phase.
    pub(crate) async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let programs = match call.phase.kind {
            ProgramKind::Create => &self.model.create,
            ProgramKind::Update => &self.model.update,
            ProgramKind::Delete => &self.model.delete,
        };
        let phase = programs
            .get(call.phase.program)
            .and_then(|program| program.phases.get(call.phase.phase))
            .ok_or_else(|| {
                let message = format!("{} has no such phase", self.schema.name);
                Error::new(Kind::Rejected, message)
                    .help("the plan was made with another version of the provider: plan again")
            })?;
        self.can_send(&programs[call.phase.program].phases, call)?;
        Act { subject: *self, phase, call }.run().await
    }

    /// Refuses what no phase of the program can send, instead of leaving it out without a word.
    fn can_send(&self, phases: &[PhaseModel], call: &Call<'_>) -> Result<(), Error> {
        let names: Vec<&Name> = match call.phase.kind {
            ProgramKind::Create => call.desired.keys().collect(),
            ProgramKind::Update => call.changed.iter().collect(),
            ProgramKind::Delete => return Ok(()),
        };
        let apis: Vec<&Name> =
            phases.iter().filter_map(|phase| phase.call.as_ref()).map(|call| &call.api).collect();
        for name in names {
            let Some(attribute) = self.model.attributes.get(name) else { continue };
            let news = call.desired.get(name).is_some_and(|v| !v.is_null() && v.is_known());
            let given = attribute.schema.presence != Presence::Computed;
            let writable =
                |api: &&Name| attribute.wires.get(*api).is_some_and(|wire| wire.write_at.is_some());
            if news && given && !attribute.wires.is_empty() && !apis.iter().any(writable) {
                let message = format!("this {} takes no `{name}`", self.schema.name);
                return Err(Error::new(Kind::Rejected, message).help(format!(
                    "leave `{name}` out: the API that is used here has no such thing"
                )));
            }
        }
        Ok(())
    }
}

impl Act<'_> {
    async fn run(&self) -> Result<Reply, Error> {
        let mut object = None;
        if let Some(model) = &self.phase.call {
            object = match self.change(model).await {
                Ok(object) => object,
                Err(failure) if failure.done || self.is_gone(&failure) => None,
                Err(failure) => return Err(failure.error),
            };
        }
        if let Some(wait) = &self.phase.wait {
            let id = object.as_ref().map(|object| &object.id).or(self.call.id).cloned();
            object = match id {
                Some(id) => self.wait(wait, &id).await?.or(object),
                None => object,
            };
        }
        let ends = self.deletes() && self.call.phase.is_last();
        Ok(Reply { object: object.filter(|_| !ends) })
    }

    fn deletes(&self) -> bool {
        self.call.phase.kind == ProgramKind::Delete
    }

    fn creates(&self) -> bool {
        self.call.phase.kind == ProgramKind::Create && self.call.phase.phase == 0
    }

    /// What is to be deleted and is not there needs no deleting.
    fn is_gone(&self, failure: &Failure) -> bool {
        self.deletes() && failure.error.kind == Kind::NotFound
    }

    fn scope(&self) -> CallScope<'_> {
        CallScope {
            desired: Some(self.call.desired),
            live: self.call.live,
            id: self.call.id.map(|id| &*id.0),
            id_attribute: Some(&self.subject.model.key),
            nonce: self.call.nonce.map(|nonce| &*nonce.0),
        }
    }

    /// The mutating call, again while a known refusal is worth that.
    async fn change(&self, model: &CallModel) -> Result<Option<Object>, Failure> {
        let prepared = self.prepare(model)?;
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let failure = match self.subject.caller.call(&prepared, self.call.progress).await {
                Ok(shown) => return self.shown(model, &shown).await,
                Err(failure) => failure,
            };
            tries += 1;
            let pause = self.subject.caller.pause(tries);
            if !self.is_worth_retrying(&failure, began, pause) {
                return Err(failure);
            }
            let reason = failure.error.message;
            (self.call.progress)(Notice::Retrying { reason, after: pause });
            tokio::time::sleep(pause).await;
        }
    }

    fn is_worth_retrying(
        &self,
        failure: &Failure,
        began: Instant,
        pause: std::time::Duration,
    ) -> bool {
        self.phase.retry.as_ref().is_some_and(|retry| {
            failure.row.as_ref().is_some_and(|row| retry.errors.contains(row))
                && began.elapsed() + pause < retry.within
        })
    }

    fn prepare<'m>(&self, model: &'m CallModel) -> Result<Prepared<'m>, Failure> {
        let words = what(model);
        let body = if takes_sends(&model.request) { self.body(model, &words)? } else { None };
        let scope = self.scope();
        let caller = self.subject.caller;
        let naming = caller.api(&model.api).naming;
        let payload = match &model.request {
            Request::Rest { method, path } => Payload::Rest {
                method: *method,
                path: path.fill(&scope).map_err(|reason| unfilled(&words, &reason))?,
                body: body.map(|body| body.to_json()),
            },
            Request::Graphql { fields, arguments, .. } => Payload::Graphql {
                fields,
                arguments: arguments
                    .iter()
                    .map(|(name, argument)| {
                        let wire = match argument {
                            Argument::Sends => {
                                body.clone().unwrap_or_else(|| Wire::Object(BTreeMap::new()))
                            }
                            Argument::Value(template) => {
                                let value = template.fill(&scope);
                                let value = value.map_err(|reason| unfilled(&words, &reason))?;
                                encode(&value, &engine::types::Type::Any, naming)
                                    .map_err(|reason| unwritable(&words, &reason))?
                            }
                        };
                        Ok((name.clone(), wire))
                    })
                    .collect::<Result<_, Failure>>()?,
                selection: self
                    .phase
                    .item
                    .as_ref()
                    .map(|_| Selection::of(self.subject.model, &model.api, naming)),
            },
        };
        let header = self.subject.model.idempotency_header.clone().filter(|_| self.creates());
        let live = self.call.live.cloned().unwrap_or_default();
        Ok(Prepared {
            api: &model.api,
            what: words,
            payload,
            mutation: true,
            names_object: self.call.id.is_some() && matches!(model.request, Request::Rest { .. }),
            header: header.zip(self.call.nonce.map(ToString::to_string)),
            mask: caller
                .mask
                .with_object(self.subject.model, self.call.desired)
                .with_object(self.subject.model, &live),
        })
    }

    /// What the phase sends; none where it sends nothing at all.
    fn body(&self, model: &CallModel, words: &str) -> Result<Option<Wire>, Failure> {
        let mut body = BTreeMap::new();
        for (name, value) in self.sends(words)? {
            self.write(&mut body, &model.api, &name, &value)
                .map_err(|reason| with_attribute(unwritable(words, &reason), &name))?;
        }
        if body.is_empty() && matches!(self.phase.sends, SendsModel::Nothing) {
            return Ok(None);
        }
        let body = Wire::Object(body);
        Ok(Some(match &self.phase.inside {
            Some(key) => Wire::Object([(key.clone(), body)].into()),
            None => body,
        }))
    }

    /// The attributes that are sent, with their values.
    fn sends(&self, words: &str) -> Result<Attributes, Failure> {
        let scope = self.scope();
        let mut sends = Attributes::new();
        match &self.phase.sends {
            SendsModel::Nothing => {}
            SendsModel::All | SendsModel::Changed => {
                let all = matches!(self.phase.sends, SendsModel::All);
                for (name, attribute) in &self.subject.model.attributes {
                    let changed = self.call.changed.contains(name);
                    let given = attribute.schema.presence != Presence::Computed;
                    let Some(value) = scope.attribute(name) else { continue };
                    // What the server will choose is not ours to send.
                    if attribute.schema.server_default && !value.is_known() {
                        continue;
                    }
                    // Null is sent where it is news: elsewhere it is what the API has anyway.
                    let tells = !value.is_null() || (changed && !self.creates());
                    if given && tells && (all || changed) {
                        sends.insert(name.clone(), value.clone());
                    }
                }
            }
            SendsModel::These(templates) => {
                for (name, template) in templates {
                    let value = template.fill(&scope).map_err(|e| unfilled(words, &e))?;
                    if !value.is_null() || self.call.changed.contains(name) && !self.creates() {
                        sends.insert(name.clone(), value);
                    }
                }
            }
        }
        for (name, template) in &self.phase.with {
            let value = template.fill(&scope).map_err(|reason| unfilled(words, &reason))?;
            sends.insert(name.clone(), value);
        }
        Ok(sends)
    }

    fn write(
        &self,
        body: &mut BTreeMap<String, Wire>,
        api: &Name,
        name: &Name,
        value: &Value,
    ) -> Result<(), Unwritable> {
        let Some(attribute) = self.subject.model.attributes.get(name) else { return Ok(()) };
        let Some(shape) = attribute.wires.get(api) else { return Ok(()) };
        let Some(path) = &shape.write_at else { return Ok(()) };
        let naming = self.subject.caller.api(api).naming;
        let wire = encode(value, &attribute.schema.ty, naming)?;
        put(body, path, codec::write(&shape.write, wire)?);
        Ok(())
    }

    /// The object of a successful answer, once it is sure that it answers this call.
    async fn shown(&self, model: &CallModel, shown: &Shown) -> Result<Option<Object>, Failure> {
        let known = self.known_id();
        let Some(item) = &self.phase.item else { return self.silent(known).await };
        let json = match &shown.json {
            None => return self.silent(known).await,
            Some(json) => at(json, item).unwrap_or(&Json::Null),
        };
        let doubt = |reason: &str| unreadable(model, reason);
        let object = self.subject.object(&model.api, json, known.as_ref());
        let object = object.map_err(|reason| doubt(&reason))?;
        if self.call.id.is_some_and(|id| *id != object.id) {
            return Err(doubt("it shows another object"));
        }
        if let (true, Identity::OneTimeName { attribute }, Some(nonce)) =
            (self.creates(), &self.subject.model.identity, self.call.nonce)
        {
            let name = object.attributes.get(attribute).and_then(Value::as_str);
            if name.is_some_and(|name| !nonce.is_in(name)) {
                return Err(doubt("it shows an object with another name"));
            }
        }
        Ok(Some(self.subject.derived(object.id, object.attributes)))
    }

    /// The object's id as far as it does not depend on the answer.
    fn known_id(&self) -> Option<ObjectId> {
        if let Some(id) = self.call.id {
            return Some(id.clone());
        }
        if self.subject.model.identity != Identity::ClientId {
            return None;
        }
        let wanted = self.call.desired.get(&self.subject.model.key).and_then(id_text);
        wanted.or_else(|| self.call.nonce.map(|nonce| nonce.0.clone())).map(ObjectId)
    }

    /// After an answer that shows nothing: the object is read, for the state is to know it.
    async fn silent(&self, known: Option<ObjectId>) -> Result<Option<Object>, Failure> {
        if self.deletes() {
            return Ok(None);
        }
        let Some(id) = known else {
            let message =
                format!("the create of a {} was answered without an id", self.subject.schema.name);
            return Err(Failure::new(Kind::InDoubt, message));
        };
        match self.subject.read(&id).await {
            Ok(object) => Ok(Some(object)),
            // The call itself succeeded, and the next refresh sees the object.
            Err(_) => Ok(Some(Object { id, attributes: Attributes::new() })),
        }
    }

    /// Looks at the object until the condition holds. One that is gone while it is deleted needs
    /// no more waiting.
    async fn wait(&self, wait: &Wait, id: &ObjectId) -> Result<Option<Object>, Error> {
        (self.call.progress)(Notice::Waiting(wait.words.clone()));
        let timing = &self.subject.caller.timing;
        let (began, mut pause) = (Instant::now(), timing.poll_first);
        loop {
            let trouble = match self.subject.read(id).await {
                Ok(object) => match holds(wait, &object) {
                    Ok(true) => return Ok(Some(object)),
                    Ok(false) => None,
                    Err(reason) => return Err(self.still_waiting(wait, Some(&reason))),
                },
                Err(failure) if self.is_gone(&failure) => return Ok(None),
                Err(failure) if failure.transient => Some(failure.error.message),
                Err(failure) => return Err(self.still_waiting(wait, Some(&failure.error.message))),
            };
            if began.elapsed() + pause > wait.within {
                return Err(self.still_waiting(wait, trouble.as_deref()));
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5).min(timing.poll_max);
        }
    }

    fn still_waiting(&self, wait: &Wait, trouble: Option<&str>) -> Error {
        let (name, words) = (&self.subject.schema.name, &wait.words);
        let seconds = wait.within.as_secs();
        let message = match trouble {
            Some(trouble) => format!("{name}: cannot see whether {words}: {trouble}"),
            None => format!("{name}: after {seconds} s it still does not hold that {words}"),
        };
        Error::new(Kind::StillWaiting, message)
            .help("apply again: what is done stays done, and the wait goes on")
    }
}

fn holds(wait: &Wait, object: &Object) -> Result<bool, String> {
    let own = Value::map(object.attributes.clone());
    match evaluate::evaluate(&wait.until, &Given(&[("self", own)])) {
        Ok(datum) => Ok(datum.value == Value::Bool(true)),
        Err(error) => Err(error.message),
    }
}

fn unfilled(words: &str, Unfilled(reason): &Unfilled) -> Failure {
    Failure::new(Kind::Rejected, format!("{words} cannot be filled in: {reason}"))
}

fn with_attribute(mut failure: Failure, name: &Name) -> Failure {
    failure.error.message = format!("{} (`{name}`)", failure.error.message);
    failure
}
