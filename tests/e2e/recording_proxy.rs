//! A relay before the service that records all requests, and gives faulty answers on demand.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::harness::{Dice, Service};

/// The treatment of requests.
#[derive(Clone, Debug)]
pub(crate) enum Mood {
    /// The service answers the request.
    Pass,
    /// The service gets the request, and its answer is lost.
    Lose,
    /// The relay closes the connection at once.
    Cut,
    /// Random: the service answers most requests, some answers are lost, and a few connections are closed at
    /// once.
    Lossy,
    /// The relay answers with this status and content type, and with this template, in which `{}` stands for
    /// the whole request, escaped as JSON text.
    Echo(u16, &'static str, &'static str),
    /// The relay answers with a redirect to this address.
    Redirect(SocketAddr),
}

/// The relay.
pub(crate) struct Recorder {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    mood: Mutex<Mood>,
    /// True if read requests pass in every mood.
    spare_reads: Mutex<bool>,
    dice: Mutex<Dice>,
    requests: Mutex<Vec<Vec<u8>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Starts a relay before this address, `HOST:PORT`.
    pub(crate) fn before(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            upstream,
            mood: Mutex::new(Mood::Pass),
            spare_reads: Mutex::new(false),
            dice: Mutex::new(Dice(1)),
            requests: Mutex::default(),
        });
        let this = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let shared = Arc::clone(&this);
                // If a client goes away, only its own thread ends.
                std::thread::spawn(move || drop(serve(socket, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Starts a relay before a service.
    pub(crate) fn of(service: &Service) -> Self {
        let rest = &service.environment["PLUMB_SERVERLESS_REST_URL"];
        Self::before(rest.trim_start_matches("http://").trim_end_matches("/v1").to_owned())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns an address of the service that leads through the relay.
    pub(crate) fn by_way(&self, url: &str) -> String {
        url.replacen(&self.shared.upstream, &self.address.to_string(), 1)
    }

    pub(crate) fn mood(&self, mood: Mood, spare_reads: bool) {
        *locked(&self.shared.mood) = mood;
        *locked(&self.shared.spare_reads) = spare_reads;
    }

    /// Returns all requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        locked(&self.shared.requests).clone()
    }
}

fn serve(mut socket: TcpStream, shared: &Shared) -> std::io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_mins(1)))?;
    let request = read_message(&mut socket)?;
    locked(&shared.requests).push(request.clone());
    let reads = request.starts_with(b"GET ")
        || contains(&request, b"{\"query\":\"query") && !contains(&request, b"mutation");
    let spared = reads && *locked(&shared.spare_reads);
    let mood = if spared { Mood::Pass } else { locked(&shared.mood).clone() };
    let mood = match mood {
        Mood::Lossy => match locked(&shared.dice).below(8) {
            0 | 1 => Mood::Lose,
            2 => Mood::Cut,
            _ => Mood::Pass,
        },
        other => other,
    };
    match mood {
        Mood::Pass | Mood::Lossy => {
            let answer = forward(&request, shared)?;
            socket.write_all(&answer)
        }
        Mood::Lose => forward(&request, shared).map(drop),
        Mood::Cut => Ok(()),
        Mood::Echo(status, kind, template) => {
            let echoed = serde_json::Value::from(String::from_utf8_lossy(&request)).to_string();
            let body = template.replace("{}", &echoed);
            write!(
                socket,
                "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Mood::Redirect(to) => write!(
            socket,
            "HTTP/1.1 307 X\r\nLocation: http://{to}/v1/elsewhere\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        ),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Sends a request to the service, over a new connection that closes with the answer.
fn forward(request: &[u8], shared: &Shared) -> std::io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(&shared.upstream)?;
    let text = request.to_vec();
    let end = text.windows(2).position(|pair| pair == b"\r\n").unwrap_or(0);
    upstream.write_all(&text[..end])?;
    upstream.write_all(b"\r\nConnection: close")?;
    upstream.write_all(&text[end..])?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Reads one request: its head, and the body of the length in the head.
pub(crate) fn read_message(socket: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = head {
            let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = text.split("content-length:").nth(1).and_then(|rest| {
                rest.split("\r\n").next().and_then(|number| number.trim().parse::<usize>().ok())
            });
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Ok(bytes);
            }
        }
        match socket.read(&mut buffer)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
