//! Questions to the shell: reads that look-ups need beside the lists.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::address::{Address, Name};
use crate::config::settings::StateSettings;
use crate::state::ObjectId;

/// A question to the shell.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRequest {
    /// The look-up that needs the answer.
    pub address: Address,
    /// The question.
    pub question: Question,
}

/// The question of a look-up.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// A read of an object, because lists do not show all of its attributes.
    Object {
        /// The provider instance that reads it.
        provider: Name,
        /// The id of the object.
        id: ObjectId,
    },
    /// A question about something that is no object of an API.
    Fetch(Fetch),
}

/// A question about something that is no object of an API.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetch {
    /// The outputs of a state.
    State(StatePlace),
    /// The answer to an HTTP request.
    Http(HttpRequest),
}

/// The place of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum StatePlace {
    /// The state of the spec in a folder, wherever that spec keeps it.
    Folder(Name),
    /// The state in a backend.
    Backend(StateSettings),
}

/// A GET whose answer is read.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    /// The URL of the request.
    pub url: Name,
    /// The headers that are sent.
    pub headers: BTreeMap<Name, Name>,
    /// The statuses that are accepted; if empty, all from 200 to 299.
    pub expected_status: Vec<i64>,
    /// The longest time that the request may take.
    pub timeout: Duration,
    /// True if the URL or a header is a secret.
    pub is_secret: bool,
}

/// The reason that a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// A sentence that says what happened.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}
