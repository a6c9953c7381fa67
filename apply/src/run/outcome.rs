//! Answers of calls: the result of a call, what it proves, and the look-up of a call whose answer proves
//! nothing.
//!
//! A record says what happened, but does not repeat the server's message: the message may repeat what was
//! sent. Only events show it.

use engine::address::Name;
use engine::doubt::{Resolution, resolve};
use engine::event::Event;
use engine::journal::{Outcome, ProgramKind, Record, Resolution as Resolved, Seen, Wait};
use engine::plan::StepId;
use engine::plan::facts::prior::overlay;
use engine::schema::Identity;
use engine::sorted::Set;
use engine::stored::{SecretScanner, seal_attributes};
use engine::value::Attributes;
use provider_port::{Error, Kind, Reply};

use super::answer_differences::answer_differences;
use super::call::{Doubt, InFlight};
use super::retry::words;
use super::{Answer, Run};
use crate::ApplyError;
use crate::doubt::lookup::{Found, claimed, promised, seen, shown};
use crate::refresh::sensitive;
use crate::run::scheduler::Status;
use crate::step_error::StepError;

impl Run<'_> {
    pub(super) fn answer(&mut self, id: StepId, answer: Answer) -> Result<(), ApplyError> {
        match answer {
            Answer::Called { sent, result } => {
                if let Some(flight) = self.calls.in_flight.get_mut(&id) {
                    flight.sent.desired = sent;
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

    /// Handles the answer to a call. If a create's answer shows no object, the made object is unknown. The
    /// API did accept the create, so the create is not sent again only because its object does not show yet.
    pub(super) fn replied(&mut self, id: StepId, reply: &Reply) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get(&id) else { return Ok(()) };
        if !flight.started.makes_its_object() {
            return self.done(id, reply.object.as_ref());
        }
        let Some(made) = &reply.object else {
            let error = Error::new(Kind::InDoubt, "the answer shows no object");
            return self.doubt(id, Doubt::Accepted(error));
        };
        // If the type has one-time names, a look-up may still show that this object is the create's own, as
        // it shows more than the answer did.
        let has_own_name = matches!(flight.schema.identity, Identity::OneTimeName { .. });
        let started = flight.started.clone();
        match self.claimant(&started, &made.id) {
            Some(owner) if !self.make_room(id, &owner, made)? => {
                let why = claimed(&owner, &made.id);
                if has_own_name {
                    return self.doubt(id, Doubt::Accepted(why));
                }
                self.stay_in_doubt(id, &why)
            }
            _ => self.done(id, reply.object.as_ref()),
        }
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
        let key = &self.session.snapshot().seal_key;
        let shown = object.filter(|_| !flight.started.ends_its_object());
        let differing =
            shown.map(|object| answer_differences(&flight, object, key)).unwrap_or_default();
        self.secrets.keep(&flight, object);
        let made = seen.as_ref().map(|seen| seen.id.to_string());
        let call = flight.started.call;
        self.session.record(Record::Finished { call, outcome: Outcome::Done { object: seen } })?;
        self.finish_call(id, made, differing, &flight);
        Ok(())
    }

    /// Returns the object of a call as the journal keeps it.
    fn seen(&self, object: &provider_port::Object, known: &Attributes, flight: &InFlight) -> Seen {
        let sealer = SecretScanner::new(&self.session.snapshot().seal_key, &self.secrets.known);
        seen(object, known, flight.in_doubt(sealer.key()), sealer)
    }

    /// Returns the attributes, beside those of the answer, of an object whose call did its work: those that
    /// the state has, and those that were sent and that the API never shows.
    fn known_if_done(&self, flight: &InFlight) -> Attributes {
        let known = self.context().live(&flight.started, &flight.schema).unwrap_or_default();
        if flight.started.phase.kind == ProgramKind::Delete {
            return without(known, &flight.started.unshown);
        }
        let (schema, phase) = (&flight.schema, flight.started.phase);
        let hidden: Attributes = flight
            .sent
            .desired
            .iter()
            .filter(|(name, _)| schema.is_hidden(name) && schema.sets(phase, name))
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
            Kind::InDoubt if error.is_refusal => {
                return self.doubt(id, Doubt::Refused(error.clone()));
            }
            Kind::InDoubt => return self.doubt(id, Doubt::Lost(error.clone())),
            Kind::StillWaiting => {
                let doubt = Doubt::Unfulfilled(error.clone());
                // An object that is to be deleted may be gone by now.
                let Some(object) = error.object.as_ref().filter(|_| !deletes) else {
                    return self.doubt(id, doubt);
                };
                flight.doubt = Some(doubt);
                return self.looked_up(id, Found::There((**object).clone()));
            }
            // A refusal after a doubt may refuse the repetition of a call that did its work.
            Kind::Rejected | Kind::NotFound if flight.tries > 0 => {
                return self.doubt(id, Doubt::Refused(error.clone()));
            }
            Kind::Unauthenticated => self.halted = true,
            _ => {}
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::NoEffect { reason: error.message.clone() };
        self.session.record(Record::Finished { call: flight.started.call, outcome })?;
        self.reporter.report.is_outdated |= error.is_outdated;
        self.fail_step(id, StepError::from(error));
        Ok(())
    }

    /// Handles a delete whose object is not there. If nobody read the object before, that is no proof, as it
    /// is none for a plan: in another place or account, no object is there. Then the step fails.
    fn not_there(&mut self, id: StepId, error: &Error) -> Result<(), ApplyError> {
        if self.input.looked_at.is_some() || self.was_there(id) {
            return self.vanished(id);
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::NoEffect { reason: error.message.clone() };
        self.session.record(Record::Finished { call: flight.started.call, outcome })?;
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

    /// Returns true if a call of this run, or a delete of an earlier one, has reached the object before.
    fn was_there(&self, id: StepId) -> bool {
        let Some(flight) = self.calls.in_flight.get(&id) else { return false };
        let started = &flight.started;
        let entry = self.session.snapshot().entries.get(&started.address);
        let object = entry.and_then(|entry| entry.object(started.object.as_ref()?));
        let was_sent = object.is_some_and(|object| object.delete_sent_ms.is_some());
        flight.tries > 0 || was_sent || started.phase.phase > 0
    }

    /// Records that the object of a delete is gone. The whole program of the delete is done.
    pub(super) fn vanished(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let outcome = Outcome::Done { object: None };
        self.session.record(Record::Finished { call: flight.started.call, outcome })?;
        self.finish_call(id, None, Vec::new(), &flight);
        Ok(())
    }

    pub(super) fn doubt(&mut self, id: StepId, doubt: Doubt) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.in_flight.get_mut(&id) else { return Ok(()) };
        let reason = doubt.error().message.clone();
        flight.doubt = Some(doubt);
        let (call, accepted) = (flight.started.call, flight.is_accepted());
        self.session.record(Record::Doubted { call, reason, accepted })?;
        self.look_up(id);
        Ok(())
    }

    /// Acts on the look-up of a call in doubt.
    pub(super) fn looked_up(&mut self, id: StepId, found: Found) -> Result<(), ApplyError> {
        let object = match found {
            Found::There(object) => Some(object),
            Found::Absent => None,
            Found::Unknown(why) => return self.stay_in_doubt(id, &why),
        };
        let Some(resolution) = self.resolve(id, object.as_ref())? else { return Ok(()) };
        let flight = self.calls.in_flight.get(&id);
        if flight.is_some_and(|it| matches!(it.doubt, Some(Doubt::Unfulfilled(_)))) {
            return self.unfulfilled(id, &resolution, object.as_ref());
        }
        match (resolution, object) {
            (Resolution::Done, Some(object)) => self.did_its_work(id, &object),
            (Resolution::Mismatch(names), Some(object)) => self.not_as_sent(id, &object, &names),
            (not_done @ (Resolution::NotDone | Resolution::Unproven), Some(object)) => {
                self.not_done(id, &object, &not_done)
            }
            (Resolution::NotMade, _) => self.not_made(id),
            (Resolution::Gone, _) => self.gone(id),
            (Resolution::Claimed(owner), Some(object)) => {
                self.stay_in_doubt(id, &claimed(&owner, &object.id))
            }
            _ => self.stay_in_doubt(id, &promised()),
        }
    }

    /// Returns the meaning of a look-up. If a create made an object that another address is about to let go
    /// of, the create takes the object over. Returns `None` if the call is no longer in flight.
    fn resolve(
        &mut self,
        id: StepId,
        object: Option<&provider_port::Object>,
    ) -> Result<Option<Resolution>, ApplyError> {
        let Some(flight) = self.calls.in_flight.get(&id) else { return Ok(None) };
        let snapshot = self.session.snapshot();
        let call = flight.in_doubt(&snapshot.seal_key);
        let resolution = resolve(call, object.map(shown), snapshot);
        let Some(object) = object else { return Ok(Some(resolution)) };
        self.ids.add(&flight.started, &object.id);
        match resolution {
            Resolution::Claimed(owner) if self.make_room(id, &owner, object)? => {
                Ok(Some(Resolution::Done))
            }
            resolution => Ok(Some(resolution)),
        }
    }

    /// Handles a call whose answer was lost and whose object shows that the call did its work. The wait after
    /// the call is still to be done.
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

    /// Returns the record that a call did its work and that its wait is still to be done.
    fn called(&self, flight: &InFlight, object: &provider_port::Object) -> Record {
        let known = self.known_if_done(flight);
        let object = self.seen(object, &known, flight);
        let call = flight.started.call;
        if flight.started.phase.kind == ProgramKind::Delete {
            return Record::Resolved { call, resolution: Resolved::Found { object } };
        }
        Record::Finished { call, outcome: Outcome::Called { object } }
    }

    /// Fails the step of a call that did its work, but whose wait did not come true. The object is recorded
    /// as it is. The next run continues the wait.
    fn unfulfilled(
        &mut self,
        id: StepId,
        resolution: &Resolution,
        object: Option<&provider_port::Object>,
    ) -> Result<(), ApplyError> {
        if let (Resolution::Claimed(owner), Some(object)) = (resolution, object) {
            return self.stay_in_doubt(id, &claimed(owner, &object.id));
        }
        // The API accepted the create. That its object does not show in time proves nothing.
        let create = self.calls.in_flight.get(&id).filter(|it| it.started.makes_its_object());
        let doubt = create.and_then(|flight| flight.doubt.as_ref());
        if let (Resolution::NotMade, Some(doubt)) = (resolution, doubt) {
            return self.doubt(id, Doubt::Accepted(doubt.error().clone()));
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let is_absent = matches!(resolution, Resolution::NotMade | Resolution::Gone);
        self.session.record(match object.filter(|_| !is_absent) {
            Some(object) => self.called(&flight, object),
            None => self.absence(&flight),
        })?;
        if let Some(doubt) = flight.doubt {
            self.fail_step(id, StepError::from(doubt.error()));
        }
        Ok(())
    }

    /// Returns the record that the object of a call is not there.
    fn absence(&self, flight: &InFlight) -> Record {
        let resolution = flight.started.absence(self.input.host.now_ms());
        Record::Resolved { call: flight.started.call, resolution }
    }

    /// Ends a create whose object is there and differs from what was sent. The address stands for the object
    /// from now on, and the next run changes it. The step fails, so it is not reported as made. The create is
    /// not sent again: an API may refuse that, and the difference may be what the API made of the request.
    fn not_as_sent(
        &mut self,
        id: StepId,
        object: &provider_port::Object,
        unlike: &[Name],
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        self.session.record(self.found(&flight, object))?;
        let trouble = match &flight.doubt {
            Some(Doubt::Refused(error)) => StepError::from(error),
            Some(Doubt::Accepted(_)) => StepError::not_as_sent(unlike, "the API accepted it"),
            doubt => {
                let lost = words(doubt.as_ref().map(Doubt::error));
                StepError::not_as_sent(unlike, &lost)
            }
        };
        self.fail_step(id, trouble);
        Ok(())
    }

    /// Returns the record of the object of a call, if nothing shows that the call did its work.
    fn found(&self, flight: &InFlight, object: &provider_port::Object) -> Record {
        let snapshot = self.session.snapshot();
        let known = flight.in_doubt(&snapshot.seal_key).known(snapshot);
        let resolution = Resolved::Found { object: self.seen(object, &known, flight) };
        Record::Resolved { call: flight.started.call, resolution }
    }

    /// Handles a create that made nothing: its nonce is watched, and the create begins again under a new one.
    fn not_made(&mut self, id: StepId) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        self.session.record(self.absence(&flight))?;
        self.try_again(id, &flight, &Resolution::NotMade);
        Ok(())
    }

    /// Handles a call whose object does not show the change. If the change is of an attribute that no answer
    /// shows, its value counts as unknown from now on, and the next plan sends it again unless this run does.
    /// The call may have done its work, or may do it late.
    fn not_done(
        &mut self,
        id: StepId,
        object: &provider_port::Object,
        resolution: &Resolution,
    ) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let is_proof = *resolution == Resolution::NotDone && flight.started.unshown.is_empty();
        self.session.record(if is_proof {
            let reason = "the object shows that nothing changed".to_owned();
            let outcome = Outcome::NoEffect { reason };
            Record::Finished { call: flight.started.call, outcome }
        } else {
            self.found(&flight, object)
        })?;
        self.try_again(id, &flight, resolution);
        Ok(())
    }

    /// Handles a call whose object is gone: a delete is done, any other step fails.
    fn gone(&mut self, id: StepId) -> Result<(), ApplyError> {
        if self.calls.in_flight.get(&id).is_some_and(|it| it.started.ends_its_object()) {
            return self.vanished(id);
        }
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        self.session.record(self.absence(&flight))?;
        let message = "the object is gone".to_owned();
        let help = Some("plan again: it will be made anew".to_owned());
        self.fail_step(id, StepError { message, help });
        Ok(())
    }

    pub(super) fn stay_in_doubt(&mut self, id: StepId, why: &Error) -> Result<(), ApplyError> {
        let Some(flight) = self.calls.remove(id) else { return Ok(()) };
        let (call, accepted) = (flight.started.call, flight.is_accepted());
        let reason = match flight.doubt.as_ref().map(Doubt::error).filter(|doubt| *doubt != why) {
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
