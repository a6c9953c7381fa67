//! A job: its states, its row in the store, and its form for clients.

use std::collections::BTreeMap;

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::clock::iso;

/// The states of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    InQueue,
    InProgress,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl State {
    /// Returns the name in answers and in the store.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::InQueue => "IN_QUEUE",
            State::InProgress => "IN_PROGRESS",
            State::Completed => "COMPLETED",
            State::Failed => "FAILED",
            State::Cancelled => "CANCELLED",
            State::TimedOut => "TIMED_OUT",
        }
    }

    /// Returns the state with this name. The store contains no other names.
    fn of(name: &str) -> State {
        match name {
            "IN_QUEUE" => State::InQueue,
            "IN_PROGRESS" => State::InProgress,
            "COMPLETED" => State::Completed,
            "FAILED" => State::Failed,
            "CANCELLED" => State::Cancelled,
            _ => State::TimedOut,
        }
    }

    /// Returns true if the job has ended. Only a retry changes it then.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, State::InQueue | State::InProgress)
    }

    /// Returns true if the job may be retried.
    pub(crate) fn can_retry(self) -> bool {
        matches!(self, State::Failed | State::TimedOut)
    }
}

/// A job as the store holds it, without the submitted JSON, which may be large and is rarely
/// needed.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) endpoint: String,
    pub(crate) state: State,
    pub(crate) low_priority: bool,
    pub(crate) webhook: Option<String>,
    pub(crate) submitted_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) worker: Option<String>,
    pub(crate) retries: i64,
    /// The number of workers that were lost while they ran this job.
    pub(crate) losses: i64,
    /// The time of the runs before this one, in milliseconds.
    pub(crate) spent_ms: i64,
    /// The output as JSON text, as the worker wrote it; `None` if there is none, or if it is large.
    pub(crate) output: Option<String>,
    /// The bytes of a large output; `None` for any other.
    pub(crate) large_output: Option<usize>,
    pub(crate) error: Option<String>,
}

/// The most bytes of an output that is read with its job. [`COLUMNS`] contains the same number.
const HELD_MAX: usize = 65_536;

/// The columns that [`Job::from_row`] reads, in this order.
pub(crate) const COLUMNS: &str = "id, endpoint, state, low_priority, webhook, submitted_at, \
     started_at, finished_at, worker, retries, losses, spent_ms, \
     case when octet_length(output) <= 65536 then output end, \
     case when octet_length(output) > 65536 then octet_length(output) end, error";

/// The columns for jobs without their output and error. An output may have 20 MB, and functions
/// that remove, count or queue thousands of jobs do not need it.
pub(crate) const BRIEF: &str = "id, endpoint, state, low_priority, webhook, submitted_at, \
     started_at, finished_at, worker, retries, losses, spent_ms, null, null, null";

/// The job result object up to the output. JSON of clients and workers is passed on unchanged, with
/// its number formats and the order of its keys.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BeforeOutput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_time: Option<i64>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
}

/// The job result object after the output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AfterOutput<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    retries: i64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Job {
    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Job> {
        Ok(Job {
            id: row.get(0)?,
            endpoint: row.get(1)?,
            state: State::of(row.get_ref(2)?.as_str()?),
            low_priority: row.get(3)?,
            webhook: row.get(4)?,
            submitted_at: row.get(5)?,
            started_at: row.get(6)?,
            finished_at: row.get(7)?,
            worker: row.get(8)?,
            retries: row.get(9)?,
            losses: row.get(10)?,
            spent_ms: row.get(11)?,
            output: row.get(12)?,
            large_output: row
                .get::<_, Option<i64>>(13)?
                .and_then(|bytes| usize::try_from(bytes).ok()),
            error: row.get(14)?,
        })
    }

    /// Ends the job with its worker's result, and sets the fields as the store shows them from then
    /// on.
    pub(crate) fn end(&mut self, output: Option<String>, error: Option<String>, now: i64) {
        self.state = if error.is_some() { State::Failed } else { State::Completed };
        self.large_output = output.as_ref().map(String::len).filter(|bytes| *bytes > HELD_MAX);
        self.output = output.filter(|output| output.len() <= HELD_MAX);
        (self.error, self.finished_at) = (error, Some(now));
    }

    /// Returns the job reference object.
    pub(crate) fn reference(&self) -> Value {
        json!({ "id": self.id, "status": self.state.name() })
    }

    /// Returns the job as an element of a list.
    pub(crate) fn listed(&self) -> Value {
        json!({
            "id": self.id,
            "status": self.state.name(),
            "createdAt": iso(self.submitted_at),
            "completedAt": self.finished_at.map(iso),
            "error": self.error,
        })
    }

    /// Returns the job result object as JSON text, without a large output.
    pub(crate) fn result(&self) -> String {
        self.result_with(self.output.as_deref(), None, None)
    }

    /// Returns the message for a webhook as JSON text: the result, with the input and the webhook.
    pub(crate) fn notice(&self, request: &str, output: Option<&str>) -> String {
        let request = Request::read(request);
        let input = request.0.get("input").map(AsRef::as_ref);
        self.result_with(output, input, self.webhook.as_deref())
    }

    /// Returns the text of the job result object before its output, and the text after it.
    pub(crate) fn around_output(&self) -> (String, String) {
        let (before, after) = self.around(None, None);
        (format!("{before},\"output\":"), format!(",{after}"))
    }

    fn result_with(
        &self,
        output: Option<&str>,
        input: Option<&RawValue>,
        webhook: Option<&str>,
    ) -> String {
        let (before, after) = self.around(input, webhook);
        match output {
            Some(output) => format!("{before},\"output\":{output},{after}"),
            None => format!("{before},{after}"),
        }
    }

    /// Returns the time that the job waited for its runs, in milliseconds; `None` before the first.
    pub(crate) fn delay_ms(&self) -> Option<i64> {
        self.started_at.map(|at| at - self.submitted_at - self.spent_ms)
    }

    /// Returns the time of all runs of the job, in milliseconds; `None` before it has ended.
    pub(crate) fn execution_ms(&self) -> Option<i64> {
        Some(self.spent_ms + self.finished_at? - self.started_at?)
    }

    fn around(&self, input: Option<&RawValue>, webhook: Option<&str>) -> (String, String) {
        let before = BeforeOutput {
            delay_time: self.delay_ms(),
            error: self.error.as_deref(),
            execution_time: self.execution_ms(),
            id: &self.id,
            input,
        };
        let after = AfterOutput {
            retries: self.retries,
            status: self.state.name(),
            webhook,
            worker_id: self.worker.as_deref(),
        };
        let mut before = serde_json::to_string(&before).expect(WRITABLE);
        before.pop();
        let mut after = serde_json::to_string(&after).expect(WRITABLE);
        after.remove(0);
        (before, after)
    }
}

/// The reason for which the service's own objects can always be written as JSON.
const WRITABLE: &str = "texts and numbers can be written as JSON";

/// A submitted JSON object, with unchanged values.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct Request(pub(crate) BTreeMap<String, Box<RawValue>>);

impl Request {
    /// Reads a stored request, which was checked when it was accepted.
    fn read(text: &str) -> Request {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns the input of a stored request as its client wrote it; `None` if there is none.
    pub(crate) fn input(text: &str) -> Option<String> {
        Request::read(text).0.get("input").map(|input| input.get().to_owned())
    }

    /// Returns the JSON text for a worker: the whole submitted object, with the job's id.
    pub(crate) fn assignment(text: &str, id: &str) -> String {
        let mut request = Request::read(text);
        let id = serde_json::value::to_raw_value(id).expect("a text can be written as JSON");
        request.0.insert("id".to_owned(), id);
        serde_json::to_string(&request).expect("JSON can be written again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_passed_on_untouched() {
        let request = r#"{"input":{"z":1,"a":12345678901234567890123,"f":1.50},"s3Config":{"b":1.0},"id":"x"}"#;
        assert_eq!(
            Request::assignment(request, "job"),
            r#"{"id":"job","input":{"z":1,"a":12345678901234567890123,"f":1.50},"s3Config":{"b":1.0}}"#
        );
        let job = Job {
            id: "job".to_owned(),
            endpoint: "e".to_owned(),
            state: State::Completed,
            low_priority: false,
            webhook: Some("http://w".to_owned()),
            submitted_at: 10,
            started_at: Some(15),
            finished_at: Some(18),
            worker: None,
            retries: 0,
            losses: 0,
            spent_ms: 0,
            large_output: None,
            output: Some(r#"{"z":1e400,"a":[]}"#.to_owned()),
            error: None,
        };
        assert_eq!(
            job.result(),
            r#"{"delayTime":5,"executionTime":3,"id":"job","output":{"z":1e400,"a":[]},"status":"COMPLETED"}"#
        );
        assert!(
            job.notice(request, None).contains(r#""input":{"z":1,"a":12345678901234567890123"#)
        );
    }
}
