//! The built-in echo worker, for templates without a command, and for tests of the code around
//! workers. It uses the worker protocol over plain blocking sockets, and answers with its input. In
//! a pod, and at an endpoint that balances load, it is an HTTP server instead ([`server`]).
//!
//! Keys of the input change its behaviour, in this order:
//!
//! | key | effect |
//! |---|---|
//! | `log`, `log_bytes` | prints this text; prints this many bytes |
//! | `progress` | reports each element of this list as progress |
//! | `stream` | streams each element of this list, or this many numbered chunks |
//! | `sleep_ms` | sleeps; ends when the job is stopped |
//! | `crash`, `exit` | ends its process with SIGABRT; with this status |
//! | `silent` | stops calling, like a hanging worker |
//! | `fail` | fails with this message |
//! | `output_bytes` | answers with a text of this many bytes |
//! | `environment` | answers with the value of this environment variable |
//! | `refresh` | asks to be replaced after this job |

mod http;
mod server;
mod websocket;

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use http::Connection;

/// A job as the service hands it out. The input is kept as text, so that it is echoed exactly: some
/// JSON texts cannot be read as a [`Value`] (`1e400`, half of a surrogate pair, thousands of
/// levels), and a [`Value`] rounds numbers.
#[derive(serde::Deserialize)]
struct Job {
    id: String,
    input: Option<Box<RawValue>>,
}

/// The instructions in the input of a job.
struct Wishes {
    /// The whole input; null if the input cannot be read as a [`Value`], which means no
    /// instructions.
    input: Value,
    /// The values of the keys of the input, each as it was written.
    parts: BTreeMap<String, Box<RawValue>>,
}

/// The addresses of the worker channel, from the environment.
struct Channel {
    take: String,
    done: String,
    stream: String,
    ping: String,
    token: String,
    ping_interval: Duration,
}

/// The state that the threads of the worker share.
#[derive(Default)]
struct Shared {
    /// The id of the running job; `None` between jobs.
    job: Mutex<Option<String>>,
    stopped: Mutex<HashSet<String>>,
    silent: Mutex<bool>,
}

/// Runs an echo worker process to its end.
pub fn echo_worker_main() -> ExitCode {
    let Some(channel) = Channel::from_environment() else {
        return server::main().unwrap_or_else(wait_for_the_end);
    };
    let (channel, shared) = (Arc::new(channel), Arc::new(Shared::default()));
    let (ping, known) = (Arc::clone(&channel), Arc::clone(&shared));
    std::thread::spawn(move || keep_pinging(&ping, &known));
    let (stop, known) = (Arc::clone(&channel), Arc::clone(&shared));
    std::thread::spawn(move || keep_stopping(&stop, &known));
    let mut connection = Connection::default();
    loop {
        let take = format!("{}&job_in_progress=0", channel.take);
        match connection.call("GET", &take, &channel.token, None) {
            Ok((200, body)) => {
                if work(&channel, &shared, &mut connection, &body) {
                    return ExitCode::SUCCESS;
                }
            }
            Ok((204, _)) => {}
            // The service is busy or gone. If it is gone, the guard ends this process.
            Ok(_) | Err(_) => sleep(Duration::from_millis(200)),
        }
    }
}

/// Waits for the end of a pod that has no ports. Returns an exit status at once if this process is
/// not a pod.
fn wait_for_the_end() -> ExitCode {
    if std::env::var_os("RUNPOD_POD_ID").is_none() {
        return ExitCode::from(2);
    }
    loop {
        std::thread::park();
    }
}

impl Channel {
    fn from_environment() -> Option<Channel> {
        let get = |name: &str| std::env::var(name).ok();
        let worker = get("RUNPOD_POD_ID")?;
        let interval = get("RUNPOD_PING_INTERVAL").and_then(|ms| ms.parse().ok()).unwrap_or(10_000);
        let named = |text: String| text.replace("$RUNPOD_POD_ID", &worker);
        Some(Channel {
            take: get("RUNPOD_WEBHOOK_GET_JOB")?.replace("$ID", &worker),
            done: named(get("RUNPOD_WEBHOOK_POST_OUTPUT")?),
            stream: named(get("RUNPOD_WEBHOOK_POST_STREAM")?),
            ping: named(get("RUNPOD_WEBHOOK_PING")?),
            token: get("RUNPOD_AI_API_KEY")?,
            ping_interval: Duration::from_millis(interval),
        })
    }
}

impl Shared {
    fn set_job(&self, job: Option<&str>) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = job.map(str::to_owned);
    }

    fn is_stopped(&self, job: &str) -> bool {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).remove(job)
    }

    fn is_silent(&self) -> bool {
        *self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends pings, which tell the service that this worker lives, and name its job.
fn keep_pinging(channel: &Channel, shared: &Shared) {
    let mut connection = Connection::default();
    while !shared.is_silent() {
        let job = shared.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let named = job.map(|job| format!("job_id={job}&")).unwrap_or_default();
        let url = format!("{}?{named}runpod_version=plumb-echo", channel.ping);
        drop(connection.call("GET", &url, &channel.token, None));
        sleep(channel.ping_interval);
    }
}

/// Asks for jobs to stop, with requests that the service holds open.
fn keep_stopping(channel: &Channel, shared: &Shared) {
    let mut connection = Connection::default();
    let url = channel.take.replace("/job-take/", "/job-stop/");
    while !shared.is_silent() {
        let asked = Instant::now();
        if let Ok((200, body)) = connection.call("GET", &url, &channel.token, None) {
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            let ids = answer["jobsToStop"].as_array().into_iter().flatten();
            let ids = ids.filter_map(Value::as_str).map(str::to_owned);
            shared.stopped.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
        }
        sleep(Duration::from_millis(500).saturating_sub(asked.elapsed()));
    }
}

/// Runs the job in an answer of the service. Returns true if the worker asks to be replaced.
fn work(channel: &Channel, shared: &Shared, connection: &mut Connection, body: &[u8]) -> bool {
    match serde_json::from_slice::<Job>(body) {
        Ok(job) => serve(channel, shared, connection, &job),
        Err(error) => {
            use std::io::Write as _;
            let mut output = std::io::stderr().lock();
            drop(writeln!(output, "what was handed out is no job, and is left alone: {error}"));
            false
        }
    }
}

/// Runs one job. Returns true if the worker asks to be replaced.
fn serve(channel: &Channel, shared: &Shared, connection: &mut Connection, job: &Job) -> bool {
    let id = job.id.as_str();
    shared.set_job(Some(id));
    let raw = job.input.as_deref().unwrap_or(RawValue::NULL);
    let wishes = Wishes::of(raw);
    let input = &wishes.input;
    let refresh = input["refresh"] == true;
    let done =
        format!("{}&isStream={}", channel.done.replace("$ID", id), !input["stream"].is_null());
    let progress = format!("{}&isStream=false", channel.done.replace("$ID", id));
    let stream = format!("{}&isStream=false", channel.stream.replace("$ID", id));
    say(input);
    for step in wishes.list("progress") {
        let body = BTreeMap::from([("status", raw_of("IN_PROGRESS")), ("output", step)]);
        post(connection, &progress, &channel.token, &body);
    }
    for chunk in chunks(&wishes) {
        post(connection, &stream, &channel.token, &BTreeMap::from([("output", chunk)]));
    }
    let stopped = rest(shared, id, input);
    end(input);
    if input["silent"] == true {
        *shared.silent.lock().unwrap_or_else(PoisonError::into_inner) = true;
        loop {
            sleep(Duration::from_hours(1));
        }
    }
    if !stopped {
        let mut body = BTreeMap::from([result(input, raw)]);
        if refresh {
            body.insert("stopPod", raw_of(true));
        }
        post(connection, &done, &channel.token, &body);
    }
    shared.set_job(None);
    refresh
}

impl Wishes {
    fn of(raw: &RawValue) -> Wishes {
        Wishes {
            input: serde_json::from_str(raw.get()).unwrap_or_default(),
            parts: serde_json::from_str(raw.get()).unwrap_or_default(),
        }
    }

    /// Returns the elements of the list in a key; none if the key has no list.
    fn list(&self, key: &str) -> Vec<Box<RawValue>> {
        let part = self.parts.get(key).filter(|_| self.input[key].is_array());
        part.and_then(|part| serde_json::from_str(part.get()).ok()).unwrap_or_default()
    }
}

fn raw_of(value: impl Serialize) -> Box<RawValue> {
    to_raw_value(&value).expect("what has text keys can be written as JSON")
}

/// Posts a message as the SDK does: with three tries.
fn post(connection: &mut Connection, url: &str, token: &str, body: &impl Serialize) {
    let body = raw_of(body);
    for pause in [100, 300, 0] {
        let answered = connection.call("POST", url, token, Some(body.get().as_bytes()));
        if answered.is_ok_and(|(status, _)| (200..300).contains(&status)) {
            return;
        }
        sleep(Duration::from_millis(pause));
    }
}

fn say(input: &Value) {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    if let Some(text) = input["log"].as_str() {
        drop(writeln!(output, "{text}"));
    }
    let mut left = size(&input["log_bytes"]);
    let block = [0xfeu8; 8192];
    while left > 0 {
        let part = left.min(block.len());
        if output.write_all(&block[..part]).is_err() {
            return;
        }
        left -= part;
    }
    drop(output.flush());
}

fn chunks(wishes: &Wishes) -> Vec<Box<RawValue>> {
    let count = wishes.input["stream"].as_u64().unwrap_or(0);
    let numbered = (0..count).map(|number| raw_of(json!({ "chunk": number })));
    wishes.list("stream").into_iter().chain(numbered).collect()
}

/// Sleeps for the time in the input. Returns true if the job was stopped meanwhile.
fn rest(shared: &Shared, id: &str, input: &Value) -> bool {
    let until = Instant::now() + Duration::from_millis(input["sleep_ms"].as_u64().unwrap_or(0));
    while Instant::now() < until {
        if shared.is_stopped(id) {
            return true;
        }
        sleep(until.saturating_duration_since(Instant::now()).min(Duration::from_millis(20)));
    }
    shared.is_stopped(id)
}

#[expect(clippy::exit, reason = "ending the process is what was asked for")]
fn end(input: &Value) {
    if input["crash"] == true {
        std::process::abort();
    }
    if let Some(code) = input["exit"].as_i64() {
        std::process::exit(i32::try_from(code).unwrap_or(1));
    }
}

/// Returns the result of a job: the key of the message, and its value.
fn result(input: &Value, raw: &RawValue) -> (&'static str, Box<RawValue>) {
    if let Some(message) = input.get("fail") {
        let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        return ("error", raw_of(text));
    }
    if let Some(name) = input["environment"].as_str() {
        return ("output", raw_of(std::env::var(name).ok()));
    }
    match size(&input["output_bytes"]) {
        0 => ("output", raw.to_owned()),
        bytes => ("output", raw_of("x".repeat(bytes))),
    }
}

fn size(value: &Value) -> usize {
    value.as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}
