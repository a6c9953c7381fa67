//! The answers of the job API. JSON of workers is kept unchanged.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The job waits for a worker.
    InQueue,
    /// A worker runs the job.
    InProgress,
    /// The job ended with success.
    Completed,
    /// The worker reports that the job failed.
    Failed,
    /// The job was cancelled.
    Cancelled,
    /// The job ran longer than it may.
    TimedOut,
    /// A state that this version does not know, with the service's word for it.
    Other(String),
}

impl Status {
    /// Returns the service's word for the state.
    pub fn name(&self) -> &str {
        match self {
            Self::InQueue => "IN_QUEUE",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::TimedOut => "TIMED_OUT",
            Self::Other(name) => name,
        }
    }

    /// Returns true if the job has ended and changes only if it is retried.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut)
    }

    fn of(name: String) -> Self {
        match name.as_str() {
            "IN_QUEUE" => Self::InQueue,
            // The documents of the service use both words.
            "IN_PROGRESS" | "RUNNING" => Self::InProgress,
            "COMPLETED" => Self::Completed,
            "FAILED" => Self::Failed,
            "CANCELLED" => Self::Cancelled,
            "TIMED_OUT" => Self::TimedOut,
            _ => Self::Other(name),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::of)
    }
}

impl Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A job as an answer shows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its state.
    pub status: Status,
    /// The result of the worker, or its last progress while it runs; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// The reason that the job failed, in the worker's words, usually a text; none if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<RawValue>>,
    /// The time that it waited for a worker, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_time: Option<i64>,
    /// The time that it ran, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time: Option<i64>,
    /// The worker that had it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The number of times that it went back into the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
}

impl Job {
    /// Returns the reason that it failed, as text.
    pub fn error_text(&self) -> Option<String> {
        let raw = self.error.as_ref()?.get();
        Some(serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned()))
    }
}

/// One part of a stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Part {
    /// The output of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// The metrics of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<RawValue>>,
}

/// The parts of a stream that came with one call.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The state of the job; none if the service does not send it.
    pub status: Option<Status>,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// The answer of a stream call: an array by the documents, an object by the service itself.
#[derive(Deserialize)]
struct Stream {
    status: Status,
    #[serde(default)]
    stream: Vec<Part>,
}

impl<'de> Deserialize<'de> for Parts {
    /// Not derived with `untagged`, which would parse the raw JSON.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let custom = serde::de::Error::custom;
        if raw.get().starts_with('[') {
            let parts = serde_json::from_str(raw.get()).map_err(custom)?;
            return Ok(Self { status: None, parts });
        }
        let Stream { status, stream } = serde_json::from_str(raw.get()).map_err(custom)?;
        Ok(Self { status: Some(status), parts: stream })
    }
}

/// The result of a purge.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Purged {
    /// The number of jobs that were taken out of the queue.
    pub removed: u64,
    /// The service's word for the result.
    pub status: String,
}

/// The health of an endpoint: numbers of jobs and of workers, by their states.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Health {
    /// Jobs, such as `inQueue`.
    #[serde(default)]
    pub jobs: BTreeMap<String, i64>,
    /// Workers, such as `idle`.
    #[serde(default)]
    pub workers: BTreeMap<String, i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_what_workers_wrote() {
        let text = r#"{"id":"a","status":"COMPLETED","output":{"z":1e400,"n":1.50},"delayTime":3,"new":1}"#;
        let job: Job = serde_json::from_str(text).unwrap();
        assert_eq!(job.output.as_ref().unwrap().get(), r#"{"z":1e400,"n":1.50}"#);
        assert_eq!((job.delay_time, job.execution_time), (Some(3), None));
        assert_eq!(
            serde_json::to_string(&job).unwrap(),
            r#"{"id":"a","status":"COMPLETED","output":{"z":1e400,"n":1.50},"delayTime":3}"#
        );
    }

    #[test]
    fn states_that_are_new_are_no_error() {
        let status = |text: &str| serde_json::from_str::<Status>(text).unwrap();
        assert_eq!(status("\"RUNNING\""), Status::InProgress);
        assert_eq!(status("\"PAUSED\""), Status::Other("PAUSED".to_owned()));
        assert!(!status("\"PAUSED\"").is_final() && status("\"TIMED_OUT\"").is_final());
    }

    #[test]
    fn streams_come_in_two_forms() {
        let array: Parts = serde_json::from_str(r#"[{"output":"a"},{"output":2.0}]"#).unwrap();
        assert!(array.status.is_none());
        assert_eq!(array.parts[1].output.as_ref().unwrap().get(), "2.0");
        let text = r#"{"status":"COMPLETED","stream":[{"output":{"x":1},"metrics":{}}]}"#;
        let object: Parts = serde_json::from_str(text).unwrap();
        assert_eq!((object.status, object.parts.len()), (Some(Status::Completed), 1));
        assert!(serde_json::from_str::<Parts>("{}").is_err());
    }

    #[test]
    fn errors_are_texts_or_json() {
        let job = |error: &str| -> Job {
            serde_json::from_str(&format!(r#"{{"id":"a","status":"FAILED","error":{error}}}"#))
                .unwrap()
        };
        assert_eq!(job("\"no luck\"").error_text().unwrap(), "no luck");
        assert_eq!(job(r#"{"a":1}"#).error_text().unwrap(), r#"{"a":1}"#);
    }
}
