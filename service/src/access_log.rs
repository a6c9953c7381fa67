//! The access log: one JSON line per request of a client, in `access.log` of the data folder.
//!
//! A line holds the operation, the object, the status and the time of a request. It never holds a
//! key, a query string or a body. A line is written before its answer is sent, so a client that has
//! the answer finds the line. A log that has grown too long is renamed to `access.log.1`, which
//! replaces the previous one, and a new log begins.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::clock::now_ms;
use crate::faults::Call;
use crate::log::{self, Log, LogLevel};
use crate::own_files::itself;
use crate::request_id;

/// The status of a request that got no answer: cut by a fault, or the client left first.
const NO_ANSWER: u16 = 0;

/// The most bytes of one file of the log. There are at most two files.
const FILE_MAX: u64 = 64 << 20;

/// The open access log.
pub(crate) struct AccessLog {
    file: Option<Mutex<Lines>>,
    verbose: Option<Log>,
}

/// The file of the log, with its length and its largest length in bytes.
struct Lines {
    path: PathBuf,
    file: File,
    length: u64,
    most: u64,
}

impl Lines {
    fn open(path: PathBuf, most: u64) -> std::io::Result<Lines> {
        let file = itself().create(true).append(true).open(&path)?;
        let length = file.metadata()?.len();
        Ok(Lines { path, file, length, most })
    }

    fn append(&mut self, line: &str) -> std::io::Result<()> {
        let more = line.len() as u64;
        if self.length > 0 && self.length + more > self.most {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            *self = Lines::open(self.path.clone(), self.most)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.length += more;
        Ok(())
    }
}

impl AccessLog {
    /// Opens `access.log` in this folder, or no file without `keep`. With `verbose`, each request
    /// is also a line of that log.
    pub(crate) fn open(
        folder: &Path,
        keep: bool,
        verbose: Option<Log>,
    ) -> std::io::Result<AccessLog> {
        let open = || Lines::open(folder.join("access.log"), FILE_MAX);
        let file = if keep { Some(Mutex::new(open()?)) } else { None };
        Ok(AccessLog { file, verbose })
    }

    /// Starts the entry of one request; it is written when the entry is closed or dropped.
    pub(crate) fn entry(self: &Arc<Self>, method: &str, path: &str) -> Entry {
        let state = State { call: None, object: None, status: NO_ANSWER, written: false };
        Entry(Arc::new(Inner {
            log: Arc::clone(self),
            method: method.to_owned(),
            path: path.to_owned(),
            request: request_id::current(),
            at_ms: now_ms(),
            started: Instant::now(),
            state: Mutex::new(state),
        }))
    }

    fn write(&self, inner: &Inner, state: &State) {
        let elapsed = inner.started.elapsed();
        let operation = state.call.as_ref().map(|call| call.operations.join(" "));
        if let Some(log) = &self.verbose {
            let what = operation.as_deref().unwrap_or(&inner.path);
            let object = state.object.as_deref().unwrap_or("");
            let text = format!("{} {what} {object} {elapsed:.1?}", state.status);
            log::write(log, LogLevel::Debug, &text);
        }
        let Some(file) = &self.file else { return };
        let line = Line {
            at_ms: inner.at_ms,
            method: &inner.method,
            ms: elapsed.as_secs_f64() * 1000.0,
            mutating: state.call.as_ref().is_some_and(|call| call.mutating),
            object: state.object.as_deref(),
            operation,
            path: &inner.path,
            request: inner.request.as_deref(),
            status: state.status,
        };
        let mut line =
            serde_json::to_string(&line).expect("texts and numbers can be written as JSON");
        line.push('\n');
        // A full disk must not turn into a failed request.
        drop(file.lock().unwrap_or_else(PoisonError::into_inner).append(&line));
    }
}

/// A line of the log.
#[derive(Serialize)]
struct Line<'a> {
    at_ms: i64,
    method: &'a str,
    ms: f64,
    mutating: bool,
    object: Option<&'a str>,
    operation: Option<String>,
    path: &'a str,
    request: Option<&'a str>,
    status: u16,
}

/// The entry of one request. Each part of the service that handles the request adds what it knows.
#[derive(Clone)]
pub(crate) struct Entry(Arc<Inner>);

struct Inner {
    log: Arc<AccessLog>,
    method: String,
    path: String,
    /// The id of the request.
    request: Option<Arc<str>>,
    at_ms: i64,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    call: Option<Call>,
    object: Option<String>,
    status: u16,
    written: bool,
}

impl Entry {
    /// Notes which operation this is.
    pub(crate) fn call(&self, call: &Call) {
        self.with(|state| state.call = Some(call.clone()));
    }

    /// Notes the object that the request is about.
    pub(crate) fn object(&self, id: &str) {
        self.with(|state| state.object = Some(id.to_owned()));
    }

    /// Writes the entry with this status. `None` means that the client gets no answer.
    pub(crate) fn close(&self, status: Option<u16>) {
        self.with(|state| {
            state.status = status.unwrap_or(NO_ANSWER);
            state.written = true;
            self.0.log.write(&self.0, state);
        });
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Inner {
    /// Writes an entry that was not closed: the client left before there was an answer.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !state.written {
            let state = State { call: state.call.take(), object: state.object.take(), ..*state };
            self.log.write(self, &state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_put_aside_and_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let mut lines = Lines::open(path.clone(), 10).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            lines.append(line).unwrap();
        }
        assert_eq!(
            (read("access.log.1"), read("access.log")),
            ("one\ntwo\n".into(), "three\n".into())
        );
        // The file's length from an earlier run counts, and a line that is longer than the limit is
        // written whole.
        let mut lines = Lines::open(path, 10).unwrap();
        for line in ["four\n", "a longer line\n"] {
            lines.append(line).unwrap();
        }
        let left = (read("access.log.1"), read("access.log"));
        assert_eq!(left, ("four\n".into(), "a longer line\n".into()));
    }
}
