//! Questions to the shell: what look-ups need beside lists.

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
    /// For an object, because lists do not show all of it.
    Object {
        /// The provider instance that reads it.
        provider: Name,
        /// Its id.
        id: ObjectId,
    },
    /// For what is no object.
    Fetch(Fetch),
}

/// A question for what is no object of an API.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetch {
    /// For the outputs of a state.
    State(StatePlace),
    /// For the answer of an address.
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
    /// The address.
    pub url: Name,
    /// The headers that are sent.
    pub headers: BTreeMap<Name, Name>,
    /// The statuses of an answer that is taken; all of 200 to 299 where there is none.
    pub expected_status: Vec<i64>,
    /// The longest time that it may take.
    pub timeout: Duration,
    /// True if the address or a header is a secret.
    pub is_secret: bool,
}

/// The reason that a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The event, in a sentence.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}
