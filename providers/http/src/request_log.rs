//! The log of requests: one line for each attempt.
//!
//! A line contains the method, the masked path, the status, the time and the number of the attempt. It never
//! contains a header, a query or a body: those carry keys and values, and no mask knows all of them.

use std::time::Duration;

use engine::address::Name;
use tokio::time::Instant;
use tracing::{Level, debug, enabled, trace};

use crate::masker::Masker;
use crate::transport::{Broken, Request, Response};

/// The target of these lines, for filters.
const TARGET: &str = "plumb::http";

/// The parts of a call that the log shows.
#[derive(Clone, Copy)]
pub(crate) struct LogSubject<'a> {
    pub(crate) api: &'a Name,
    /// A description of the call, without values, such as `GET /things/…`.
    pub(crate) what: &'a str,
    /// The path below the address of the API, with its query; none if the log shows `what`: a GraphQL call is
    /// named by its operation, and a further page of a list by the path of the list.
    pub(crate) path: Option<&'a str>,
    /// Masks the path and errors.
    pub(crate) masker: &'a Masker,
}

impl LogSubject<'_> {
    /// Returns the path without secrets and without its query.
    fn masked_path(&self) -> String {
        match self.path {
            Some(path) => self.masker.line(path.split_once('?').map_or(path, |(path, _)| path)),
            None => self.what.split_once(' ').map_or(self.what, |(_, path)| path).to_owned(),
        }
    }
}

/// One attempt of a call, from its sending to its answer.
pub(crate) struct AttemptLog<'a> {
    subject: LogSubject<'a>,
    method: &'static str,
    path: String,
    attempt: u32,
    began: Instant,
}

impl<'a> AttemptLog<'a> {
    /// Starts to measure an attempt; returns none if the log is off.
    pub(crate) fn begin(subject: LogSubject<'a>, request: &Request, attempt: u32) -> Option<Self> {
        if !enabled!(target: TARGET, Level::DEBUG) {
            return None;
        }
        let (api, method, path) = (&**subject.api, request.method.as_str(), subject.masked_path());
        let bytes = request.body.as_ref().map_or(0, Vec::len);
        trace!(target: TARGET, api, method, path, bytes, attempt, "sending");
        Some(Self { subject, method, path, attempt, began: Instant::now() })
    }

    /// Logs the result of the attempt.
    pub(crate) fn end(self, result: &Result<Response, Broken>) {
        let Self { subject: LogSubject { api, masker, .. }, method, path, attempt, began } = self;
        let (api, ms) = (&**api, millis(began.elapsed()));
        match result {
            Ok(Response { status, body, .. }) => {
                let bytes = body.len();
                trace!(target: TARGET, api, method, path, bytes, attempt, "received");
                debug!(target: TARGET, api, method, path, status, ms, attempt, "request");
            }
            Err(Broken::NotSent(reason)) => {
                let error = masker.line(reason);
                debug!(target: TARGET, api, method, path, error, ms, attempt, "request not sent");
            }
            Err(Broken::Lost(reason)) => {
                let error = masker.line(reason);
                debug!(target: TARGET, api, method, path, error, ms, attempt, "answer lost");
            }
        }
    }
}

/// Logs that a call is made again after a pause. `call` describes the call, without values.
pub(crate) fn retry(call: &str, attempt: u32, pause: Duration) {
    debug!(target: TARGET, call, attempt, pause_ms = millis(pause), "retry");
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn a_path_is_logged_without_secrets_and_without_its_query() {
        let (api, masker) = (Name::from("rest"), Masker::of_keys(Some(&Key::new("s3cr/etkey"))));
        let shown =
            |what, path| LogSubject { api: &api, what, path, masker: &masker }.masked_path();
        for (path, logged) in [
            ("/things/t1", "/things/t1"),
            ("/things?token=unknown", "/things"),
            ("/keys/s3cr%2Fetkey", "/keys/…"),
            ("/a\nb", "/a b"),
        ] {
            assert_eq!(shown("GET /things/…", Some(path)), logged);
        }
        assert_eq!(shown("mutation saveThing", None), "saveThing");
    }
}
