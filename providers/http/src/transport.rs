//! The seam at the wire: one request goes out; a response comes back, or the reason that there is none.
//!
//! The code above it makes all decisions (what is sent and when, repetitions, the meaning of an answer), and
//! a simulator exercises that code. The code behind it only carries requests: [`crate::client`] in real runs,
//! a model of a service in tests. It uses no type of an HTTP library.

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

    /// Returns a random number, so that callers that were refused at the same time pause for different times.
    fn random(&self) -> u64;
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads an object.
    Get,
    /// Makes an object, or asks.
    Post,
    /// Replaces an object.
    Put,
    /// Changes a part of an object.
    Patch,
    /// Deletes an object.
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
    /// The connection to the server.
    pub connection: Arc<Connection>,
    /// Names and values of the headers, without that of the body's form; all values are kept out of any
    /// output.
    pub headers: Vec<(String, String)>,
    /// The body; none for a request without one.
    pub body: Option<Vec<u8>>,
    /// The longest time of the request, from its first byte to the last byte of the answer.
    pub within: Duration,
    /// The largest answer, in bytes.
    pub answer_bytes_max: usize,
}

/// An answer as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names of headers, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the value of a header; none if there is no such header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the values of a header that may have several fields, joined into one; none if there is no such
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
    /// No byte of the request was sent.
    NotSent(String),
    /// The request may have arrived.
    Lost(String),
}

/// A transport with limits that all its users share.
pub struct Network {
    pub(crate) transport: Arc<dyn Transport>,
    limiters: Limiters,
}

impl Network {
    /// Returns a new network without any calls.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, limiters: Limiters::default() }
    }

    pub(crate) fn limiter(&self, address: &str, bound: usize) -> Arc<Limiter> {
        self.limiters.of(address, bound)
    }
}
