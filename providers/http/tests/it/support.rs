//! A server with the answers that a test gives it, a descriptor for it, and short ways to call it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::address::Name;
use engine::diagnostics::FileId;
use engine::digest::SealKey;
use engine::journal::{PhaseRef, ProgramKind};
use engine::state::{Nonce, ObjectId};
use engine::stored::{from_json, seal_attributes};
use engine::value::{Attributes, Path, Paths, Segment, Value};
use provider_http::{Descriptor, HttpProvider, Settings, Timing, load};
use provider_port::{Call, Error, Notice, Provider as _, Reply as Performed, Secrets, SendPermit};
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The key of all tests. No error, log or other server may show it.
pub(crate) const KEY: &str = "canary-4711";

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with the query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or(Json::Null)
    }

    /// The GraphQL document.
    pub(crate) fn query(&self) -> String {
        self.json()["query"].as_str().unwrap_or_default().to_owned()
    }

    /// The alias of the GraphQL operation.
    pub(crate) fn alias(&self) -> String {
        let query = self.query();
        let text = query.split_once("{ ").map_or("", |(_, rest)| rest);
        text.split_once(':').map_or("", |(alias, _)| alias).to_owned()
    }

    /// Returns an answer to this GraphQL operation.
    pub(crate) fn data(&self, value: &Json) -> Answer {
        Answer::json(200, serde_json::json!({ "data": { self.alias(): value } }))
    }
}

/// The action of the server on a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Whole {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Closes the connection without an answer.
    Cut,
    /// Announces a longer body than it sends.
    CutBody,
    /// Sends the head and then nothing more.
    Stuck,
    /// Sends a body without an end.
    Endless,
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl Into<Json>) -> Self {
        Self::text(status, "application/json", &body.into().to_string())
    }

    pub(crate) fn text(status: u16, content_type: &str, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::Whole { status, headers, body: body.to_owned() }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::Whole { status, headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// A server on this machine; ends with the test.
pub(crate) struct Server {
    pub(crate) address: String,
    log: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts a server with the answers that `answer` gives; it gets the number of the request.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), log.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), seen.clone()));
            }
        });
        Self { address, log, task }
    }

    /// Starts a server behind a socket.
    pub(crate) fn at_socket(
        path: &std::path::Path,
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let address = format!("unix:{}", path.display());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), log.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), seen.clone()));
            }
        });
        Self { address, log, task }
    }

    /// Starts a server with TLS.
    pub(crate) async fn with_tls(
        config: tokio_rustls::rustls::ServerConfig,
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), log.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer, seen) = (acceptor.clone(), answer.clone(), seen.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, answer, seen).await;
                    }
                });
            }
        });
        Self { address, log, task }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// The requests so far, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<F: Fn(usize, &Request) -> Answer>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Arc<F>,
    log: Arc<Mutex<Vec<Request>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        match answer(number, &request) {
            Answer::Whole { status, headers, body } => {
                let length = match status {
                    204 => String::new(),
                    _ => format!("content-length: {}\r\n", body.len()),
                };
                let pairs = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
                let pairs: String = pairs.collect();
                let text = format!("HTTP/1.1 {status} X\r\n{length}{pairs}\r\n{body}");
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Answer::Cut => return,
            Answer::CutBody => {
                let text = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"id\": \"x\"";
                stream.write_all(text).await.ok();
                stream.flush().await.ok();
                return;
            }
            Answer::Stuck => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").await.ok();
                stream.flush().await.ok();
                tokio::time::sleep(Duration::from_secs(30)).await;
                return;
            }
            Answer::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\"").await.ok();
                let part = [b'x'; 8 * 1024];
                while stream.write_all(&part).await.is_ok() {}
                return;
            }
        }
        stream.flush().await.ok();
    }
}

async fn read(stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Returns times that make tests end soon.
pub(crate) fn timing() -> Timing {
    Timing {
        total: Duration::from_secs(2),
        connect: Duration::from_secs(2),
        answer_bytes_max: 1024 * 1024,
        read_tries: 3,
        connect_tries: 2,
        throttle_patience: Duration::from_secs(1),
        pause_first: Duration::from_millis(2),
        pause_max: Duration::from_millis(10),
        poll_first: Duration::from_millis(2),
        poll_max: Duration::from_millis(5),
        ..Timing::default()
    }
}

pub(crate) fn descriptor(text: &str) -> Descriptor {
    let (descriptor, diagnostics) = load(text, FileId(0));
    descriptor.unwrap_or_else(|| panic!("{diagnostics:#?}"))
}

/// Returns the provider of a descriptor whose addresses all come from `ACME_URL` and `ACME_GRAPHQL_URL`.
pub(crate) fn provider(text: &str, address: &str) -> HttpProvider {
    provider_with_key(text, address, KEY)
}

pub(crate) fn provider_with_key(text: &str, address: &str, key: &str) -> HttpProvider {
    provider_timed(text, address, key, timing())
}

pub(crate) fn provider_timed(text: &str, address: &str, key: &str, timing: Timing) -> HttpProvider {
    let (address, key) = (address.to_owned(), key.to_owned());
    let environment = move |name: &str| match name {
        "ACME_URL" => Some(address.clone()),
        "ACME_GRAPHQL_URL" => Some(format!("{address}/graphql")),
        "ACME_KEY" => Some(key.clone()),
        _ => None,
    };
    let settings = Settings::new(&environment).timing(timing);
    HttpProvider::configure(descriptor(text), &settings)
        .unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}"))
}

/// A nonce like any other.
pub(crate) fn nonce() -> Nonce {
    Nonce::from_random([7; 16])
}

pub(crate) fn attributes(json: &Json) -> Attributes {
    from_json(json).as_map().cloned().unwrap_or_default()
}

/// One phase to perform, with defaults for the parts that tests do not give.
pub(crate) struct Step {
    pub(crate) ty: &'static str,
    pub(crate) kind: ProgramKind,
    pub(crate) phase: usize,
    /// The variant whose program is performed; none for the phases of the type.
    pub(crate) variant: Option<usize>,
    pub(crate) id: Option<&'static str>,
    pub(crate) desired: Json,
    pub(crate) live: Json,
    pub(crate) changed: Vec<&'static str>,
    pub(crate) secrets: Secrets,
    /// The attributes of the live object that are known only by a fingerprint.
    pub(crate) sealed: Paths,
}

impl Step {
    pub(crate) fn create(ty: &'static str, desired: Json) -> Self {
        let changed = Vec::new();
        let live = Json::Null;
        Self {
            ty,
            kind: ProgramKind::Create,
            phase: 0,
            variant: None,
            id: None,
            desired,
            live,
            changed,
            secrets: Secrets::default(),
            sealed: Paths::none(),
        }
    }

    pub(crate) fn update(ty: &'static str, id: &'static str, desired: Json) -> Self {
        let changed = vec!["size", "name"];
        let kind = ProgramKind::Update;
        Self {
            ty,
            kind,
            phase: 0,
            variant: None,
            id: Some(id),
            desired,
            live: Json::Null,
            changed,
            secrets: Secrets::default(),
            sealed: Paths::none(),
        }
    }

    pub(crate) fn delete(ty: &'static str, id: &'static str) -> Self {
        let (kind, desired) = (ProgramKind::Delete, Json::Null);
        let changed = Vec::new();
        Self {
            ty,
            kind,
            phase: 0,
            variant: None,
            id: Some(id),
            desired,
            live: Json::Null,
            changed,
            secrets: Secrets::default(),
            sealed: Paths::none(),
        }
    }

    pub(crate) fn phase(mut self, phase: usize, id: &'static str) -> Self {
        (self.phase, self.id) = (phase, Some(id));
        self
    }

    /// The step of a variant's program, counted from 0.
    pub(crate) fn variant(mut self, variant: usize) -> Self {
        self.variant = Some(variant);
        self
    }

    pub(crate) fn live(mut self, live: Json) -> Self {
        self.live = live;
        self
    }

    /// Adds a secret attribute, and the values of sensitive variables.
    pub(crate) fn secret(mut self, attribute: &str, variables: &[Value]) -> Self {
        self.secrets.places.insert(Path::attribute(attribute));
        self.secrets.variables = variables.into();
        self
    }

    /// Marks a place of the live object, written with dots, as known only by a fingerprint.
    pub(crate) fn sealed(mut self, place: &str) -> Self {
        let path =
            place.split('.').fold(Path::root(), |path, name| path.join(Segment::Key(name.into())));
        self.sealed.insert(path);
        self
    }

    pub(crate) async fn perform(self, provider: &HttpProvider) -> Result<Performed, Error> {
        self.perform_with(provider, &provider_port::Always, &|_| {}).await
    }

    pub(crate) async fn perform_noting(
        self,
        provider: &HttpProvider,
        progress: &(dyn Fn(Notice) + Send + Sync),
    ) -> Result<Performed, Error> {
        self.perform_with(provider, &provider_port::Always, progress).await
    }

    /// Performs the phase, and asks `permit` before each sending.
    pub(crate) async fn perform_with(
        self,
        provider: &HttpProvider,
        permit: &dyn SendPermit,
        progress: &(dyn Fn(Notice) + Send + Sync),
    ) -> Result<Performed, Error> {
        let schema = provider.schema();
        let programs = schema.types[self.ty].programs(self.kind);
        let program = self.variant.unwrap_or(programs.len() - 1);
        let phases = programs[program].phases.len();
        let id = self.id.map(|id| ObjectId(id.into()));
        let key = SealKey::from_random([7; 32]);
        let live = seal_attributes(&attributes(&self.live), &self.sealed, &key);
        let changed: BTreeSet<Name> = self.changed.iter().map(|name| Name::from(*name)).collect();
        provider
            .perform(&Call {
                ty: self.ty,
                phase: PhaseRef::new(self.kind, program, self.phase, phases),
                id: id.as_ref(),
                nonce: Some(&nonce()),
                desired: &attributes(&self.desired),
                live: id.as_ref().map(|_| &live),
                changed: &changed,
                secrets: &self.secrets,
                permit,
                progress,
            })
            .await
    }
}

/// Returns all texts of an error, after checking that none of them contains the key.
pub(crate) fn texts(error: &Error) -> String {
    let texts = format!("{:?}: {error} -> {:?}", error.kind, error.help);
    assert!(!texts.contains(KEY), "an error shows the key");
    assert!(!format!("{error:?}").contains(KEY), "an error shows the key");
    texts
}
