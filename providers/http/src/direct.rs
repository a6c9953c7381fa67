//! Calls that no descriptor describes, to an API that one does.
//!
//! An API beyond resources, such as a queue of jobs, is called here: with the
//! address, the key, the limits, the retries and the words of the provider itself. Bodies go out
//! and come back as the texts that they are: what others wrote is not ours to change.

use std::time::Duration;

use engine::address::Name;
use engine::diagnostics::Diagnostics;
use engine::value::Value;
use provider_port::{Error, Notice, SendPermit};
use serde_json::value::RawValue;
use url::Url;

use crate::access::Access;
use crate::calls::{Caller, Payload, Prepared};
use crate::descriptor::Descriptor;
use crate::descriptor::model::Method;
use crate::settings::Settings;

/// One API of a descriptor, ready to be called.
pub struct Direct {
    caller: Caller,
    api: Name,
}

/// One call.
pub struct DirectCall<'a> {
    /// The path below the API's address, with its query; begins with a slash.
    pub path: String,
    /// The call in words, without values, such as `POST /run`.
    pub what: &'a str,
    /// The body of the call.
    pub ask: Ask,
    /// True if doing it twice is doing it once: then it is tried again when its answer is lost.
    pub repeatable: bool,
    /// The time that the API may hold its answer back on purpose.
    pub held: Duration,
    /// The secrets of the call. They are masked in whatever the API says of it.
    pub secrets: Vec<Value>,
    /// The permit that is asked for before each sending.
    pub permit: Option<&'a dyn SendPermit>,
}

/// The content of a call.
pub enum Ask {
    /// Nothing: it reads.
    Get,
    /// Nothing, or a JSON text.
    Post(Option<String>),
}

impl Direct {
    /// Looks up address and key, and refuses what is wrong with them. What is missing shows with
    /// the first call.
    pub fn open(
        descriptor: &Descriptor,
        api: &str,
        settings: &Settings<'_>,
    ) -> Result<Self, Diagnostics> {
        let (access, diagnostics) = Access::of(descriptor, settings);
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        Ok(Self { caller: Caller::new(descriptor, access, settings), api: api.into() })
    }

    /// A text that came from the API, without the key and these values, in whatever form it has them.
    pub fn hide(&self, text: &str, secrets: &[Value]) -> String {
        self.caller.masker.clone().with_secrets(secrets).mask(text)
    }

    /// The address of the API; none where nobody gave it.
    pub fn address(&self) -> Option<&Url> {
        self.caller.address(&self.api)
    }

    /// The header that carries the key in calls of the API, name and value; none without a key, or where it goes
    /// another way. Whoever asks answers for where it is sent.
    pub fn key_header(&self) -> Option<(String, String)> {
        self.caller.key_header(&self.api)
    }

    /// Makes a call and returns the answer's JSON; none when its body is empty. `progress` is told
    /// when it has to be tried again.
    pub async fn call(
        &self,
        call: DirectCall<'_>,
        progress: &(dyn Fn(Notice) + Send + Sync),
    ) -> Result<Option<Box<RawValue>>, Error> {
        let (method, body) = match call.ask {
            Ask::Get => (Method::Get, None),
            Ask::Post(body) => (Method::Post, body),
        };
        let prepared = Prepared {
            api: &self.api,
            what: call.what.to_owned(),
            payload: Payload::Text { method, path: call.path, body, held: call.held },
            mutation: !call.repeatable,
            names_object: true,
            headers: Vec::new(),
            header: None,
            masker: self.caller.masker.clone().with_secrets(&call.secrets),
            permit: call.permit,
        };
        let shown = self.caller.call(&prepared, progress).await;
        shown.map(|shown| shown.text).map_err(|failure| failure.error)
    }
}
