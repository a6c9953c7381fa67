//! The HTTP server of the echo worker, for pods: it answers with the body of a request, and with
//! method and path where there is none.
//!
//! | key of the query string | what it does |
//! |---|---|
//! | `environment` | answers with the value of this variable of its environment |

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;

use serde_json::json;

/// The largest head of a request, and the largest body.
const HEAD_MAX: u64 = 256 << 10;
const BODY_MAX: u64 = 30 << 20;

/// Serves requests until the process is ended. `None`: the environment names no port.
pub(super) fn main() -> Option<ExitCode> {
    let port = std::env::var("PORT").ok()?.parse().ok()?;
    Some(match listen(port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "the echo worker cannot listen: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn listen(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || answer(stream));
    }
    Ok(())
}

/// Answers one request.
fn answer(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = stream.by_ref().take(HEAD_MAX).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut length = 0;
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
    }
    let mut body = Vec::new();
    stream.by_ref().take(BODY_MAX.min(length)).read_to_end(&mut body)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let shown = match query.strip_prefix("environment=") {
        Some(name) => json!(std::env::var(name).ok()).to_string().into_bytes(),
        None if body.is_empty() => json!({ "method": method, "path": path }).to_string().into(),
        None => body,
    };
    let head = format!(
        "HTTP/1.1 200 Echo\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        shown.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), &shown].concat())
}
