//! The part of HTTP that the echo worker needs: one request after the other over one kept
//! connection.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The time for an answer. It is longer than the service holds any request of a worker.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A connection to the service, opened when it is needed.
#[derive(Default)]
pub(super) struct Connection(Option<BufReader<TcpStream>>);

impl Connection {
    /// Sends one request to an `http://` address, and returns the status and the body of the
    /// answer. If the service has closed the kept connection meanwhile, the request is sent once
    /// more over a new one.
    pub(super) fn call(
        &mut self,
        method: &str,
        url: &str,
        token: &str,
        body: Option<&[u8]>,
    ) -> io::Result<(u16, Vec<u8>)> {
        let rest = url.strip_prefix("http://").ok_or(io::ErrorKind::InvalidInput)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let body = body.unwrap_or_default();
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let kept = self.0.is_some();
        match self.exchange(host, head.as_bytes(), body) {
            Err(_) if kept => self.exchange(host, head.as_bytes(), body),
            done => done,
        }
    }

    fn exchange(&mut self, host: &str, head: &[u8], body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut stream = match self.0.take() {
            Some(stream) => stream,
            None => open(host)?,
        };
        stream.get_mut().write_all(&[head, body].concat())?;
        let (status, body, keep) = read_answer(&mut stream)?;
        if keep {
            self.0 = Some(stream);
        }
        Ok((status, body))
    }
}

fn open(host: &str) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(BufReader::new(stream))
}

/// Reads an answer: its status, its body, and true if the connection stays open. The service gives
/// the length of every answer to a worker.
fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Vec<u8>, bool)> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (mut length, mut keep) = (0, true);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
            }
            "connection" => keep = !value.trim().eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, body, keep))
}
