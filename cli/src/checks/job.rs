//! The job of a check: it is submitted, waited for within a time limit, and turned into the value of `job`.

use std::fmt;
use std::time::{Duration, Instant};

use engine::address::Name;
use engine::shell;
use engine::stored::{from_json, to_json};
use engine::value::{Attributes, Datum, Value};
use provider_serverless::jobs::{Endpoint, Job, Sending, Status, Submission};
use serde_json::value::RawValue;

use super::hiding::Hiding;
use super::{Fetched, TIMEOUT, World, fetched, stopped};
use crate::args;
use crate::bounded_request::{self, Sent};
use crate::error::CommandError;
use crate::jobs::{self, Bounds, Early, Ended, Telling};

/// The description of a job in a check.
struct Asked {
    endpoint: String,
    submission: Submission,
    timeout: Duration,
    /// The secrets of the job, which the answer may repeat.
    secrets: Vec<Value>,
}

impl World<'_> {
    /// Runs the job of a check. An inner error fails the check, an outer error ends all checks.
    pub(super) async fn job(
        &self,
        name: &Name,
        datum: &Datum,
        hiding: &Hiding<'_>,
    ) -> Result<Result<Fetched, String>, CommandError> {
        let asked = match asked(datum) {
            Ok(asked) => asked,
            Err(wrong) => return Ok(Err(wrong)),
        };
        let _turn = tokio::select! {
            turn = self.turns.at(&asked.endpoint) => turn,
            () = self.stop.cancelled() => return Err(stopped()),
        };
        let until = Some(Instant::now() + asked.timeout);
        let bounds = Bounds { until, stop: self.stop.clone() };
        let api = jobs::api(self.configured)?;
        let progress = jobs::teller(self.output);
        let sending = Sending::default();
        let secret = !asked.secrets.is_empty();
        let endpoint = api.endpoint(&asked.endpoint, &progress).sending(&sending);
        let endpoint = endpoint.hiding(asked.secrets);
        let call = endpoint.run(&asked.submission);
        let submitted = match bounded_request::within(call, &sending, &bounds, || ()).await {
            Sent::Answered(Ok(job)) => job,
            Sent::Answered(Err(error)) => return Ok(Err(said(&error))),
            Sent::Not(Early::Stopped) | Sent::Perhaps(Early::Stopped) => return Err(stopped()),
            Sent::Not(Early::TimeUp) => return Ok(Err(differing(asked.timeout))),
            Sent::Perhaps(Early::TimeUp) => return Ok(Err(in_doubt(asked.timeout))),
        };
        let label = format!("check {}: ", render::safe::text(name));
        let hide = |text: &str| hiding.hide(text);
        let mut telling = Telling::new(self.output, label, !secret).hiding(&hide);
        let begun = Begun { endpoint: &endpoint, of: &asked.endpoint, id: submitted.id.clone() };
        let ended = jobs::wait(&endpoint, submitted, &bounds, &mut telling).await;
        match ended {
            Ok(Ended::Job(job)) => Ok(Ok(self.result(&job, secret))),
            Ok(Ended::TimedOut(job)) => Ok(Err(begun.late(&job, asked.timeout).await)),
            Ok(Ended::Stopped(_)) => Err(begun.stopped().await),
            Err(error) => Ok(Err(begun.out_of_sight(&error).await)),
        }
    }

    #[expect(clippy::unused_self, reason = "what is shown is one of the world's matters")]
    fn result(&self, job: &Job, secret: bool) -> Fetched {
        let id = render::safe::text(&job.id);
        let detail = match job.error_text() {
            Some(why) => format!("job {id} is {}: {why}", job.status),
            None => format!("job {id} is {}", job.status),
        };
        fetched(value(job), secret, Some(detail))
    }
}

/// Returns the value of `job` in the assertion. It has every attribute; an unknown one is null.
fn value(job: &Job) -> Value {
    let json = |raw: &Option<Box<RawValue>>| {
        let parsed = raw.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        parsed.as_ref().map_or(Value::Null, from_json)
    };
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    let entries: [(&str, Value); 6] = [
        ("id", Value::string(job.id.as_str())),
        ("status", Value::string(job.status.name())),
        ("output", json(&job.output)),
        ("error", json(&job.error)),
        ("delayTime", number(job.delay_time)),
        ("executionTime", number(job.execution_time)),
    ];
    Value::map(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn asked(datum: &Datum) -> Result<Asked, String> {
    let entries = datum.value.as_map().ok_or("`job` is a table with `endpoint` and `input`")?;
    super::shape::known_keys("job", entries.keys().map(|key| &**key))?;
    let endpoint = entries.get("endpoint").and_then(Value::as_str);
    let endpoint = endpoint.ok_or("`endpoint` of the job is the id of an endpoint, a text")?;
    let input = entries.get("input").filter(|input| !input.is_null());
    let input = to_json(input.ok_or("the job has no `input`")?).to_string();
    let submission = Submission::new(&input).map_err(|error| error.to_string())?;
    let secrets = datum.sensitive.iter().filter_map(|path| datum.value.at(path).cloned()).collect();
    Ok(Asked { endpoint: endpoint.to_owned(), submission, timeout: timeout(entries)?, secrets })
}

/// Returns the time limit of a job or request.
pub(super) fn timeout(entries: &Attributes) -> Result<Duration, String> {
    match entries.get("timeout") {
        None | Some(Value::Null) => Ok(TIMEOUT),
        Some(Value::String(text)) => {
            args::duration(text).map_err(|why| format!("`timeout`: {why}"))
        }
        Some(_) => Err("`timeout` is a text such as \"30s\" or \"5m\"".to_owned()),
    }
}

fn said(error: &provider_port::Error) -> String {
    match &error.help {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    }
}

/// Returns the message for a job that was not submitted within the time limit.
fn differing(timeout: Duration) -> String {
    format!("the service did not take the job within {}", jobs::seconds(timeout))
}

/// Returns the message for a job that the service may have taken.
fn in_doubt(timeout: Duration) -> String {
    let time = jobs::seconds(timeout);
    format!("the service did not say within {time} that it took the job; it may have done so")
}

/// A job that the service has accepted. A running job costs money, so the check cancels it when it gives up.
/// If that fails, the user is told how to cancel it.
struct Begun<'a> {
    endpoint: &'a Endpoint<'a>,
    /// The id of the endpoint.
    of: &'a str,
    id: String,
}

impl Begun<'_> {
    /// Returns the message for a job that did not end within the time limit.
    async fn late(&self, job: &Job, timeout: Duration) -> String {
        let (status, time, left) = (&job.status, jobs::seconds(timeout), self.left().await);
        format!("{self} did not end within {time}: it was {status}, and {left}")
    }

    /// Returns the message for a job whose status cannot be read.
    async fn out_of_sight(&self, error: &provider_port::Error) -> String {
        let (left, why) = (self.left().await, said(error));
        format!("{self} could not be looked at, and {left}; {why}")
    }

    /// Returns the error for a stop request while the job runs.
    async fn stopped(&self) -> CommandError {
        if self.give_up().await {
            return stopped();
        }
        stopped().help(format!("{self} {}", self.by_hand()))
    }

    /// Cancels the job, and returns a sentence about its state.
    async fn left(&self) -> String {
        if self.give_up().await { "is cancelled".to_owned() } else { self.by_hand() }
    }

    fn by_hand(&self) -> String {
        let (of, id) = (shell::quoted(self.of), shell::quoted(&self.id));
        let command = render::safe::capped(&format!("plumb job cancel {of} {id}"), 500);
        format!("could not be cancelled: if it still runs, `{command}` ends it")
    }

    /// Cancels the job. Returns true if the service confirms that.
    async fn give_up(&self) -> bool {
        let cancelling = self.endpoint.cancel(&self.id);
        let answer = tokio::time::timeout(Duration::from_secs(5), cancelling).await;
        matches!(answer, Ok(Ok(Job { status: Status::Cancelled, .. })))
    }
}

impl fmt::Display for Begun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", render::safe::text(&self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &serde_json::Value) -> Result<Asked, String> {
        asked(&Datum::plain(from_json(json)))
    }

    #[test]
    fn jobs_of_checks() {
        let job = of(&serde_json::json!({"endpoint": "e1", "input": {"a": [1]}})).unwrap();
        assert_eq!((job.endpoint.as_str(), job.timeout, job.secrets.len()), ("e1", TIMEOUT, 0));
        assert_eq!(job.submission.body(100).unwrap(), r#"{"input":{"a":[1]}}"#);
        let wrong = |json: serde_json::Value| of(&json).err().unwrap();
        assert!(wrong(serde_json::json!("e1")).contains("is a table"));
        assert!(wrong(serde_json::json!({"input": 1})).contains("`endpoint` of the job"));
        assert!(wrong(serde_json::json!({"endpoint": "e"})).contains("no `input`"));
        assert!(
            wrong(serde_json::json!({"endpoint": "e", "input": {}, "wait": 2})).contains("`wait`")
        );
        let timed = |time: serde_json::Value| serde_json::json!({"endpoint": "e", "input": {}, "timeout": time});
        assert_eq!(of(&timed("2m".into())).unwrap().timeout, Duration::from_mins(2));
        assert!(
            wrong(timed(3.into())).contains("is a text")
                && wrong(timed("x".into())).contains("30s")
        );
    }

    #[test]
    fn what_is_not_known_is_null() {
        let job: Job =
            serde_json::from_str(r#"{"id":"a","status":"COMPLETED","output":{"n":1}}"#).unwrap();
        let shown = to_json(&value(&job)).to_string();
        assert_eq!(
            shown,
            r#"{"delayTime":null,"error":null,"executionTime":null,"id":"a","output":{"n":1},"status":"COMPLETED"}"#
        );
    }
}
