//! Answers to requests that reach no worker, or get no answer from one.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::problem::Problem;
use crate::rest::answer::json_response;

/// A refused request: `{"error": …}`, with an explanation where the error is a documented word.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: String,
    message: Option<String>,
}

impl Refusal {
    /// Returns a refusal with a sentence.
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal { status, error: error.into(), message: None }
    }

    /// Returns a refusal with an error word that clients of the real service know, and a sentence.
    pub(super) fn known(status: StatusCode, error: &str, message: String) -> Refusal {
        Refusal { status, error: error.to_owned(), message: Some(message) }
    }

    /// Returns the refusal for a worker that did not answer as it should.
    pub(super) fn bad_gateway(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_GATEWAY, error)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let status = StatusCode::from_u16(problem.status()).expect("each kind has a valid status");
        Refusal::new(status, problem.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.error });
        if let Some(message) = self.message {
            body["message"] = json!(message);
        }
        json_response(self.status, &body)
    }
}
