//! A small HTTP server in the process of the test. A function makes its answers.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The headers, by their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// An answer. Each header is a complete line.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }
}

/// Starts a server with a new world. Returns its address and the world. The server ends with the test.
pub(crate) fn start<W: Default + Send + 'static>(
    answer: fn(&mut W, &Request) -> Answer,
) -> (String, Arc<Mutex<W>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let world = Arc::new(Mutex::new(W::default()));
    let served = world.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let world = served.clone();
            std::thread::spawn(move || serve(stream, &world, answer));
        }
    });
    (address, world)
}

fn serve<W>(
    stream: TcpStream,
    world: &Mutex<W>,
    answer: fn(&mut W, &Request) -> Answer,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read(&mut stream)?;
        let Answer { status, headers, body } = answer(&mut *world.lock().ok()?, &request);
        let mut lines = vec![format!("HTTP/1.1 {status} X")];
        lines.extend(headers);
        lines.push(format!("Content-Length: {}\r\n\r\n", body.len()));
        let head = lines.join("\r\n");
        stream.get_mut().write_all(format!("{head}{body}").as_bytes()).ok()?;
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let (method, rest) = line.split_once(' ')?;
    let (method, path) = (method.to_owned(), rest.split(' ').next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
