//! The HTTP client: one request, one answer, or why there is none.
//!
//! It follows no redirect, repeats nothing, sends no referer and uses no proxy of the environment:
//! each of those could carry a key to where nobody meant it, or a request to the server twice.
//! `reqwest::Error` stays in this module, for its texts show addresses with their queries.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::classify::{Broken, Incoming};
use crate::descriptor::model::Method;

/// Times and bounds of calls. The defaults suit APIs on the internet; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long a call may take, from its first byte to the answer's last.
    pub total: Duration,
    /// How many bytes an answer may have.
    pub answer_bytes_max: usize,
    /// How often a read is tried.
    pub read_tries: u32,
    /// How often a call is tried that does not reach the server.
    pub connect_tries: u32,
    /// How long a read is tried again.
    pub read_patience: Duration,
    /// How long a call is tried again that the API asks to slow down.
    pub throttle_patience: Duration,
    /// The longest pause that an API may ask for.
    pub retry_after_max: Duration,
    /// The first pause between tries; each next is twice as long.
    pub pause_first: Duration,
    /// The longest pause between tries.
    pub pause_max: Duration,
    /// The first pause between looks at a condition.
    pub poll_first: Duration,
    /// The longest pause between looks at a condition.
    pub poll_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(90),
            answer_bytes_max: 64 * 1024 * 1024,
            read_tries: 8,
            connect_tries: 4,
            read_patience: Duration::from_mins(1),
            throttle_patience: Duration::from_mins(5),
            retry_after_max: Duration::from_mins(2),
            pause_first: Duration::from_millis(250),
            pause_max: Duration::from_secs(10),
            poll_first: Duration::from_millis(250),
            poll_max: Duration::from_secs(2),
        }
    }
}

/// A request, ready to send. Has no `Debug`: its address and headers may hold a key.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Names and values; all values are kept out of any output.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    /// How long the server may hold the answer back on purpose, beyond [`Timing::total`].
    pub(crate) held: Duration,
}

/// The client. The connection pool is made with the first call, so planning offline costs nothing.
pub(crate) struct Client {
    timing: Timing,
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl Client {
    pub(crate) fn new(timing: Timing) -> Self {
        Self { timing, http: OnceLock::new() }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<Incoming, Broken> {
        let http = self.http.get_or_init(|| build(&self.timing));
        let http = http.as_ref().map_err(|reason| Broken::NotSent(reason.clone()))?;
        let mut request = http
            .request(method(outgoing.method), outgoing.url)
            .headers(headers(&outgoing.headers)?)
            .timeout(self.timing.total + outgoing.held);
        if let Some(body) = outgoing.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        let mut incoming = Incoming {
            status: response.status().as_u16(),
            content_type: header(response.headers(), "content-type").unwrap_or_default(),
            retry_after: self.retry_after(response.headers()),
            link: header(response.headers(), "link"),
            body: Vec::new(),
        };
        self.read(response, &mut incoming).await?;
        Ok(incoming)
    }

    /// Reads the body in parts, so a server cannot fill the memory.
    async fn read(
        &self,
        mut response: reqwest::Response,
        incoming: &mut Incoming,
    ) -> Result<(), Broken> {
        while let Some(part) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if incoming.body.len() + part.len() > self.timing.answer_bytes_max {
                let most = self.timing.answer_bytes_max;
                return Err(Broken::Lost(format!("the answer is longer than {most} bytes")));
            }
            incoming.body.extend_from_slice(&part);
        }
        Ok(())
    }

    /// What an error proves, in words without an address.
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

    fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = header(headers, "retry-after")?;
        let seconds = text.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite());
        let after = match seconds {
            Some(seconds) => Duration::try_from_secs_f64(seconds.min(1e9)).ok()?,
            None => until(text.trim(), header(headers, "date")?.trim())?,
        };
        Some(after.min(self.timing.retry_after_max))
    }
}

/// From one date of the server's clock to another one; nothing where it has passed.
fn until(date: &str, now: &str) -> Option<Duration> {
    let (date, now) = (httpdate::parse_http_date(date).ok()?, httpdate::parse_http_date(now).ok()?);
    Some(date.duration_since(now).unwrap_or_default())
}

/// The innermost cause: the outer ones only say that a request failed, and where.
fn root(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        text = Some(inner.to_string());
        cause = inner.source();
    }
    text.unwrap_or_else(|| "the connection failed".to_owned())
}

fn build(timing: &Timing) -> Result<reqwest::Client, String> {
    // Another part of the process may have installed it already, which is as good.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .user_agent(concat!("plumb/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timing.connect)
        .timeout(timing.total)
        // Below the idle time of common servers: fewer requests meet a closing connection.
        .pool_idle_timeout(Duration::from_secs(20))
        .tcp_nodelay(true)
        .build()
        .map_err(|error| format!("the HTTP client cannot start: {}", root(&error)))
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

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Says whether a text can be the name of a header that a descriptor sets.
pub(crate) fn is_header_name(name: &str) -> bool {
    let ours = [ACCEPT, CONTENT_TYPE];
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !ours.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_servers_clock() {
        let now = "Sat, 21 Nov 2026 02:00:00 GMT";
        let seconds = |date: &str| until(date, now).map(|after| after.as_secs());
        assert_eq!(seconds("Sat, 21 Nov 2026 02:00:07 GMT"), Some(7));
        assert_eq!(seconds("Saturday, 21-Nov-26 02:01:00 GMT"), Some(60));
        assert_eq!(seconds("Fri, 20 Nov 2026 02:00:07 GMT"), Some(0), "it has passed");
        assert_eq!(seconds("tomorrow"), None);
        assert_eq!(until(now, "soon"), None);
    }
}
