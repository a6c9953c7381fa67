//! A job: its states, its row in the store, and how clients see it.

use rusqlite::Row;
use serde_json::{Map, Value, json};

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
    /// The name on the wire and in the store.
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

    /// The state with this name; the store holds no other.
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

    /// Whether nothing more happens to the job unless it is retried.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, State::InQueue | State::InProgress)
    }

    /// Whether the job may be retried.
    pub(crate) fn can_retry(self) -> bool {
        matches!(self, State::Failed | State::TimedOut)
    }
}

/// A job as the store holds it.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) endpoint: String,
    pub(crate) state: State,
    pub(crate) low_priority: bool,
    /// The submitted JSON object, all its keys.
    pub(crate) request: String,
    pub(crate) webhook: Option<String>,
    pub(crate) submitted_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) worker: Option<String>,
    pub(crate) retries: i64,
    /// JSON text.
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
}

/// The columns that [`Job::from_row`] reads, in its order.
pub(crate) const COLUMNS: &str = "id, endpoint, state, low_priority, request, webhook, \
     submitted_at, started_at, finished_at, worker, retries, output, error";

impl Job {
    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Job> {
        Ok(Job {
            id: row.get(0)?,
            endpoint: row.get(1)?,
            state: State::of(row.get_ref(2)?.as_str()?),
            low_priority: row.get(3)?,
            request: row.get(4)?,
            webhook: row.get(5)?,
            submitted_at: row.get(6)?,
            started_at: row.get(7)?,
            finished_at: row.get(8)?,
            worker: row.get(9)?,
            retries: row.get(10)?,
            output: row.get(11)?,
            error: row.get(12)?,
        })
    }

    /// The job reference object.
    pub(crate) fn reference(&self) -> Value {
        json!({ "id": self.id, "status": self.state.name() })
    }

    /// The job result object.
    pub(crate) fn result(&self) -> Value {
        Value::Object(self.result_fields())
    }

    /// What a webhook is told: the result with what was submitted.
    pub(crate) fn notice(&self) -> Value {
        let mut fields = self.result_fields();
        let request: Value = serde_json::from_str(&self.request).unwrap_or_default();
        fields.insert("input".to_owned(), request["input"].clone());
        fields.insert("webhook".to_owned(), json!(self.webhook));
        Value::Object(fields)
    }

    fn result_fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("id", json!(self.id));
        put("status", json!(self.state.name()));
        if let Some(started_at) = self.started_at {
            put("delayTime", json!(started_at - self.submitted_at));
            if let Some(finished_at) = self.finished_at {
                put("executionTime", json!(finished_at - started_at));
            }
        }
        if let Some(output) = &self.output {
            put("output", serde_json::from_str(output).unwrap_or(Value::Null));
        }
        if let Some(error) = &self.error {
            put("error", json!(error));
        }
        if self.retries > 0 {
            put("retries", json!(self.retries));
        }
        if let Some(worker) = &self.worker {
            put("workerId", json!(worker));
        }
        fields
    }

    /// What a worker gets: everything that was submitted, with the job's id.
    pub(crate) fn assignment(&self) -> Value {
        let mut request: Value = serde_json::from_str(&self.request).unwrap_or_default();
        request["id"] = json!(self.id);
        request
    }
}
