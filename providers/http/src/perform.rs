//! The performance of one phase of one object: at most one mutating call, then at most one wait.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::address::Name;
use engine::journal::{PhaseRef, ProgramKind};
use engine::schema::{Identity, Presence, SeenIn};
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Notice, Object, Reply};
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::calls::{Prepared, Shown};
use crate::classify::Failure;
use crate::conditions::{self, failed};
use crate::descriptor::model::{CallModel, Failing, PhaseModel, Wait};
use crate::empty::Empty;
use crate::masker::{Masker, SecretNames};
use crate::objects::{id_text, join};
use crate::subject::{Subject, unreadable};
use crate::template::{CallScope, SELF};
use crate::trust;
use crate::wire::at;

/// One phase of one object, about to be performed.
pub(crate) struct Act<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) phase: &'a PhaseModel,
    /// The attributes by which the path of the call names the object.
    pub(crate) naming: BTreeSet<Name>,
    pub(crate) call: &'a Call<'a>,
    /// The element of a set that the call adds or removes; none if the phase does not work element by
    /// element.
    pub(crate) element: Option<&'a Value>,
}

/// The result of an operation of the server that has ended.
pub(crate) enum Ended {
    /// The operation names the object, which was read.
    Object(Object),
    /// The operation names no object.
    Unnamed,
}

/// The time during which an object is looked at after an answer that promised its end.
const PROMISE_WITHIN: Duration = Duration::from_mins(2);

/// A wait: a description of the awaited condition, and the longest time.
struct Awaited<'a> {
    words: &'a str,
    within: Duration,
}

impl Subject<'_> {
    /// Performs a phase.
    pub(crate) async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let (phases, phase) = self.phase(call.phase)?;
        self.can_send(phases, call)?;
        for (secret, _) in call.secrets.carried(call.desired) {
            self.may_carry(call.phase, secret)?;
        }
        let masker = self.masker_of(call);
        let subject = Subject { masker: Some(&masker), ..*self };
        let naming = self.model.named_by_paths(phases);
        let opened = subject.opened(call).await?;
        let call = &Call { live: opened.as_ref().or(call.live), ..*call };
        Act { subject, phase, naming, call, element: None }.run().await
    }

    /// Returns the live attributes with those changing maps in clear that the API merges and that contain
    /// secrets: only a read shows which of their keys go. None if there is no such map.
    async fn opened(&self, call: &Call<'_>) -> Result<Option<Attributes>, Error> {
        let (Some(id), Some(live)) = (call.id, call.live) else { return Ok(None) };
        let is_closed = |name: &&Name| {
            let merges = self.model.attributes.get(*name).is_some_and(|it| it.merges);
            merges && live.get(*name).is_some_and(Value::holds_sealed)
        };
        let mut closed = call.changed.iter().filter(is_closed).peekable();
        if call.phase.kind != ProgramKind::Update || closed.peek().is_none() {
            return Ok(None);
        }
        let object = self.read(id).await.map_err(|failure| Error {
            kind: Kind::NotSent,
            message: format!("what it has could not be read before: {}", failure.error.message),
            ..failure.error
        })?;
        let mut live = live.clone();
        for name in closed {
            live.insert(name.clone(), object.attributes.get(name).cloned().unwrap_or(Value::Null));
        }
        Ok(Some(live))
    }

    /// Returns the masker of a call: it knows the key and the values of the objects before and after.
    fn masker_of(&self, call: &Call<'_>) -> Masker {
        let none = Attributes::new();
        let live = call.live.unwrap_or(&none);
        let masker = self.caller.masker.clone();
        masker
            .with_object(self.model, call.desired)
            .with_object(self.model, live)
            .with_secrets_of(call.secrets, call.desired)
            .with_names(SecretNames::of(self.model, call.secrets, live))
    }

    /// Returns all phases of the program of a phase, and the phase itself.
    fn phase(&self, phase: PhaseRef) -> Result<(&[PhaseModel], &PhaseModel), Error> {
        let programs = match phase.kind {
            ProgramKind::Create => &self.model.create,
            ProgramKind::Update => &self.model.update,
            ProgramKind::Delete => &self.model.delete,
        };
        let phases = programs.get(phase.program).map(|program| &*program.phases);
        phases.and_then(|phases| Some((phases, phases.get(phase.phase)?))).ok_or_else(|| {
            let message = format!("{} has no such phase", self.schema.name);
            Error::new(Kind::Rejected, message)
                .help("the plan was made with another version of the provider: plan again")
        })
    }

    /// Refuses to send a secret to a host that only the spec names.
    pub(crate) fn may_carry(&self, phase: PhaseRef, secret: &Name) -> Result<(), Error> {
        let (_, phase) = self.phase(phase)?;
        let Some(model) = &phase.call else { return Ok(()) };
        match self.caller.unproven_address(&model.api) {
            Some(url) => Err(trust::kept_back(&self.schema.name, secret, url)),
            None => Ok(()),
        }
    }

    /// Refuses an attribute that no phase of the program can send: the call would silently leave it out. An
    /// attribute that does not change need not be sent. The first run of a create has checked the whole
    /// create, so a run that finishes it checks nothing: an attribute that the spec wants only since then is
    /// sent by the update after it.
    fn can_send(&self, phases: &[PhaseModel], call: &Call<'_>) -> Result<(), Error> {
        let is_begun = call.phase.kind == ProgramKind::Create && !call.phase.makes();
        if is_begun || call.phase.kind == ProgramKind::Delete {
            return Ok(());
        }
        let calls: Vec<&CallModel> =
            phases.iter().filter_map(|phase| phase.call.as_ref()).collect();
        let in_address: Vec<Name> = calls.iter().flat_map(|call| call.names()).collect();
        for name in call.changed {
            let Some(attribute) = self.model.attributes.get(name) else { continue };
            // A new object already has null if nothing is sent.
            let updates = call.phase.kind == ProgramKind::Update;
            let is_news = |v: &Value| v.is_known() && (updates || !v.is_null());
            let news = call.desired.get(name).is_some_and(is_news);
            let given = attribute.schema.presence != Presence::Computed;
            let writable = |call: &&CallModel| attribute.is_written_to(&call.api);
            let told = attribute.is_only_shown() && phases.iter().any(|it| it.tells(name));
            let sent = calls.iter().any(writable) || in_address.contains(name) || told;
            if news && given && !attribute.wires.is_empty() && !sent {
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
        if let Some(model) = self.phase.call.as_ref().filter(|_| self.call.phase.calls()) {
            object = match self.change(model).await {
                Ok(object) => object,
                // The object that exists belongs to someone else, and the create made nothing.
                Err(failure) if failure.done && !self.creates() => None,
                Err(failure) if self.deletes() && failure.error.kind == Kind::NotFound => {
                    return Err(self.looked_at(failure.error).await);
                }
                Err(failure) => return Err(failure.error),
            };
        }
        if let Some(wait) = &self.phase.wait {
            let id = object.as_ref().map(|object| &object.id).or(self.call.id).cloned();
            object = match id {
                Some(id) => match self.wait(wait, &id).await {
                    Ok(seen) => seen.or(object),
                    Err(error) => return Err(error.about(object)),
                },
                None => object,
            };
        }
        let ends = self.deletes() && self.call.phase.is_last();
        Ok(Reply { object: object.filter(|_| !ends) })
    }

    pub(crate) fn deletes(&self) -> bool {
        self.call.phase.kind == ProgramKind::Delete
    }

    pub(crate) fn creates(&self) -> bool {
        self.call.phase.makes()
    }

    pub(crate) fn scope(&self) -> CallScope<'_> {
        CallScope {
            desired: Some(self.call.desired),
            live: self.call.live,
            id: self.call.id.map(|id| &*id.0).or_else(|| self.drawn_id()),
            id_attribute: Some(&self.subject.model.key),
            nonce: self.call.nonce.map(|nonce| &*nonce.0),
            parent: None,
            element: self.element,
            answer: None,
        }
    }

    /// Sends the mutating call, and repeats it while the descriptor allows that for the refusal.
    async fn change(&self, model: &CallModel) -> Result<Option<Object>, Failure> {
        if self.changes_nothing(model)? {
            return self.silent(self.known_id(), false).await;
        }
        if let Some(elements) = &self.phase.elements {
            return self.change_elements(model, elements).await;
        }
        let prepared = self.prepare(model)?;
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let failure = match self.subject.caller.call(&prepared, self.call.progress).await {
                Ok(shown) => return self.answered(model, &prepared, shown).await,
                Err(failure) => failure,
            };
            tries += 1;
            let asked = failure.error.retry_after;
            let pause = self.subject.caller.pause(tries, asked);
            if !self.is_worth_retrying(&failure, began, pause) {
                return Err(failure);
            }
            let reason = failure.error.to_string();
            let (attempt, attempts) = (tries + 1, None);
            (self.call.progress)(Notice::Retrying { reason, after: pause, attempt, attempts });
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the object of a successful answer, once the operation that the call began has ended.
    async fn answered(
        &self,
        model: &CallModel,
        prepared: &Prepared<'_>,
        mut shown: Shown,
    ) -> Result<Option<Object>, Failure> {
        let mut ended = None;
        if let Some(operation) = &self.phase.polled {
            ended = self.ended(operation, (prepared, &shown)).await?;
        }
        if shown.is_promise {
            self.keep_to_its_word().await?;
        }
        match ended {
            None => self.shown(model, &shown).await,
            Some(Ended::Object(object)) => Ok(Some(object)),
            Some(Ended::Unnamed) => {
                // The object in the first answer was not ready.
                shown.is_promise = false;
                let object = self.shown(model, &shown).await?;
                self.silent(object.map(|object| object.id).or_else(|| self.known_id()), false).await
            }
        }
    }

    /// Returns true if a call with this refusal may be tried again. A call that may have happened is looked
    /// up instead.
    fn is_worth_retrying(&self, failure: &Failure, began: Instant, pause: Duration) -> bool {
        failure.error.kind != Kind::InDoubt
            && self.phase.retry.as_ref().is_some_and(|retry| {
                failure.row.as_ref().is_some_and(|row| retry.errors.contains(&**row))
                    && began.elapsed() + pause < retry.within
            })
    }

    /// Returns the object of a successful answer, once it is certain that it is the object of this call.
    async fn shown(&self, model: &CallModel, shown: &Shown) -> Result<Option<Object>, Failure> {
        let mut known = self.known_id();
        let Some(item) = &self.phase.item else {
            return self.silent(known, shown.is_promise).await;
        };
        let json = match &shown.json {
            None => return self.silent(known, shown.is_promise).await,
            Some(json) => at(json, item).unwrap_or(&Json::Null),
        };
        if known.is_none() && self.creates() {
            known = self.subject.made_id(&model.api, json, self.call.desired);
        }
        if known.is_none() && model.is_rest() && self.subject.is_nameless(&model.api, json) {
            return self.silent(None, shown.is_promise).await;
        }
        let doubt = |reason: &str| unreadable(model, reason);
        let object = self.subject.object(&model.api, json, known.as_ref());
        let mut object = object.map_err(|reason| doubt(&reason))?;
        if object.attributes.is_empty() {
            return self.silent(known, shown.is_promise).await;
        }
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
        object.attributes.extend(self.subject.in_headers(shown));
        join(&mut object.attributes, self.called_by());
        join(&mut object.attributes, self.sent_empty(&model.api, json));
        join(&mut object.attributes, self.subject.absent(&model.api, json));
        Ok(Some(self.subject.derived(object.id, object.attributes)))
    }

    /// Returns the attributes that name the object in addresses: its parent's, and the parts of its key. Few answers
    /// repeat them.
    fn called_by(&self) -> Attributes {
        let Subject { model, .. } = self.subject;
        let scope = self.scope();
        let names = model.attributes.keys();
        let names = names.filter(|name| model.repeats_parent(name) || model.is_part_of_key(name));
        let known = names.filter_map(|name| {
            let value = scope.attribute(name).filter(|it| it.is_known() && !it.is_null())?;
            Some((name.clone(), value.clone()))
        });
        known.collect()
    }

    /// Returns the attributes that the call sent empty and its answer leaves out. They have the values that
    /// were sent; the old values are gone.
    fn sent_empty(&self, api: &Name, answer: &Json) -> Attributes {
        let Some(phase) = self.subject.schema.phase(self.call.phase) else {
            return Attributes::new();
        };
        let is_sent = |empty: &Empty<'_>| {
            let wanted = self.call.desired.get(empty.name);
            phase.carries(empty.name) && wanted.is_some_and(|wanted| wanted.same(&empty.value))
        };
        let empties = self.subject.empties(api, &[SeenIn::List, SeenIn::Read]);
        let left_out = empties.into_iter().filter(|it| it.is_left_out_of(answer) && is_sent(it));
        left_out.map(|empty| (empty.name.clone(), empty.value)).collect()
    }

    /// Returns the id of the object if it does not depend on the answer; else none.
    pub(crate) fn known_id(&self) -> Option<ObjectId> {
        if let Some(id) = self.call.id {
            return Some(id.clone());
        }
        let drawn = || self.drawn_id().map(Name::from);
        self.chosen_id().or_else(drawn).map(ObjectId)
    }

    /// Returns the id that the spec chooses; none if the client does not choose it, or the spec gives none.
    fn chosen_id(&self) -> Option<Name> {
        let chooses = matches!(self.subject.model.identity, Identity::ClientId { .. });
        self.call.desired.get(&self.subject.model.key).filter(|_| chooses).and_then(id_text)
    }

    /// Returns the one-time name as the id of a new object, if the client chooses the id and the spec gives
    /// none; else none.
    pub(crate) fn drawn_id(&self) -> Option<&str> {
        let draws = matches!(self.subject.model.identity, Identity::ClientId { .. })
            && self.subject.derived_key().is_none()
            && self.call.id.is_none()
            && self.chosen_id().is_none();
        self.call.nonce.filter(|_| draws).map(|nonce| &*nonce.0)
    }

    /// Handles an answer that shows nothing: reads the object, because the state and the next phase need its
    /// attributes. If the id of a created object is not known, returns none, and the object is looked up.
    pub(crate) async fn silent(
        &self,
        known: Option<ObjectId>,
        is_promise: bool,
    ) -> Result<Option<Object>, Failure> {
        if self.deletes() && self.call.phase.is_last() {
            return Ok(None);
        }
        let Some(id) = known else { return Ok(None) };
        let read = if self.creates() {
            self.subject.read_as_spelled(&id).await
        } else {
            self.subject.read(&id).await
        };
        match read {
            Ok(object) if is_promise && self.may_be_old(&object.id) => Ok(None),
            Ok(object) => Ok(Some(object)),
            Err(failure) if self.creates() && failure.error.kind == Kind::NotFound => Ok(None),
            Err(_) if self.deletes() => Ok(None),
            // The call itself succeeded, and the next refresh sees the object.
            Err(_) => Ok(Some(Object { id, attributes: Attributes::new() })),
        }
    }

    /// Returns true if the object that shows after a promised create may be an older one with the id that the
    /// spec chose. If the phase has a wait of its own, that wait finds the end of the create.
    fn may_be_old(&self, id: &ObjectId) -> bool {
        self.creates() && self.phase.wait.is_none() && self.chosen_id().as_ref() == Some(&id.0)
    }

    /// Waits until the object is gone, after an answer that only promised its end.
    async fn keep_to_its_word(&self) -> Result<(), Error> {
        let is_end = self.deletes() && self.call.phase.is_last() && self.phase.wait.is_none();
        let Some(id) = self.call.id.filter(|_| is_end) else { return Ok(()) };
        let awaited = Awaited { words: "it is gone", within: PROMISE_WITHIN };
        self.watch(&awaited, id, None, &|_| Ok(false)).await.map(drop)
    }

    /// Looks at the object before the answer "nothing to delete" is believed: a call to a wrong address gets
    /// the same answer, and so does one that a proxy before the API refuses.
    async fn looked_at(&self, refusal: Error) -> Error {
        let Some(id) = self.call.id else { return refusal };
        let began = Instant::now();
        loop {
            match self.subject.read(id).await {
                Err(look) if look.error.kind == Kind::NotFound => return refusal,
                Err(look) => return self.unseen(&refusal, &look.error),
                // A read may be out of date for as long as the settle time.
                Ok(_) if began.elapsed() < self.subject.caller.settle => {
                    tokio::time::sleep(self.subject.caller.timing.poll_max).await;
                }
                // An object that can be read may be gone: some APIs show a deleted object for long.
                Ok(_) => match self.subject.list().await {
                    Ok(listing) if listing.shows(id) => return self.still_there(&refusal),
                    Ok(_) => return refusal,
                    Err(look) => return self.unseen(&refusal, &look.error),
                },
            }
        }
    }

    fn still_there(&self, refusal: &Error) -> Error {
        let name = &self.subject.schema.name;
        let said = refusal.said.clone().unwrap_or_default();
        let message = format!("{}, and the {name} is still there", refusal.message);
        Error::new(Kind::Rejected, message).said(said).help(
            "look whether the call of this phase leads to the object: what it names is not there",
        )
    }

    fn unseen(&self, refusal: &Error, look: &Error) -> Error {
        let name = &self.subject.schema.name;
        let message = format!(
            "{}, and whether the {name} is gone cannot be seen: {}",
            refusal.message, look.message
        );
        Error::new(Kind::InDoubt, message).said(look.said.clone().unwrap_or_default())
    }

    async fn wait(&self, wait: &Wait, id: &ObjectId) -> Result<Option<Object>, Error> {
        let awaited = Awaited { words: &wait.words, within: wait.within };
        self.watch(&awaited, id, wait.failing.as_ref(), &|object| holds(wait, object)).await
    }

    /// Reads the object until the awaited condition holds. If the object is gone in a delete, the wait is
    /// over. In other operations a missing object may only not show yet, so the wait goes on until it has
    /// been missing for longer than the settle time.
    async fn watch(
        &self,
        awaited: &Awaited<'_>,
        id: &ObjectId,
        failing: Option<&Failing>,
        holds: &(dyn Fn(&Object) -> Result<bool, String> + Send + Sync),
    ) -> Result<Option<Object>, Error> {
        (self.call.progress)(Notice::Waiting(awaited.words.to_owned()));
        let timing = &self.subject.caller.timing;
        let (began, mut pause) = (Instant::now(), timing.poll_first);
        let mut last_seen = began;
        loop {
            let trouble = match self.subject.read(id).await {
                Ok(object) => {
                    last_seen = Instant::now();
                    if let Some(reason) = failed(failing, SELF, &own(&object)) {
                        let error = self.object_failed(awaited.words, &reason).await;
                        return Err(error.about(Some(object)));
                    }
                    match holds(&object) {
                        Ok(true) => return Ok(Some(object)),
                        Ok(false) => None,
                        // The types fit, so the condition needs a value that is not there yet.
                        Err(reason) => Some(Error::new(Kind::StillWaiting, reason)),
                    }
                }
                Err(failure) if self.deletes() && failure.error.kind == Kind::NotFound => {
                    return Ok(None);
                }
                Err(failure) if failure.transient || self.is_yet_to_show(&failure, last_seen) => {
                    Some(failure.error)
                }
                Err(failure) => return Err(self.still_waiting(awaited, Some(&failure.error))),
            };
            if began.elapsed() + pause > awaited.within {
                return Err(self.still_waiting(awaited, trouble.as_ref()));
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5).min(timing.poll_max);
        }
    }

    /// Returns true if an object that is missing may only not show yet.
    fn is_yet_to_show(&self, failure: &Failure, last_seen: Instant) -> bool {
        failure.error.kind == Kind::NotFound && last_seen.elapsed() <= self.subject.caller.settle
    }

    fn still_waiting(&self, awaited: &Awaited<'_>, trouble: Option<&Error>) -> Error {
        let (name, words) = (&self.subject.schema.name, awaited.words);
        let seconds = awaited.within.as_secs();
        let message = match trouble {
            Some(trouble) => format!("{name}: cannot see whether {words}: {}", trouble.message),
            None => format!("{name}: after {seconds} s it still does not hold that {words}"),
        };
        let said = trouble.and_then(|trouble| trouble.said.clone()).unwrap_or_default();
        Error::new(Kind::StillWaiting, message)
            .said(said)
            .help("apply again: what is done stays done, and the wait goes on")
    }
}

/// Returns true if the condition of a wait holds for an object.
fn holds(wait: &Wait, object: &Object) -> Result<bool, String> {
    conditions::holds(&wait.until, SELF, &own(object))
}

fn own(object: &Object) -> Value {
    Value::map(object.attributes.clone())
}
