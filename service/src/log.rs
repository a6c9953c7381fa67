//! The lines of the live log. The service prints nothing; its caller takes the lines.

use std::sync::Arc;

use crate::request_id;

/// The weight of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// The service failed at something that it must do.
    Error,
    /// Something went wrong, and the service deals with it.
    Warn,
    /// An event.
    Info,
    /// A request.
    Debug,
}

/// One line of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// The weight of the line.
    pub level: LogLevel,
    /// The id of the request during whose handling the line was written; `None` outside of
    /// requests.
    pub request: Option<&'a str>,
    /// The text. It may contain text from clients and workers, such as names and error messages.
    pub text: &'a str,
}

/// The function that takes the lines of the log. It must not block for long.
pub type Log = Arc<dyn Fn(&LogLine<'_>) + Send + Sync>;

/// Writes a line.
pub(crate) fn write(log: &Log, level: LogLevel, text: &str) {
    let request = request_id::current();
    log(&LogLine { level, request: request.as_deref(), text });
}
