//! The client of the job API: jobs are submitted to an endpoint, and looked at until they end.
//!
//! A mistake in a submission is reported before anything is sent ([`limits`]). `provider_http` makes the
//! calls, so address, key, pauses after 429 and the words of errors are the same as those of the management
//! calls. A submission whose answer was lost is never sent again: that would make a second job.

mod follow;
pub mod limits;
mod result;
mod sending;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::diagnostics::Diagnostics;
use engine::value::Value;
use provider_http::{Ask, Descriptor, Direct, DirectCall, Settings};
use provider_port::{Error, Kind, Notice};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use url::Url;

pub use follow::Follow;
pub use limits::{Refused, Submission, Wait};
pub use result::{Health, Job, Part, Parts, Purged, Status};
pub use sending::Sending;

/// The resource type that takes jobs.
const TYPE: &str = "endpoint";
/// The API of the descriptor through which jobs are submitted.
const API: &str = "queue";
/// The longest time for which the server may hold back the answer of `/stream`.
const STREAM_HELD: Duration = Duration::from_secs(30);

/// Returns true if a URL leads to the host of the service, or to that of an endpoint: its id, a dot, and the
/// host of the service.
fn leads_to(service: &Url, url: &Url, is_endpoint: impl FnOnce(&str) -> bool) -> bool {
    let place = |url: &Url| (url.scheme().to_owned(), url.port_or_known_default());
    let (Some(own), Some(host)) = (service.host_str(), url.host_str()) else { return false };
    let id = || host.strip_suffix(own).and_then(|front| front.strip_suffix('.'));
    place(service) == place(url) && (host == own || id().is_some_and(is_endpoint))
}

/// Returns true if resources of a type take jobs.
pub fn takes_jobs(ty: &str) -> bool {
    ty == TYPE
}

/// A function that is called when a call has to be tried again.
pub type Progress<'a> = &'a (dyn Fn(Notice) + Send + Sync);

/// The job API, ready to be called.
pub struct Jobs {
    direct: Direct,
}

/// One endpoint of the job API.
pub struct Endpoint<'a> {
    direct: &'a Direct,
    id: &'a str,
    progress: Progress<'a>,
    sending: Option<&'a Sending>,
    /// The secrets of submitted jobs. A later answer that repeats one is masked.
    secrets: Mutex<Vec<Value>>,
}

impl Jobs {
    /// Looks up address and key, and refuses those that are wrong. A missing address or key is reported by
    /// the first call.
    pub fn open(descriptor: &Descriptor, settings: &Settings<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { direct: Direct::open(descriptor, API, settings)? })
    }

    /// Returns the name and the value of the header with the key, for a request to a load balancing endpoint.
    /// None if the URL leads neither to the host of the service nor to that of an endpoint below it.
    pub fn key_for(
        &self,
        url: &Url,
        is_endpoint: impl FnOnce(&str) -> bool,
    ) -> Option<(String, String)> {
        let own = self.direct.address()?;
        let is_of_service = leads_to(own, url, is_endpoint);
        self.direct.key_header().filter(|_| is_of_service)
    }

    /// Returns a text that came from a worker, with the key masked.
    pub fn hide(&self, text: &str) -> String {
        self.direct.hide(text, &[])
    }

    /// Returns the endpoint with an id.
    pub fn endpoint<'a>(&'a self, id: &'a str, progress: Progress<'a>) -> Endpoint<'a> {
        Endpoint { direct: &self.direct, id, progress, sending: None, secrets: Mutex::default() }
    }
}

impl<'a> Endpoint<'a> {
    /// Returns the endpoint; its calls record in `sending` that a request which changes something may have
    /// reached the service.
    #[must_use]
    pub fn sending(self, sending: &'a Sending) -> Self {
        Self { sending: Some(sending), ..self }
    }

    /// Returns the endpoint; `secrets` are masked in its answers and errors.
    #[must_use]
    pub fn hiding(self, secrets: Vec<Value>) -> Self {
        self.know(secrets);
        self
    }

    /// Sends `POST /run`, which puts the job into the queue; returns its id and status.
    pub async fn run(&self, submission: &Submission) -> Result<Job, Error> {
        let body = submission.body(limits::RUN_BYTES_MAX).map_err(|reason| refused(&reason))?;
        self.know(submission.secrets());
        let call = self.call("POST /run", "/run", Ask::Post(Some(body)));
        self.change(call).await.map(|job| self.shown(job)).map_err(doubtful)
    }

    /// Sends `POST /runsync`; returns the job's result if it ends within `wait`, else its id and status.
    pub async fn run_sync(&self, submission: &Submission, wait: Wait) -> Result<Job, Error> {
        let body = submission.body(limits::RUNSYNC_BYTES_MAX).map_err(|reason| refused(&reason))?;
        self.know(submission.secrets());
        let path = format!("/runsync?wait={}", wait.ms());
        let mut call = self.call("POST /runsync", &path, Ask::Post(Some(body)));
        call.held = wait.duration();
        self.change(call).await.map(|job| self.shown(job)).map_err(doubtful)
    }

    /// Sends `GET /status`; returns the job.
    pub async fn status(&self, job: &str) -> Result<Job, Error> {
        let call = self.read("GET /status", &format!("/status/{}", segment(job)?));
        self.one(call).await.map(|job| self.shown(job))
    }

    /// Sends `GET /status-sync`; returns the job once it has ended, or as it is after `wait`.
    pub async fn status_sync(&self, job: &str, wait: Wait) -> Result<Job, Error> {
        let path = format!("/status-sync/{}?wait={}", segment(job)?, wait.ms());
        let mut call = self.read("GET /status-sync", &path);
        call.held = wait.duration();
        self.one(call).await.map(|job| self.shown(job))
    }

    /// Sends `GET /stream`; returns the parts that came since the last call. The service gives each part only
    /// once.
    pub async fn stream(&self, job: &str) -> Result<Parts, Error> {
        let mut call = self.read("GET /stream", &format!("/stream/{}", segment(job)?));
        call.held = STREAM_HELD;
        // A second call would not return the parts that were in the lost answer.
        call.repeatable = false;
        let parts: Parts = self.one(call).await.map_err(|error| match error.kind {
            Kind::InDoubt => error.help(
                "parts that were in the lost answer are gone; the job itself goes on, and \
                 `plumb job status` shows its output",
            ),
            _ => error,
        })?;
        Ok(parts)
    }

    /// Sends `POST /cancel`; returns the job.
    pub async fn cancel(&self, job: &str) -> Result<Job, Error> {
        let path = format!("/cancel/{}", segment(job)?);
        let mut call = self.call("POST /cancel", &path, Ask::Post(None));
        call.repeatable = true;
        self.one(call).await
    }

    /// Sends `POST /retry`, which puts the job into the queue again, with its id and input.
    pub async fn retry(&self, job: &str) -> Result<Job, Error> {
        let path = format!("/retry/{}", segment(job)?);
        let error = |error: Error| match error.kind {
            Kind::InDoubt => error.help("`plumb job status` shows whether it waits again"),
            Kind::Rejected if error.help.is_none() => error.help(
                "only a job that failed or timed out can be tried again, while its result is kept",
            ),
            _ => error,
        };
        self.change(self.call("POST /retry", &path, Ask::Post(None))).await.map_err(error)
    }

    /// Sends `POST /purge-queue`, which removes the jobs that wait; jobs in progress keep running.
    pub async fn purge(&self) -> Result<Purged, Error> {
        self.change(self.call("POST /purge-queue", "/purge-queue", Ask::Post(None))).await
    }

    /// Sends `GET /health`; returns the state of the jobs and workers.
    pub async fn health(&self) -> Result<Health, Error> {
        self.one(self.read("GET /health", "/health")).await
    }

    fn know(&self, secrets: Vec<Value>) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).extend(secrets);
    }

    fn secrets(&self) -> Vec<Value> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a job with the secrets of submissions masked in its error. The output is the result that the
    /// user asked for, so it stays as it is.
    fn shown(&self, mut job: Job) -> Job {
        let secrets = self.secrets();
        let Some(error) = job.error_text().filter(|_| !secrets.is_empty()) else { return job };
        let shown = self.direct.hide(&error, &secrets);
        if shown != error {
            job.error = serde_json::value::to_raw_value(&shown).ok();
        }
        job
    }

    fn call<'w>(&self, what: &'w str, path: &str, ask: Ask) -> DirectCall<'w> {
        let path = format!("/{}{path}", self.id);
        DirectCall {
            path,
            what,
            ask,
            repeatable: false,
            held: Duration::ZERO,
            secrets: self.secrets(),
            permit: None,
        }
    }

    fn read<'w>(&self, what: &'w str, path: &str) -> DirectCall<'w> {
        DirectCall { repeatable: true, ..self.call(what, path, Ask::Get) }
    }

    async fn change<T: DeserializeOwned>(&self, mut call: DirectCall<'_>) -> Result<T, Error> {
        let Some(sending) = self.sending else { return self.one(call).await };
        call.permit = Some(sending);
        let progress = |notice| {
            // The call is tried again only if the service did not accept it.
            sending.came_back();
            (self.progress)(notice);
        };
        self.told(call, &progress).await
    }

    async fn one<T: DeserializeOwned>(&self, call: DirectCall<'_>) -> Result<T, Error> {
        self.told(call, self.progress).await
    }

    async fn told<T: DeserializeOwned>(
        &self,
        call: DirectCall<'_>,
        progress: Progress<'_>,
    ) -> Result<T, Error> {
        if !is_id(self.id) {
            return Err(no_id("an endpoint", self.id));
        }
        let what = call.what;
        let text: Option<Box<RawValue>> = self.direct.call(call, progress).await?;
        let text = text.as_ref().map_or("", |text| text.get());
        serde_json::from_str(text).map_err(|_| foreign(what))
    }
}

/// Returns true if a text can be an id of an endpoint or a job. Any other text in a path could lead to
/// another operation.
pub fn is_id(text: &str) -> bool {
    (1..=200).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn segment(job: &str) -> Result<&str, Error> {
    if is_id(job) { Ok(job) } else { Err(no_id("a job", job)) }
}

fn no_id(of: &str, text: &str) -> Error {
    Error::new(Kind::Rejected, format!("`{text}` is not the id of {of}"))
        .help("ids are made of letters, digits and minus signs")
}

fn refused(reason: &Refused) -> Error {
    Error::new(Kind::Rejected, reason.to_string()).help("nothing was sent")
}

fn foreign(what: &str) -> Error {
    Error::new(Kind::InDoubt, format!("{what} got an answer that is not one of the job API"))
        .help("check that PLUMB_SERVERLESS_QUEUE_URL leads to the job API")
}

fn doubtful(error: Error) -> Error {
    match error.kind {
        Kind::InDoubt => error.help(
            "the job may have been taken or not: it is not sent a second time; `plumb job health` \
             shows how many jobs wait",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_goes_to_the_service_and_to_its_endpoints() {
        let goes = |service: &str, url: &str| {
            leads_to(&service.parse().unwrap(), &url.parse().unwrap(), |id| id == "mine")
        };
        let (here, there) = ("http://127.0.0.1:8000/v2", "https://api.example/v2");
        assert!(goes(here, "http://127.0.0.1:8000/lb/mine/ping"));
        assert!(goes(there, "https://api.example/x") && goes(there, "https://mine.api.example/x"));
        for url in [
            "http://api.example/x",
            "https://api.example:8443/x",
            "https://other.api.example/x",
            "https://mine.api.example.evil.example/x",
            "https://evilapi.example/x",
            "https://mine.evil.api.example/x",
            "https://api.example@evil.example/x",
            "data:text/plain,x",
        ] {
            assert!(!goes(there, url), "{url}");
        }
        assert!(!goes(here, "http://127.0.0.1:8001/lb/mine/ping"));
    }

    #[test]
    fn the_error_of_a_job_shows_no_storage_secret() {
        let none = |_: &str| None;
        let jobs = Jobs::open(&crate::read().unwrap(), &Settings::new(&none)).unwrap();
        let silent = |_: Notice| {};
        let endpoint = jobs.endpoint("e", &silent);
        let job = |error: &str| {
            let text = serde_json::json!({ "id": "j", "status": "FAILED", "error": error });
            let job: Job = serde_json::from_str(&text.to_string()).unwrap();
            endpoint.shown(job).error_text().unwrap()
        };
        let error = "cannot log in with s3-hunter2-value";
        assert_eq!(job(error), error);
        endpoint.know(vec![Value::string("s3-hunter2-value")]);
        assert_eq!(job(error), "cannot log in with …");
        assert_eq!(job("out of memory"), "out of memory");
    }

    #[test]
    fn ids_lead_nowhere_else() {
        for id in ["jpnw0v75y3qoql", "sync-79164ff4-d212-44bc-9fe3-389e199a5c15-u1", "a_b"] {
            assert!(is_id(id), "{id}");
        }
        let long = "x".repeat(201);
        for id in ["", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "é", &long] {
            assert!(!is_id(id), "{id}");
        }
    }
}
