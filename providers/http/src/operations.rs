//! Operations of a server: an operation that a call begins is polled until it has ended.

use engine::state::ObjectId;
use engine::stored::from_json;
use engine::value::Value;
use provider_port::{Error, Kind, Notice};
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::calls::{Payload, Prepared, Shown};
use crate::classify::Failure;
use crate::conditions::{failed, filled, holds};
use crate::descriptor::model::{CallModel, OperationModel};
use crate::objects::id_text;
use crate::perform::{Act, Ended};
use crate::template::{ANSWER, CallScope};

impl Act<'_> {
    /// Waits for the operation that a call began. Returns none if the answer names no operation.
    pub(crate) async fn ended(
        &self,
        operation: &OperationModel,
        (call, begun): (&Prepared<'_>, &Shown),
    ) -> Result<Option<Ended>, Failure> {
        let answer = value_of(begun);
        let Some(look) = self.look_at(operation, call, begun, &answer)? else { return Ok(None) };
        let ended = self.poll(operation, &look).await?;
        let id = operation.id.as_ref().and_then(|id| filled(id, ANSWER, &ended));
        match id.as_ref().and_then(id_text).map(ObjectId) {
            Some(id) => Ok(Some(Ended::Object(self.subject.read(&id).await?))),
            None => Ok(Some(Ended::Unnamed)),
        }
    }

    /// Returns the call that shows an operation.
    fn look_at<'p>(
        &'p self,
        operation: &'p OperationModel,
        call: &Prepared<'p>,
        begun: &Shown,
        answer: &Value,
    ) -> Result<Option<Prepared<'p>>, Failure> {
        let Some(model) = &operation.call else {
            let location = begun.headers.iter().find(|(name, _)| name == "location");
            let Some((_, location)) = location.filter(|_| begun.is_promise) else {
                return Ok(None);
            };
            let url = self.subject.caller.location(call, location)?;
            return Ok(Some(Prepared {
                api: call.api,
                what: "the look at an operation".to_owned(),
                payload: Payload::Link { url },
                mutation: false,
                names_object: false,
                headers: Vec::new(),
                header: None,
                masker: self.subject.masker(),
                permit: None,
            }));
        };
        if !names_something(model, answer) {
            return Ok(None);
        }
        let scope = CallScope { answer: Some(answer), ..self.scope() };
        self.subject.prepare(model, &scope).map(Some)
    }

    /// Polls an operation until it has ended; returns its last answer.
    async fn poll(
        &self,
        operation: &OperationModel,
        look: &Prepared<'_>,
    ) -> Result<Value, Failure> {
        (self.call.progress)(Notice::Waiting(operation.words.clone()));
        let timing = &self.subject.caller.timing;
        let (began, mut pause) = (Instant::now(), timing.poll_first);
        loop {
            let trouble = match self.subject.caller.call(look, &|_| {}).await {
                Ok(shown) => {
                    let answer = value_of(&shown);
                    if let Some(failure) = failed(operation.failing.as_ref(), ANSWER, &answer) {
                        return Err(self.has_failed(&operation.words, &failure).await);
                    }
                    match holds(&operation.until, ANSWER, &answer) {
                        Ok(true) => return Ok(answer),
                        Ok(false) => None,
                        Err(reason) => Some(reason),
                    }
                }
                Err(failure) if failure.transient => Some(failure.error.message),
                Err(failure) => {
                    let message =
                        format!("what became of it cannot be seen: {}", failure.error.message);
                    let said = failure.error.said.unwrap_or_default().into();
                    // The create was accepted, and its object may show late.
                    let kind = if self.creates() { Kind::StillWaiting } else { Kind::InDoubt };
                    return Err(Failure::new(kind, message).said(said));
                }
            };
            if began.elapsed() + pause > operation.within {
                let seconds = operation.within.as_secs();
                let why = trouble.map_or_else(String::new, |why| format!(": {why}"));
                let (name, words) = (&self.subject.schema.name, &operation.words);
                let message =
                    format!("{name}: after {seconds} s it still does not hold that {words}{why}");
                let help = "apply again: what became of it is looked up";
                return Err(Failure::new(Kind::StillWaiting, message).help(help));
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5).min(timing.poll_max);
        }
    }

    /// Returns the failure of an operation that the server gave up. Its effects are looked up.
    async fn has_failed(&self, words: &str, reason: &str) -> Failure {
        let name = &self.subject.schema.name;
        let message = format!("{name} has failed, and this was awaited: {words}");
        Failure::new(Kind::InDoubt, message).refused().said(self.masked(reason).await)
    }

    /// Returns a text of the server, without secrets and keys.
    async fn masked(&self, text: &str) -> String {
        let keys = self.subject.caller.asked_keys.held().await;
        self.subject.masker().with_keys(&keys).line(text)
    }

    /// Returns the error of an object that failed during a wait.
    pub(crate) async fn object_failed(&self, words: &str, reason: &str) -> Error {
        let name = &self.subject.schema.name;
        let message = format!("{name} has failed, and this was awaited: {words}");
        Error::new(Kind::StillWaiting, message).said(self.masked(reason).await).help(
            "look into the API why; then apply again, or make another one with `--replace ADDRESS`",
        )
    }
}

/// Returns the JSON of an answer as a value.
fn value_of(shown: &Shown) -> Value {
    from_json(shown.json.as_ref().unwrap_or(&Json::Null))
}

/// Returns true if the answer that began an operation contains the values that the operation's call needs.
fn names_something(call: &CallModel, answer: &Value) -> bool {
    call.segments_with(ANSWER)
        .iter()
        .all(|part| filled(part, ANSWER, answer).is_some_and(|it| !it.is_null()))
}
