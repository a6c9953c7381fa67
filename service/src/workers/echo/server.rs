//! The HTTP server of the echo worker, for pods and for endpoints that balance load. It answers
//! with the body of the request. Without a body it answers with method, path, headers and worker as
//! JSON. Messages of a WebSocket are sent back. With `ECHO_INITIALIZING_MS` in its environment it
//! initializes for so many milliseconds.
//!
//! Keys of the query string change its behaviour, in this order:
//!
//! | key | effect |
//! |---|---|
//! | `sleep_ms` | sleeps before it answers |
//! | `exit` | ends its process with this status, without an answer |
//! | `health` | answers health checks with this status from now on |
//! | `status` | answers with this status |
//! | `stream` | answers with this many numbered lines, and sends each at once |
//! | `output_bytes` | answers with this many bytes |
//! | `environment` | answers with the value of this environment variable |
//! | `duplex` | answers with each part of the body as it comes |

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::json;

use super::websocket;
use crate::auth::decode;

/// The most bytes of the head of a request, and of its body. The service passes no larger ones on.
const HEAD_MAX: u64 = 256 << 10;
const BODY_MAX: u64 = 30 << 20;

/// The ports of the server, its health, and the id of its worker.
struct Place {
    port: u16,
    health_port: u16,
    health_path: String,
    /// The status of the answers to health checks.
    health: AtomicU16,
    ready_at: Instant,
    worker: String,
}

/// The head of a request.
#[derive(Default)]
struct Head {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    websocket_key: Option<String>,
    /// The length of the body in bytes; `None` if it is sent in chunks.
    length: Option<u64>,
    closes: bool,
}

/// Serves requests until the process is ended. Returns `None` if the environment names no port.
pub(super) fn main() -> Option<ExitCode> {
    let get = |name: &str| std::env::var(name).ok();
    let port = get("PORT")?.parse().ok()?;
    let initializing = get("ECHO_INITIALIZING_MS").and_then(|ms| ms.parse().ok()).unwrap_or(0);
    let place = Place {
        port,
        health_port: get("PORT_HEALTH").and_then(|port| port.parse().ok()).unwrap_or(port),
        health_path: get("HEALTH_CHECK_PATH").unwrap_or_else(|| "/ping".to_owned()),
        health: AtomicU16::new(200),
        ready_at: Instant::now() + Duration::from_millis(initializing),
        worker: get("RUNPOD_POD_ID").unwrap_or_default(),
    };
    let place: &'static Place = Box::leak(Box::new(place));
    if place.health_port != place.port {
        std::thread::spawn(move || listen(place.health_port, place));
    }
    Some(match listen(place.port, place) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "the echo worker cannot listen: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn listen(port: u16, place: &'static Place) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || converse(stream, place));
    }
    Ok(())
}

/// Answers the requests of one connection.
fn converse(stream: TcpStream, place: &Place) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(head) = read(&mut stream)? {
        if let Some(key) = &head.websocket_key {
            return websocket::echo(&mut stream, key);
        }
        if key(&head, "duplex").is_some() {
            return duplex(&mut stream, &head);
        }
        let body = body(&mut stream, &head)?;
        answer(stream.get_mut(), &head, &body, place)?;
        if head.closes {
            break;
        }
    }
    Ok(())
}

fn answer(to: &mut impl Write, head: &Head, body: &[u8], place: &Place) -> io::Result<()> {
    const JSON: &str = "application/json";
    if head.path == place.health_path.split('?').next().unwrap_or_default() {
        return health(to, place);
    }
    if let Some(ms) = key(head, "sleep_ms").and_then(|ms| ms.parse().ok()) {
        std::thread::sleep(Duration::from_millis(ms));
    }
    if let Some(code) = key(head, "exit") {
        end(code.parse().unwrap_or(1));
    }
    if let Some(status) = key(head, "health").and_then(|status| status.parse().ok()) {
        place.health.store(status, SeqCst);
    }
    let status = key(head, "status").filter(|status| is_status(status));
    let status = status.as_deref().unwrap_or("200");
    let count = |name| key(head, name).and_then(|count| count.parse().ok());
    if let Some(count) = count("stream") {
        return lines(to, status, count);
    }
    if let Some(count) = count("output_bytes") {
        return block(to, status, count);
    }
    if let Some(name) = key(head, "environment") {
        let value = json!(std::env::var(name).ok()).to_string();
        return whole(to, status, JSON, value.as_bytes());
    }
    if body.is_empty() {
        let shown = json!({ "method": head.method, "path": head.path, "query": head.query,
            "headers": head.headers, "worker": place.worker });
        return whole(to, status, JSON, shown.to_string().as_bytes());
    }
    let media_type = head.headers.get("content-type").map(String::as_str);
    whole(to, status, media_type.unwrap_or("application/octet-stream"), body)
}

fn health(to: &mut impl Write, place: &Place) -> io::Result<()> {
    if Instant::now() < place.ready_at {
        return to.write_all(b"HTTP/1.1 204 Initializing\r\n\r\n");
    }
    whole(to, &place.health.load(SeqCst).to_string(), "text/plain", b"pong")
}

#[expect(clippy::exit, reason = "ending the process is what was asked for")]
fn end(code: i32) {
    std::process::exit(code);
}

fn is_status(text: &str) -> bool {
    text.parse().is_ok_and(|status: u16| (200..600).contains(&status))
}

fn key(head: &Head, name: &str) -> Option<String> {
    let mut pairs = head.query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| decode(value))
}

fn whole(to: &mut impl Write, status: &str, media_type: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Echo\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    to.write_all(&[head.as_bytes(), body].concat())
}

fn block(to: &mut impl Write, status: &str, count: u64) -> io::Result<()> {
    write!(to, "HTTP/1.1 {status} Echo\r\nContent-Length: {count}\r\n\r\n")?;
    io::copy(&mut io::repeat(b'x').take(count), to).map(drop)
}

fn lines(to: &mut impl Write, status: &str, count: u64) -> io::Result<()> {
    write!(to, "HTTP/1.1 {status} Echo\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for number in 0..count {
        send_chunk(to, format!("{number}\n").as_bytes())?;
    }
    send_chunk(to, b"")
}

/// Reads the head of the next request; returns `None` at the end of the connection.
fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Head>> {
    let mut lines = stream.by_ref().take(HEAD_MAX);
    let Some(first) = line(&mut lines)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut head = Head { method, path, query, length: Some(0), ..Head::default() };
    while let Some(line) = line(&mut lines)?.filter(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match name.as_str() {
            "content-length" => {
                head.length = Some(value.parse().map_err(|_| io::ErrorKind::InvalidData)?);
            }
            "transfer-encoding" => head.length = None,
            "connection" => head.closes = value.eq_ignore_ascii_case("close"),
            "sec-websocket-key" => head.websocket_key = Some(value.to_owned()),
            _ => {}
        }
        head.headers.insert(name, value.to_owned());
    }
    Ok(Some(head))
}

fn body(stream: &mut BufReader<TcpStream>, head: &Head) -> io::Result<Vec<u8>> {
    if let Some(length) = head.length {
        return bytes(stream, length, 0);
    }
    let mut body = Vec::new();
    while let Some(chunk) = chunk(stream, body.len() as u64)? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Answers with each chunk of the body as it comes.
fn duplex(stream: &mut BufReader<TcpStream>, head: &Head) -> io::Result<()> {
    let to = stream.get_mut();
    write!(to, "HTTP/1.1 200 Echo\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    if head.length.is_none() {
        while let Some(chunk) = chunk(stream, 0)? {
            send_chunk(stream.get_mut(), &chunk)?;
        }
    }
    send_chunk(stream.get_mut(), b"")
}

/// Reads a line, and returns it without its end; `None` at the end of the input.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    line.truncate(line.trim_end().len());
    Ok(Some(line))
}

/// Reads the next chunk of a body; returns `None` after the last one.
fn chunk(stream: &mut BufReader<TcpStream>, so_far: u64) -> io::Result<Option<Vec<u8>>> {
    let size = line(&mut stream.by_ref().take(HEAD_MAX))?.unwrap_or_default();
    let size = size.split(';').next().unwrap_or_default();
    let size = u64::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
    let chunk = bytes(stream, size, so_far)?;
    line(&mut stream.by_ref().take(HEAD_MAX))?;
    Ok((size > 0).then_some(chunk))
}

fn send_chunk(to: &mut impl Write, chunk: &[u8]) -> io::Result<()> {
    let head = format!("{:x}\r\n", chunk.len());
    to.write_all(&[head.as_bytes(), chunk, b"\r\n"].concat())
}

fn bytes(from: &mut impl BufRead, length: u64, so_far: u64) -> io::Result<Vec<u8>> {
    if length > BODY_MAX.saturating_sub(so_far) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}
