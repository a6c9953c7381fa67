//! The lines of the live log. The service prints nothing: whoever starts it takes the lines.

use std::sync::Arc;

use crate::request_id;

/// The weight of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Something cannot be done that the service must do.
    Error,
    /// Something went wrong that the service deals with.
    Warn,
    /// An event.
    Info,
    /// A request.
    Debug,
}

/// One line of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// Its weight.
    pub level: LogLevel,
    /// The id of the request that was answered when the line was written.
    pub request: Option<&'a str>,
    /// Its text. It may hold what others said: names, reasons of workers.
    pub text: &'a str,
}

/// Takes the lines of the log. It must not block for long.
pub type Log = Arc<dyn Fn(&LogLine<'_>) + Send + Sync>;

/// Writes a line.
pub(crate) fn write(log: &Log, level: LogLevel, text: &str) {
    let request = request_id::current();
    log(&LogLine { level, request: request.as_deref(), text });
}
