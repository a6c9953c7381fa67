//! The HTTP server of a worker of a load balancing endpoint: its ports and its health.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use hyper::body::Body;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::fleet::Wanted;
use super::ports::Port;

/// The path of health checks if the worker's environment names none.
const HEALTH_PATH: &str = "/ping";

/// The most bytes from a worker that are buffered until they are read.
const BUFFER_MAX: usize = 128 << 10;

/// The answer of a worker to its latest health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// There was no answer.
    Silent,
    /// The answer was 204: the worker initializes, and gets requests later.
    Initializing,
    /// The answer was 200: the worker gets requests.
    Healthy,
    /// The answer was another status: the worker gets no requests.
    Unhealthy(u16),
}

/// The HTTP server of a worker.
#[derive(Debug)]
pub(crate) struct HttpServer {
    port: Port,
    /// The port of health checks; `None` if it is the port of requests.
    health_port: Option<Port>,
    pub(super) health_path: String,
    health: Mutex<Health>,
}

impl HttpServer {
    /// Takes free ports for a worker. Health checks have a port of their own if the worker's
    /// environment names different ports for requests and health checks.
    pub(super) fn new(wanted: &Wanted) -> io::Result<HttpServer> {
        let port_of_health = wanted.variable("PORT_HEALTH").filter(|port| !port.is_empty());
        let is_apart = port_of_health.is_some_and(|port| wanted.variable("PORT") != Some(port));
        Ok(HttpServer {
            port: Port::take()?,
            health_port: if is_apart { Some(Port::take()?) } else { None },
            health_path: health_path(wanted.variable("HEALTH_CHECK_PATH")),
            health: Mutex::new(Health::Silent),
        })
    }

    /// Returns the port of requests.
    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the port of health checks.
    pub(crate) fn health_port(&self) -> u16 {
        self.health_port.as_ref().unwrap_or(&self.port).number()
    }

    /// Returns the variables that tell the worker at which ports to listen.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PORT", self.port().to_string()),
            ("PORT_HEALTH", self.health_port().to_string()),
            ("HEALTH_CHECK_PATH", self.health_path.clone()),
        ]
    }

    /// Returns the answer to the latest health check.
    pub(crate) fn health(&self) -> Health {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the answer to a health check. Returns the previous one.
    pub(super) fn set_health(&self, health: Health) -> Health {
        std::mem::replace(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner), health)
    }
}

/// Returns the path of health checks for a value of `HEALTH_CHECK_PATH`; the default for `None` or
/// an empty one.
pub(crate) fn health_path(variable: Option<&str>) -> String {
    match variable.map(str::trim) {
        None | Some("") => HEALTH_PATH.to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("/{path}"),
    }
}

/// Opens a connection to a port of a worker. The returned connection must be polled for the sender
/// to work.
pub(crate) async fn connect<B>(
    port: u16,
) -> io::Result<(SendRequest<B>, Connection<TokioIo<TcpStream>, B>)>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    let mut builder = Builder::new();
    builder.max_buf_size(BUFFER_MAX);
    builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_health_checks_begins_with_a_slash() {
        assert_eq!(health_path(None), "/ping");
        assert_eq!(health_path(Some(" ")), "/ping");
        assert_eq!(health_path(Some("/a/b?c")), "/a/b?c");
        assert_eq!(health_path(Some("ready")), "/ready");
    }
}
