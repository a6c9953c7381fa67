//! The transport of real runs: an HTTP client that implements [`crate::transport`].
//!
//! It follows no redirect, repeats nothing, sends no referer and uses no proxy of the environment: each of
//! those could send a key to another place, or a request to the server twice. This is the only module that
//! uses `reqwest`, whose errors show addresses with their queries.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Certificate, Identity};

use crate::connection::Connection;
use crate::timing::Timing;
use crate::transport::{Broken, Method, Request, Response, Transport};

/// The client. A connection pool is made for the first call of its connection, so planning offline costs
/// nothing.
pub(crate) struct Client {
    timing: Timing,
    pools: Mutex<BTreeMap<Arc<Connection>, Result<reqwest::Client, String>>>,
}

impl Client {
    pub(crate) fn new(timing: Timing) -> Self {
        Self { timing, pools: Mutex::default() }
    }

    /// Returns the pool of a connection.
    fn pool(&self, connection: &Arc<Connection>) -> Result<reqwest::Client, Broken> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if !pools.contains_key(connection) {
            pools.insert(connection.clone(), build(&self.timing, connection));
        }
        pools[connection].clone().map_err(Broken::NotSent)
    }

    /// Reads the body in parts, so that a server cannot fill the memory.
    async fn read(&self, mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + part.len() > most {
                return Err(Broken::Lost(format!("the answer is longer than {most} bytes")));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// Classifies an error by what it proves. The message contains no address.
    fn broken(&self, error: &reqwest::Error) -> Broken {
        if error.is_builder() {
            return Broken::NotSent("the request cannot be made".to_owned());
        }
        if error.is_connect() {
            let reason = if error.is_timeout() {
                format!("no connection within {} s", self.timing.connect.as_secs())
            } else {
                root(error)
            };
            return Broken::NotSent(reason);
        }
        if error.is_timeout() {
            let seconds = self.timing.total.as_secs_f64();
            return Broken::Lost(format!("nothing came within {seconds} s"));
        }
        Broken::Lost(root(error))
    }
}

#[async_trait]
impl Transport for Client {
    async fn send(&self, request: Request) -> Result<Response, Broken> {
        let http = self.pool(&request.connection)?;
        let mut headers = headers(&request.headers)?;
        if request.body.is_some() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let mut outgoing = http
            .request(method(request.method), request.url)
            .headers(headers)
            .timeout(request.within);
        if let Some(body) = request.body {
            outgoing = outgoing.body(body);
        }
        let response = outgoing.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status().as_u16();
        let headers = response.headers().iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let headers = headers.collect();
        let body = self.read(response, request.answer_bytes_max).await?;
        Ok(Response { status, headers, body })
    }

    fn random(&self) -> u64 {
        std::hash::RandomState::new().build_hasher().finish()
    }
}

/// Returns the innermost cause: the outer ones only say that a request to an address failed.
fn root(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        text = Some(inner.to_string());
        cause = inner.source();
    }
    text.unwrap_or_else(|| "the connection failed".to_owned())
}

fn build(timing: &Timing, connection: &Connection) -> Result<reqwest::Client, String> {
    // If another part of the process has installed it already, that is fine.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let cannot_start =
        |error: reqwest::Error| format!("the HTTP client cannot start: {}", root(&error));
    let mut builder = reqwest::Client::builder();
    if let Some(socket) = &connection.socket {
        builder = builder.unix_socket(&**socket);
    }
    if let Some(authorities) = &connection.tls.authorities {
        let authorities = Certificate::from_pem_bundle(authorities.as_bytes());
        builder = builder.tls_certs_only(authorities.map_err(cannot_start)?);
    }
    if let Some(identity) = &connection.tls.identity {
        builder = builder.identity(Identity::from_pem(identity.as_bytes()).map_err(cannot_start)?);
    }
    builder
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .user_agent(concat!("plumb/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timing.connect)
        .timeout(timing.total)
        // This is below the idle time of common servers, so fewer requests meet a closing connection.
        .pool_idle_timeout(Duration::from_secs(20))
        .tcp_nodelay(true)
        .build()
        .map_err(cannot_start)
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

fn headers(pairs: &[(String, String)]) -> Result<HeaderMap, Broken> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    for (name, value) in pairs {
        let unfit = |what| Broken::NotSent(format!("{what} `{name}` cannot be sent"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit("the header"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| unfit("the value of the header"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// The headers that belong to a connection, or that the client itself sets.
const OURS: [HeaderName; 6] =
    [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING, UPGRADE, EXPECT];

/// Returns true if a text can be the name of a header that a descriptor sets.
pub(crate) fn is_header_name(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !OURS.contains(&name))
}
