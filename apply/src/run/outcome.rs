//! Answers: what a call brought back, what it proves, and what is looked up where it proves nothing.
//!
//! Records keep of an error what happened; what the server said is for those who look on, and is
//! not kept: it may repeat what was sent.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::event::Event;
use engine::journal::{Outcome, ProgramKind, Record, Resolution, Seen, Wait};
use engine::plan::facts::prior::overlay;
use engine::plan::{Change, StepId};
use engine::schema::Identity;
use engine::sorted::Set;
use engine::stored::{SecretScanner, seal_attributes};
use engine::value::Attributes;
use provider_port::{Error, Kind, Reply};

use super::prepare;
use super::retry::Evidence::{NothingChanged, Unknown};
use super::retry::words;
use super::update_evidence::{Shown, gives, is_hidden, shown};
use super::{Answer, InFlight, Run};
use crate::ApplyError;
use crate::doubt::lookup::{Found, known_in_doubt, promised, seen};
use crate::doubt::ownership::claimed;
use crate::doubt::{Sent, unlike};
use crate::refresh::sensitive;
use crate::run::scheduler::Status;
use crate::step_error::StepError;

impl Run<'_> {
    pub(super) fn answer(&mut self, id: StepId, answer: Answer) -> Result<(), ApplyError> {
        match answer {
            Answer::Called { sent, result } => {
                if let Some(flight) = self.calls.in_flight.get_mut(&id) {
                    flight.desired = sent;
                }
                match *result {
                    Ok(reply) => self.replied(id, &reply),
                    Err(error) => self.failed(id, &error),
                }
            }
            Answer::LookedUp(found) => self.looked_up(id, found),
            Answer::RetryDue(tries) => {
                self.retry_due(id, tries);
                Ok(())
            }
        }
    }

    /// An answer to a create that shows no object leaves open which object it made. It was an answer,
    /// though: what was accepted does not happen again because it does not show yet.
    pub(super) fn replied(&mut self, id: StepId, reply: &Reply) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get_mut(&id) else { return Ok(()) };
        if !flight.started.makes_its_object() {
            return self.done(id, reply.object.as_ref());
        }
        let Some(made) = &reply.object else {
            flight.accepted = true;
            return self.doubt(id, &Error::new(Kind::InDoubt, "the answer shows no object"));
        };
        let (schema, started) = (flight.schema.clone(), flight.started.clone());
        if let Some(owner) = self.claimant(&started, &made.id)
            && !self.make_room(&owner, (&schema, &started), made)?
        {
            return self.claimed_twice(id, &claimed(&owner, &made.id));
        }
        self.done(id, reply.object.as_ref())
    }

    /// An answer to a create shows an object that the state has. A name that was drawn for it may tell that it
    /// is the create's all the same, where a look shows more than the answer did.
    fn claimed_twice(&mut self, id: StepId, why: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get_mut(&id) else { return Ok(()) };
        if !matches!(flight.schema.identity, Identity::OneTimeName { .. }) {
            return self.stay_in_doubt(id, why);
        }
        // It was an answer: that nothing shows is no proof that nothing was made.
        flight.accepted = true;
        self.doubt(id, why)
    }

    pub(super) fn done(
        &mut self,
        id: StepId,
        object: Option<&provider_port::Object>,
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let seen = object.filter(|_| !flight.started.ends_its_object()).map(|object| {
            let known = self.known_if_done(&flight);
            self.seen(object, &known, &flight)
        });
        self.secrets.keep(&flight, object);
        let made = seen.as_ref().map(|seen| seen.id.to_string());
        let call = flight.call;
        self.session.record(Record::Finished { call, outcome: Outcome::Done { object: seen } })?;
        self.finish_step(id, made, flight.since);
        Ok(())
    }

    /// An object of a call as the journal keeps it.
    fn seen(&self, object: &provider_port::Object, known: &Attributes, flight: &InFlight) -> Seen {
        let sealer = SecretScanner::new(&self.session.snapshot().seal_key, &self.secrets.known);
        seen(object, known, Some(&flight.desired), (&flight.schema, &flight.started), sealer)
    }

    /// What is known, beside its answer, of an object whose call did its work: what the state has, and
    /// what was sent of the attributes that the API never shows.
    fn known_if_done(&self, flight: &InFlight) -> Attributes {
        let known = self.context().live(&flight.started, &flight.schema).unwrap_or_default();
        if flight.started.phase.kind == ProgramKind::Delete {
            return without(known, &flight.started.unshown);
        }
        let (schema, phase) = (&flight.schema, flight.started.phase);
        let hidden: Attributes = flight
            .desired
            .iter()
            .filter(|(name, _)| is_hidden(schema, name) && gives(schema, phase, name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let paths = sensitive(&flight.schema, &flight.started.sensitive);
        let key = &self.session.snapshot().seal_key;
        overlay(&known, &seal_attributes(&hidden, &paths, key))
    }

    pub(super) fn failed(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get_mut(&id) else { return Ok(()) };
        let deletes = flight.started.phase.kind == ProgramKind::Delete;
        match error.kind {
            Kind::NotFound if deletes => return self.not_there(id, error),
            Kind::InDoubt => return self.doubt(id, error),
            Kind::StillWaiting => {
                flight.unfulfilled = Some(StepError::from(error));
                // What is to be deleted may be gone by now.
                return match error.object.as_ref().filter(|_| !deletes) {
                    Some(object) => self.looked_up(id, Found::There((**object).clone())),
                    None => self.doubt(id, error),
                };
            }
            // A refusal after a doubt may refuse the repetition of what did happen.
            Kind::Rejected | Kind::NotFound if flight.doubted => {
                flight.refused = Some(StepError::from(error));
                return self.doubt(id, error);
            }
            Kind::Unauthenticated => self.halted = true,
            _ => {}
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::NoEffect { reason: error.message.clone() };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.fail_step(id, StepError::from(error));
        Ok(())
    }

    /// There is no object to delete. Where nobody has looked, that is no more than a question, as it is
    /// while planning: the objects of another place, or of another account, are all not there.
    fn not_there(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        if self.input.looked_at.is_some() || self.was_there(id) {
            return self.vanished(id);
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::NoEffect { reason: error.message.clone() };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.fail_step(id, StepError {
            help: Some(
                "look whether the address and the key are those that it was made with; it is taken \
                 for gone where a plan without --no-refresh says so"
                    .to_owned(),
            ),
            ..StepError::from(error)
        });
        Ok(())
    }

    /// Returns true if a call of this run, or a delete of an earlier one, has reached the object.
    fn was_there(&self, id: StepId) -> bool {
        let Some(flight) = self.calls.in_flight.get(&id) else { return false };
        let started = &flight.started;
        let entry = self.session.snapshot().entries.get(&started.address);
        let object = entry.and_then(|entry| entry.object(started.object.as_ref()?));
        let was_sent = object.is_some_and(|object| object.delete_sent_ms.is_some());
        flight.doubted || was_sent || started.phase.phase > 0
    }

    /// The object of a delete is gone: all of its program is done.
    pub(super) fn vanished(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::Done { object: None };
        self.session.record(Record::Finished { call: flight.call, outcome })?;
        self.finish_step(id, None, flight.since);
        Ok(())
    }

    pub(super) fn doubt(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get_mut(&id) else { return Ok(()) };
        flight.doubted = true;
        flight.doubt = Some(error.clone());
        if error.is_refusal {
            flight.refused = Some(StepError::from(error));
        }
        let (call, reason, accepted) = (flight.call, error.message.clone(), flight.accepted);
        self.session.record(Record::Doubted { call, reason, accepted })?;
        self.look_up(id);
        Ok(())
    }

    pub(super) fn looked_up(&mut self, id: StepId, found: Found) -> Result<(), ApplyError> {
        let found = self.unless_taken(id, found)?;
        let Some(flight) = self.calls.in_flight.get(&id) else { return Ok(()) };
        match found {
            Found::Unknown(why) => self.stay_in_doubt(id, &why),
            found if flight.unfulfilled.is_some() => self.unfulfilled(id, found),
            Found::There(object) if flight.started.makes_its_object() => {
                let InFlight { schema, started, desired, accepted, .. } = flight;
                let ignored = &self.change_of(id).ignored;
                let sent = Sent { desired, ignored, accepted: *accepted };
                let unlike = unlike((schema, started), sent, &object);
                if unlike.is_empty() {
                    self.did_its_work(id, &object)
                } else {
                    self.not_as_sent(id, &object, &unlike)
                }
            }
            Found::There(object) => match shown(flight, &self.changed(id), &object) {
                Shown::Done => self.did_its_work(id, &object),
                shown => self.not_seen(id, &object, shown),
            },
            Found::Absent if flight.accepted => self.stay_in_doubt(id, &promised()),
            Found::Absent if flight.started.makes_its_object() => self.create_absent(id),
            Found::Absent if flight.started.ends_its_object() => self.vanished(id),
            Found::Absent => self.object_gone(id),
        }
    }

    /// The attributes that the change of a step sends as changed.
    fn changed(&self, id: StepId) -> BTreeSet<Name> {
        prepare::changed(self.change_of(id))
    }

    /// The change that a step belongs to.
    fn change_of(&self, id: StepId) -> &Change {
        &self.input.plan.changes[self.scheduler.step(id).change]
    }

    /// The answer to a call was lost, and the object shows what it did. With the answer its wait
    /// was lost, which is still to come.
    fn did_its_work(
        &mut self,
        id: StepId,
        object: &provider_port::Object,
    ) -> Result<(), ApplyError> {
        let waits = |flight: &InFlight| {
            let phase = flight.started.phase;
            phase.wait == Wait::After && phase.kind != ProgramKind::Delete
        };
        if !self.calls.in_flight.get(&id).is_some_and(waits) {
            return self.done(id, Some(object));
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        self.session.record(self.called(&flight, object))?;
        self.calls.waiting_only.insert(id);
        self.calls.retries.push((id, flight.tries));
        Ok(())
    }

    /// That a call did its work, and what it waits for is to come.
    fn called(&self, flight: &InFlight, object: &provider_port::Object) -> Record {
        let known = self.known_if_done(flight);
        let object = self.seen(object, &known, flight);
        let call = flight.call;
        if flight.started.phase.kind == ProgramKind::Delete {
            return Record::Resolved { call, resolution: Resolution::Found { object } };
        }
        Record::Finished { call, outcome: Outcome::Called { object } }
    }

    /// The call did its work, and what it waited for did not come true: the object is recorded as
    /// it is, and the step has failed. The next run waits on.
    pub(super) fn unfulfilled(&mut self, id: StepId, found: Found) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let call = flight.call;
        self.session.record(match found {
            Found::There(object) => self.called(&flight, &object),
            _ if flight.started.makes_its_object() => {
                let resolution = Resolution::Absent { at_ms: self.input.host.now_ms() };
                Record::Resolved { call, resolution }
            }
            _ => Record::Resolved { call, resolution: Resolution::Gone },
        })?;
        if let Some(trouble) = flight.unfulfilled {
            self.fail_step(id, trouble);
        }
        Ok(())
    }

    /// What a create was to make is there, and is not what it sent. It is the address's object, as it
    /// would be for the next run, which changes it; that it was made as it should be is not said. It is
    /// not sent again: an API may refuse that, and what is there may be what it made of it.
    fn not_as_sent(
        &mut self,
        id: StepId,
        object: &provider_port::Object,
        unlike: &[Name],
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let known = known_in_doubt(self.session.snapshot(), &flight.started, &flight.schema);
        let seen = self.seen(object, &known, &flight);
        let resolution = Resolution::Found { object: seen };
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        let trouble =
            StepError::not_as_sent(unlike, flight.accepted, &words(flight.doubt.as_ref()));
        self.fail_step(id, flight.refused.unwrap_or(trouble));
        Ok(())
    }

    /// A create left nothing: its nonce is watched, and it begins again under a new one, unless
    /// its last answer was a refusal, which stands then.
    pub(super) fn create_absent(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let at_ms = self.input.host.now_ms();
        let resolution = Resolution::Absent { at_ms };
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        match flight.refused {
            Some(trouble) => self.fail_step(id, trouble),
            None => self.try_again(id, flight.tries, flight.doubt.as_ref(), NothingChanged),
        }
        Ok(())
    }

    /// The object does not show that its change happened. Where the change was of something that no
    /// answer shows, that is not known from now on, and the next plan sends it again if this run
    /// does not: the call may have happened, or happen late.
    fn not_seen(
        &mut self,
        id: StepId,
        object: &provider_port::Object,
        shown: Shown,
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let (call, started) = (flight.call, &flight.started);
        let (is_proof, evidence) = match shown {
            Shown::Nothing => (started.unshown.is_empty(), NothingChanged),
            Shown::Done | Shown::Unknown => (false, Unknown),
        };
        self.session.record(if is_proof {
            let reason = "the object shows that nothing changed".to_owned();
            Record::Finished { call, outcome: Outcome::NoEffect { reason } }
        } else {
            let known = known_in_doubt(self.session.snapshot(), started, &flight.schema);
            let object = self.seen(object, &known, &flight);
            Record::Resolved { call, resolution: Resolution::Found { object } }
        })?;
        match flight.refused {
            Some(trouble) => self.fail_step(id, trouble),
            None => self.try_again(id, flight.tries, flight.doubt.as_ref(), evidence),
        }
        Ok(())
    }

    pub(super) fn object_gone(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let resolution = Resolution::Gone;
        self.session.record(Record::Resolved { call: flight.call, resolution })?;
        let message = "the object is gone".to_owned();
        let help = Some("plan again: it will be made anew".to_owned());
        self.fail_step(id, StepError { message, help });
        Ok(())
    }

    pub(super) fn stay_in_doubt(&mut self, id: StepId, why: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let (call, accepted) = (flight.call, flight.accepted);
        let reason = match flight.doubt.filter(|doubt| doubt != why) {
            Some(doubt) => format!("{doubt}; looked it up: {why}"),
            None => why.to_string(),
        };
        let kept = why.message.clone();
        self.session.record(Record::Doubted { call, reason: kept, accepted })?;
        let step = self.scheduler.step(id);
        self.reporter.report.in_doubt.push(step.address.clone());
        let (address, operation) = (step.address.clone(), step.operation);
        let step = id.to_string();
        self.reporter.events.push(Event::StepDoubted { step, address, operation, reason });
        self.skip_rest(id, Status::Doubted, "it is in doubt");
        Ok(())
    }
}

fn without(mut known: Attributes, names: &Set<Name>) -> Attributes {
    known.retain(|name, _| !names.contains(name));
    known
}
