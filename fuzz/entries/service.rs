//! The entries for the service on this machine, over its socket, and for the provider's GraphQL against it.
//!
//! One service gets many inputs. After [`INPUTS`] of them it is removed with all its data, and a new one
//! starts.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use engine::journal::{PhaseRef, ProgramKind};
use engine::state::Nonce;
use engine::value::{Attributes, Value};
use provider_http::{HttpProvider, Settings};
use provider_port::{Call, Kind, Provider as _};
use serde_json::json;
use service::{Addresses, Options};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const KEY: &str = "fuzz-key";
/// The number of inputs that one service gets.
const INPUTS: u64 = 2_000;

pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});

/// The service that gets all kinds of requests, and may have lost its objects.
static ANY: Mutex<Option<Running>> = Mutex::new(None);
/// The service whose endpoint only changes its name.
static NAMED: Mutex<Option<Running>> = Mutex::new(None);

struct Running {
    addresses: Addresses,
    endpoint: String,
    template: String,
    stop: CancellationToken,
    ended: Option<tokio::task::JoinHandle<()>>,
    folder: PathBuf,
    inputs: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(ended) = self.ended.take() {
            drop(RUNTIME.block_on(ended));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Runs `use_it` with a service that has a template and an endpoint without workers.
fn with_service<T>(one: &Mutex<Option<Running>>, use_it: impl FnOnce(&Running) -> T) -> T {
    let mut running = one.lock().unwrap_or_else(PoisonError::into_inner);
    if running.as_ref().is_some_and(|running| running.inputs >= INPUTS) {
        *running = None;
    }
    let service = running.get_or_insert_with(start);
    service.inputs += 1;
    use_it(service)
}

/// Ends both services.
pub(crate) fn end() {
    for one in [&ANY, &NAMED] {
        drop(one.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Returns a folder in memory, if the system has one: durability is not tested here.
fn folder() -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    place.join(format!("plumb-fuzz-{}-{number}", std::process::id()))
}

fn start() -> Running {
    let folder = folder();
    // A killed process may have left a folder of the same name.
    drop(std::fs::remove_dir_all(&folder));
    let mut options = Options::new(folder.clone());
    options.key = Some(KEY.to_owned());
    options.access_log = false;
    options.job_rates = false;
    options.timing.take_hold = Duration::from_millis(20);
    options.timing.stream_hold = Duration::from_millis(20);
    options.timing.drain = Duration::from_millis(100);
    let stop = CancellationToken::new();
    let token = stop.clone();
    let (addresses, ended) = RUNTIME.block_on(async {
        let server = service::start(options).await.expect("the service starts");
        let addresses = server.addresses().clone();
        (addresses, tokio::spawn(async move { drop(server.run(token).await) }))
    });
    let mut running = Running {
        addresses,
        endpoint: String::new(),
        template: String::new(),
        stop,
        ended: Some(ended),
        folder,
        inputs: 0,
    };
    let id = |answer: &str| {
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let id = body["id"].as_str().or_else(|| body["data"]["saveEndpoint"]["id"].as_str());
        id.unwrap_or_else(|| panic!("no id in {answer}")).to_owned()
    };
    let template = json!({"name": "t", "imageName": "i:1", "isServerless": true});
    running.template =
        id(&send(&running, "POST", "/v1/templates", template.to_string().as_bytes()));
    let query = format!(
        "mutation {{ saveEndpoint(input: {{name: \"the one\", templateId: \"{}\", gpuIds: \"ADA_24\", \
         workersMin: 0, workersMax: 0}}) {{ id }} }}",
        running.template
    );
    let body = json!({ "query": query }).to_string();
    running.endpoint = id(&send(&running, "POST", "/graphql", body.as_bytes()));
    running
}

/// Sends one request over a new connection, and returns the answer as text. Panics if no answer comes within
/// seconds, as the service hangs then, or if the connection closes without an answer, as the service panicked
/// then.
fn send(service: &Running, method: &str, path: &str, body: &[u8]) -> String {
    let host = service.addresses.rest.trim_start_matches("http://").trim_end_matches("/v1");
    let mut socket = TcpStream::connect(host).expect("the service listens");
    socket.set_read_timeout(Some(Duration::from_secs(8))).expect("a timeout");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).expect("the head goes out");
    // The answer may come before the body was read.
    drop(socket.write_all(body));
    let mut answer = Vec::new();
    if let Err(error) = socket.read_to_end(&mut answer) {
        assert!(!answer.is_empty(), "no answer to {method} {path}: {error}");
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 "), "{method} {path}: {answer:?}");
    assert!(!answer.starts_with("HTTP/1.1 500"), "{method} {path}: {answer}");
    answer
}

/// Sends a request to `/graphql`: the input is the whole body, or only the document.
pub(crate) fn graphql(data: &[u8]) {
    with_service(&ANY, |service| {
        let text = String::from_utf8_lossy(data);
        let place = |text: &str| {
            text.replace("ENDPOINT", &service.endpoint).replace("TEMPLATE", &service.template)
        };
        let body = if text.starts_with('{') && text.contains("\"query\"") {
            place(&text)
        } else {
            json!({"query": place(&text)}).to_string()
        };
        send(service, "POST", "/graphql", body.as_bytes());
    });
}

/// Sends a request to the management API. The input is `METHOD /path` on the first line, then the body.
pub(crate) fn rest(data: &[u8]) {
    with_service(&ANY, |service| request(service, "/v1", data));
}

/// Sends a request of a client or a worker to the job API. The input has the same form.
pub(crate) fn job(data: &[u8]) {
    with_service(&ANY, |service| request(service, &format!("/v2/{}", service.endpoint), data));
}

fn request(service: &Running, prefix: &str, data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, body) = data.split_at(end);
    let line = String::from_utf8_lossy(line);
    let Some((method, path)) = line.split_once(' ') else { return };
    let method = match method {
        "POST" | "PATCH" | "DELETE" | "PUT" => method,
        _ => "GET",
    };
    // hyper answers malformed HTTP, so such paths are not tested.
    let visible = |byte: &u8| byte.is_ascii_graphic();
    let path: String = path.bytes().filter(visible).map(char::from).collect();
    // A request that waits for a worker waits by design, for as long as it asks.
    if path.contains("sync") || path.contains("openai") {
        return;
    }
    let path = path.replace("ENDPOINT", &service.endpoint).replace("TEMPLATE", &service.template);
    send(
        service,
        method,
        &format!("{prefix}/{}", path.trim_start_matches('/')),
        body.get(1..).unwrap_or_default(),
    );
}

/// Sends a name through the provider's GraphQL to the service and back. The name must stay the same, whatever
/// characters it has.
pub(crate) fn name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    with_service(&NAMED, |service| RUNTIME.block_on(there_and_back(service, text)));
}

async fn there_and_back(service: &Running, text: &str) {
    let environment = |name: &str| {
        Some(match name {
            "PLUMB_SERVERLESS_REST_URL" => service.addresses.rest.clone(),
            "PLUMB_SERVERLESS_GRAPHQL_URL" => service.addresses.graphql.clone(),
            "PLUMB_SERVERLESS_QUEUE_URL" => service.addresses.queue.clone(),
            "PLUMB_SERVERLESS_API_KEY" => KEY.to_owned(),
            _ => return None,
        })
    };
    let provider: HttpProvider = provider_serverless::provider(&Settings::new(&environment))
        .expect("the settings are right");
    let desired = Attributes::from([
        ("name".into(), Value::string(text)),
        ("template_id".into(), Value::string(service.template.as_str())),
        ("gpu_ids".into(), Value::string("ADA_24")),
        ("workers_min".into(), Value::Integer(0)),
        ("workers_max".into(), Value::Integer(0)),
    ]);
    let id = engine::state::ObjectId(service.endpoint.as_str().into());
    let nonce = Nonce::from_random([1; 16]);
    let live = provider.read("endpoint", &id).await.expect("the endpoint is there");
    let schema = provider.schema();
    let programs = &schema.types["endpoint"].update;
    let program = 0;
    let call = Call {
        ty: "endpoint",
        phase: PhaseRef::new(ProgramKind::Update, program, 0, programs[program].phases.len()),
        id: Some(&id),
        nonce: Some(&nonce),
        desired: &desired,
        live: Some(&live.attributes),
        changed: &desired.keys().cloned().collect(),
        secrets: &provider_port::Secrets::default(),
        permit: &provider_port::Always,
        progress: &|_| {},
    };
    match provider.perform(&call).await {
        Ok(reply) => {
            let object = reply.object.expect("an answer shows the endpoint");
            let shown = object.attributes["name"].as_str().unwrap_or_default().to_owned();
            assert_eq!(shown, text, "the name became another one");
        }
        Err(error) => assert_eq!(error.kind, Kind::Rejected, "{text:?}: {}", error.message),
    }
}
