//! The seam at the wire: one request goes out; a response comes back, or why there is none.
//!
//! Everything above it decides (what is sent, when, again, and what an answer proves), and is what
//! a simulator exercises. What stands behind it only carries: [`crate::client`] in real runs, a
//! model of a service in tests. No type of an HTTP library is in it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

use crate::connection::Connection;
use crate::limits::{Limiter, Limiters};

/// Carries requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one request, once, and reads the whole answer. Redirects are answers like others.
    async fn send(&self, request: Request) -> Result<Response, Broken>;

    /// A random number: pauses are not to be the same for everyone who was refused at once.
    fn random(&self) -> u64;
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes, or asks.
    Post,
    /// Puts in place.
    Put,
    /// Changes a part.
    Patch,
    /// Ends.
    Delete,
}

impl Method {
    /// Returns the name of the method as HTTP writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A request, ready to send. Has no `Debug`: its address and headers may hold a key.
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its address.
    pub url: Url,
    /// The way there.
    pub connection: Arc<Connection>,
    /// Names and values beside those of its body; all values are kept out of any output.
    pub headers: Vec<(String, String)>,
    /// A JSON text.
    pub body: Option<Vec<u8>>,
    /// The longest time that it may take, from its first byte to the answer's last.
    pub within: Duration,
    /// The largest answer, in bytes.
    pub answer_bytes_max: usize,
}

/// An answer as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The values of a header that may come in several fields, as one; none where there is no such
    /// field.
    pub(crate) fn joined(&self, name: &str) -> Option<String> {
        let own = self.headers.iter().filter(|(own, _)| own == name);
        let values: Vec<&str> = own.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// The reason that there is no answer.
#[derive(Clone, Debug)]
pub enum Broken {
    /// No byte of the request left.
    NotSent(String),
    /// The request may have arrived.
    Lost(String),
}

/// A transport with the limits that all who use it share.
pub struct Network {
    pub(crate) transport: Arc<dyn Transport>,
    limiters: Limiters,
}

impl Network {
    /// A network of its own, without any calls yet.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, limiters: Limiters::default() }
    }

    pub(crate) fn limiter(&self, address: &str, bound: usize) -> Arc<Limiter> {
        self.limiters.of(address, bound)
    }
}
