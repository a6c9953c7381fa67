//! Calls that no descriptor describes, to an API of a descriptor.
//!
//! An API beyond resources, such as a queue of jobs, is called here, with the address, the key, the limits,
//! the retries and the error messages of the provider itself. Bodies are sent and returned as texts without a
//! change, because other programs wrote them.

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
    /// A description of the call, without values, such as `POST /run`.
    pub what: &'a str,
    /// The body of the call.
    pub ask: Ask,
    /// True if a repetition has no further effect: then the call is repeated if its answer is lost.
    pub repeatable: bool,
    /// The time for which the API may hold its answer back on purpose.
    pub held: Duration,
    /// The secrets of the call. They are masked in all messages of the API about it.
    pub secrets: Vec<Value>,
    /// The permit that the call asks for before each sending; none if it needs none.
    pub permit: Option<&'a dyn SendPermit>,
}

/// The content of a call.
pub enum Ask {
    /// No body; the call only reads.
    Get,
    /// No body, or a JSON text.
    Post(Option<String>),
}

impl Direct {
    /// Looks up address and key, and refuses those that are wrong. A missing address or key is reported by
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

    /// Returns a text from the API in which the key and these values are masked, in whatever form they
    /// appear.
    pub fn hide(&self, text: &str, secrets: &[Value]) -> String {
        self.caller.masker.clone().with_secrets(secrets).mask(text)
    }

    /// Returns the address of the API; none if it is not set.
    pub fn address(&self) -> Option<&Url> {
        self.caller.address(&self.api)
    }

    /// Returns the name and the value of the header that carries the key in calls of the API; none without a
    /// key, or if the key is sent in another way. The caller is responsible for where the key is sent.
    pub fn key_header(&self) -> Option<(String, String)> {
        self.caller.key_header(&self.api)
    }

    /// Makes a call and returns the JSON of the answer; none if its body is empty. `progress` gets a notice
    /// when the call has to be repeated.
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
