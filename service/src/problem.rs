//! The problems that a request can have, with one definition for REST, GraphQL and the job API.
//!
//! A problem is an answer for the sender of a request; it is not a log entry. Its inner cause is
//! kept beside the message. The store writes the cause into the log; clients never see it.

use std::time::Duration;

use crate::field_name::ApiVersion;
use crate::store::error_class::{self, ErrorClass};

/// The kind of a problem. Each API maps it to its own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request is malformed, or breaks a rule of the service.
    Invalid,
    /// The key is missing or wrong.
    Unauthorized,
    /// The key lacks the right.
    Forbidden,
    /// There is no such object.
    NotFound,
    /// The request does not match the description of the API.
    Unprocessable,
    /// The name is taken.
    Conflict,
    /// The description has the operation, but this service does not.
    NotImplemented,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The body is larger than the management API takes.
    TooLarge,
    /// The body did not arrive in time.
    TimedOut,
    /// Too many requests; try again after the given time.
    TooMany(Duration),
    /// The service failed, and the client did not cause it.
    Internal,
    /// The API version is retired (only as a quirk).
    Gone,
    /// The service is stopping.
    Unavailable,
}

/// A problem with its message for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// The message for clients of version 2, if that version names the fields differently.
    message_two: Option<String>,
    /// Each single mismatch between a request and the description.
    pub(crate) faults: Vec<String>,
    /// The inner cause, for the log only; `None` if there is none.
    cause: Option<String>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Problem {
        let (message, message_two, faults, cause) = (message.into(), None, Vec::new(), None);
        Problem { kind, message, message_two, faults, cause }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(Kind::Invalid, message)
    }

    /// Returns the problem of a request that breaks a rule. `sentence` states it with the field
    /// names of a version.
    pub(crate) fn broken_rule(sentence: impl Fn(ApiVersion) -> String) -> Problem {
        let message_two = Some(sentence(ApiVersion::Two));
        Problem { message_two, ..Problem::invalid(sentence(ApiVersion::One)) }
    }

    /// Returns the problem of a request that does not match the description; `faults` are not
    /// empty.
    pub(crate) fn faulty(kind: Kind, mut faults: Vec<String>) -> Problem {
        const MOST: usize = 20;
        faults.truncate(MOST);
        Problem { message: faults.join("; "), faults, ..Problem::new(kind, "") }
    }

    /// Returns the problem that an object does not exist. `noun` is its kind as people say it:
    /// "network volume", "template".
    pub(crate) fn not_found(noun: &str) -> Problem {
        Problem::new(Kind::NotFound, format!("{noun} not found"))
    }

    pub(crate) fn unauthorized() -> Problem {
        Problem::new(Kind::Unauthorized, "unauthorized")
    }

    pub(crate) fn internal() -> Problem {
        Problem::new(Kind::Internal, "Something went wrong. Please try again later.")
    }

    /// Returns an internal problem with its cause, which only the log shows.
    pub(crate) fn because(cause: impl Into<String>) -> Problem {
        Problem { cause: Some(cause.into()), ..Problem::internal() }
    }

    /// Returns the problem that the store has no room. A client can only tell the people who run
    /// the service.
    pub(crate) fn full(cause: impl Into<String>) -> Problem {
        let message = "The disk of the service is full. Make room on it, then try again.";
        Problem { message: message.to_owned(), ..Problem::because(cause) }
    }

    /// Returns the message for clients of version 2.
    pub(crate) fn message_two(&self) -> &str {
        self.message_two.as_deref().unwrap_or(&self.message)
    }

    /// Returns the inner cause; `None` if there is none.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// Returns the HTTP status of this problem.
    pub(crate) fn status(&self) -> u16 {
        match self.kind {
            Kind::Invalid => 400,
            Kind::Unauthorized => 401,
            Kind::Forbidden => 403,
            Kind::NotFound => 404,
            Kind::TimedOut => 408,
            Kind::Conflict => 409,
            Kind::Unprocessable => 422,
            Kind::MethodNotAllowed => 405,
            Kind::Gone => 410,
            Kind::TooLarge => 413,
            Kind::TooMany(_) => 429,
            Kind::Internal => 500,
            Kind::NotImplemented => 501,
            Kind::Unavailable => 503,
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        let said = error_class::said(&error);
        match error_class::of(&error) {
            ErrorClass::Full => Problem::full(said),
            _ => Problem::because(said),
        }
    }
}

impl From<serde_json::Error> for Problem {
    /// Returns the internal problem that a record of our own store cannot be read. Requests are
    /// parsed elsewhere, with messages of their own. The error's text is left out, because it may
    /// repeat the record, which may hold secrets.
    fn from(error: serde_json::Error) -> Problem {
        let (what, at) = (error.classify(), error.column());
        Problem::because(format!("a record of the store cannot be read: {what:?} at byte {at}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_for_the_log_alone() {
        let wrong = serde_json::from_str::<i64>("\"hunter2\"").unwrap_err();
        let problem = Problem::from(wrong);
        assert_eq!(problem.cause(), Some("a record of the store cannot be read: Data at byte 9"));
        assert_eq!(problem.message, Problem::internal().message);
        let problem = Problem::from(rusqlite::Error::InvalidQuery);
        assert_eq!(problem.cause(), Some("Query is not read-only"));
    }
}
