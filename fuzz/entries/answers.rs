//! The entry for answers of an API to the HTTP provider.
//!
//! The first line of the input is `STATUS content/type`. The rest is the body, with which each request of a
//! list, a read, a search and a create is answered.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use engine::journal::{PhaseRef, ProgramKind};
use engine::state::{Nonce, ObjectId};
use engine::value::{Attributes, Value};
use provider_http::{HttpProvider, Settings, Timing};
use provider_port::{Call, Error, Kind, Lookup, Provider};

use super::harmless;
use super::service::RUNTIME;

const KEY: &str = "canary-key-7f3a9";

static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The address of a server that gives the same answer to all requests.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut request = [0; 16 * 1024];
            let _read = socket.read(&mut request);
            let answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let _written = socket.write_all(&answer);
        }
    });
    address
});

/// The provider for all inputs. It is replaced after an answer that throttles it.
static PROVIDER: Mutex<Option<HttpProvider>> = Mutex::new(None);

fn provider() -> HttpProvider {
    let environment = |name: &str| match name {
        "PLUMB_SERVERLESS_API_KEY" => Some(KEY.to_owned()),
        name => name.ends_with("URL").then(|| format!("http://{}/v1", *SERVER)),
    };
    let none = Duration::from_millis(1);
    let timing = Timing {
        total: Duration::from_secs(2),
        read_tries: 2,
        connect_tries: 2,
        read_patience: none,
        throttle_patience: none,
        retry_after_max: none,
        pause_first: none,
        pause_max: none,
        poll_first: none,
        poll_max: none,
        ..Timing::default()
    };
    provider_serverless::provider(&Settings::new(&environment).timing(timing))
        .expect("the settings are right")
}

/// Sends one answer to a list, a read, a search and a create of every type.
pub(crate) fn answer(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, body) = data.split_at(end);
    let line = String::from_utf8_lossy(line);
    let (status, kind) = line.split_once(' ').unwrap_or((&line, "application/json"));
    let status = status.parse::<u16>().ok().filter(|status| (200..600).contains(status));
    let visible = |c: &char| c.is_ascii_graphic() || *c == ' ';
    let mut answer = format!(
        "HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        status.unwrap_or(200),
        kind.chars().filter(visible).collect::<String>(),
        body.len().saturating_sub(1)
    )
    .into_bytes();
    answer.extend_from_slice(body.get(1..).unwrap_or_default());
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    let mut kept = PROVIDER.lock().unwrap_or_else(PoisonError::into_inner);
    let provider = kept.take().unwrap_or_else(provider);
    // The provider calls an API that throttles ever more slowly, by design. So the next input gets a new
    // provider.
    if !RUNTIME.block_on(throttles(&provider)) {
        *kept = Some(provider);
    }
}

/// Makes all these requests. Returns true if the API asked to slow down.
async fn throttles(provider: &HttpProvider) -> bool {
    let schema = provider.schema();
    let mut throttled = false;
    let id = ObjectId("abc123".into());
    let nonce = Nonce::from_random([1; 16]);
    for (name, ty) in &schema.types {
        throttled |= shown(provider.list(name).await);
        throttled |= shown(provider.read(name, &id).await);
        let lookup = Lookup { nonce: &nonce, desired: None };
        throttled |= shown(provider.find(name, &lookup).await);
        let desired = Attributes::from([("name".into(), Value::string("n"))]);
        let phases = ty.create.first().map_or(0, |program| program.phases.len());
        let call = Call {
            ty: name,
            phase: PhaseRef::new(ProgramKind::Create, 0, 0, phases),
            id: None,
            nonce: Some(&nonce),
            desired: &desired,
            live: None,
            changed: &BTreeSet::new(),
            secrets: &provider_port::Secrets::default(),
            permit: &provider_port::Always,
            progress: &|_| {},
        };
        if phases > 0 {
            throttled |= shown(provider.perform(&call).await);
        }
    }
    throttled
}

/// Checks the message of an error. Returns true if it asks to slow down.
fn shown<T>(result: Result<T, Error>) -> bool {
    let Err(error) = result else { return false };
    harmless(&error.message);
    assert!(!error.message.contains(KEY), "the key is in {:?}", error.message);
    assert!(error.message.chars().count() < 2_000, "that is no message: {:?}", error.message);
    matches!(error.kind, Kind::Throttled)
}
