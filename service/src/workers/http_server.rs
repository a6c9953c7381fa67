//! The HTTP server of a worker of a load balancing endpoint: its ports, and whether it takes requests.

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

/// The path of health checks where the environment of the worker names none.
const HEALTH_PATH: &str = "/ping";

/// The most bytes that are held of what a worker sends and nobody has read yet.
const BUFFER_MAX: usize = 128 << 10;

/// The answer to the latest health check of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// No answer.
    Silent,
    /// 204: the worker gets requests later.
    Initializing,
    /// 200: the worker gets requests.
    Healthy,
    /// Another status: the worker gets no requests.
    Unhealthy(u16),
}

/// The HTTP server of a worker.
#[derive(Debug)]
pub(crate) struct HttpServer {
    port: Port,
    /// The port of health checks, if it is another one.
    health_port: Option<Port>,
    pub(super) health_path: String,
    health: Mutex<Health>,
}

impl HttpServer {
    /// Takes free ports for a worker. Health checks have one of their own if its environment names
    /// another one for them than for requests.
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

    /// The port of requests.
    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// The port of health checks.
    pub(crate) fn health_port(&self) -> u16 {
        self.health_port.as_ref().unwrap_or(&self.port).number()
    }

    /// The variables that tell the worker where to listen.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PORT", self.port().to_string()),
            ("PORT_HEALTH", self.health_port().to_string()),
            ("HEALTH_CHECK_PATH", self.health_path.clone()),
        ]
    }

    /// The answer to its latest health check.
    pub(crate) fn health(&self) -> Health {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the answer to a health check. Returns the one before.
    pub(super) fn set_health(&self, health: Health) -> Health {
        std::mem::replace(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner), health)
    }
}

/// Returns the path of health checks that a value of `HEALTH_CHECK_PATH` means.
pub(crate) fn health_path(variable: Option<&str>) -> String {
    match variable.map(str::trim) {
        None | Some("") => HEALTH_PATH.to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("/{path}"),
    }
}

/// Opens a connection to a port of a worker. The second part must be polled for the first to work.
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
