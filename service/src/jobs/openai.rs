//! `/openai/*`: a call of the `OpenAI` API, passed through to a worker as a job.
//!
//! The documents name the path without its form. The form here is the one that clients and workers
//! of the real service use: the job's input is `{"openai_route": …, "openai_input": …}`, and the
//! output of the worker is returned unchanged; as server-sent events if the call asks for a stream.
//! Only the worker interprets the call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::client::{self, Running};
use super::named::Named;
use super::output;
use super::queue::{Drained, NewJob, Queue, Run};
use super::rates;
use super::record::{Job, State as JobState};
use super::submission::{RUNSYNC_MAX, Submission};
use super::waiting_client::WaitingClient;
use crate::app::App;
use crate::memory_budget::MemoryShare;
use crate::problem::{Kind, Problem};
use crate::rest::answer::json_response;

/// The time that the client waits for an answer. After it the job goes on without the client.
const WAIT: Duration = Duration::from_secs(330);
/// The most bytes of chunks that are taken out of the store at a time.
const DRAIN_MAX: usize = 256 << 10;
/// The most bytes of an answer that is not streamed. Other results have the same limit.
const WHOLE_MAX: usize = 20 << 20;

/// The time that an answer waits for its memory.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// The last event of a stream after its run was cut off, which makes the events before worthless.
const CUT_OFF: &str = "the run whose answer this is was cut off; the job began anew, so ask again";

/// A chunk of a stream, as the store holds it.
#[derive(Deserialize)]
struct Chunk {
    output: Value,
}

/// The change of a job since the previous update.
struct StreamUpdate {
    state: JobState,
    /// True if the outputs belong to another run than the previous ones. That run was cut off.
    of_other_run: bool,
    outputs: Vec<Value>,
    /// The length of the outputs as text, in bytes.
    bytes: usize,
}

/// The outputs collected for an answer that is not streamed.
#[derive(Default)]
struct Whole {
    parts: Vec<Value>,
    bytes: usize,
}

/// A job whose chunks are read to its end.
struct Reading {
    app: Arc<App>,
    endpoint: String,
    id: String,
    until: Instant,
    ended: bool,
    /// The run of the previous update; `None` before the first.
    run: Option<Run>,
    /// True if the worker has streamed anything.
    streamed: bool,
    /// The pieces of the stream that were read and not yet sent.
    ready: VecDeque<Bytes>,
    /// Cancels the job if the client leaves.
    waiting_client: WaitingClient,
}

/// `POST /openai/{route}`, and `GET` for calls without a body, such as `/openai/v1/models`.
pub(super) async fn pass(
    State(app): Running,
    Named((endpoint, route)): Named<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let has_body = request.method() == Method::POST;
    let body = client::body(request, RUNSYNC_MAX).await?;
    let permit = client::enter(&app, &endpoint, rates::OPENAI)?;
    let input = if has_body { call(&body)? } else { RawValue::NULL.to_owned() };
    let streams = serde_json::from_str::<Asked>(input.get()).is_ok_and(|asked| asked.stream);
    let submitted = json!({ "openai_route": format!("/{route}") });
    // The client's text goes into the job unchanged; only the object around it is written here.
    let submitted = submitted.to_string();
    let rest = submitted.trim_end_matches('}');
    let submitted = format!("{{\"input\":{rest},\"openai_input\":{}}}}}", input.get());
    let submission = Submission::parse(submitted.as_bytes())?;
    let waiting_client = WaitingClient::new(&app, &endpoint);
    let retention_ms = client::millis(app.options.timing.retention_sync);
    let new = NewJob::new(submission, true, retention_ms);
    let job = client::accept(&app, &endpoint, new, Some(&waiting_client)).await?;
    let reading = Reading {
        app: Arc::clone(&app),
        endpoint,
        id: job.id,
        until: Instant::now() + WAIT,
        ended: false,
        run: None,
        streamed: false,
        ready: VecDeque::new(),
        waiting_client,
    };
    if streams {
        return Ok(events(reading, permit));
    }
    reading.whole().await
}

/// The only field of a call that this service reads.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    stream: bool,
}

fn call(body: &[u8]) -> Result<Box<RawValue>, Problem> {
    let wrong = || Problem::invalid("the request body must be a JSON object");
    let raw: Box<RawValue> = serde_json::from_slice(body).map_err(|_| wrong())?;
    if raw.get().starts_with('{') { Ok(raw) } else { Err(wrong()) }
}

impl Reading {
    /// Waits for an update of the job, and returns it.
    async fn next(&mut self) -> Result<StreamUpdate, Problem> {
        let subscription = self.app.queue.projection.subscribe(&self.id);
        loop {
            let mut bell = std::pin::pin!(subscription.news().notified());
            bell.as_mut().enable();
            let (endpoint, id) = (self.endpoint.clone(), self.id.clone());
            let drain =
                move |tx: &crate::store::Tx<'_>| Queue::drain(tx, &endpoint, &id, DRAIN_MAX);
            let Drained { state, run, chunks } = self.app.store.write(drain).await?;
            let of_other_run = self.run.is_some_and(|known| known != run);
            if of_other_run || !chunks.is_empty() || state.is_final() {
                self.run = Some(run);
                let parsed = chunks.iter().filter_map(|chunk| serde_json::from_str(chunk).ok());
                let outputs = parsed.map(|chunk: Chunk| chunk.output).collect();
                let bytes = chunks.iter().map(String::len).sum();
                return Ok(StreamUpdate { state, of_other_run, outputs, bytes });
            }
            if Instant::now() >= self.until || self.app.draining.is_cancelled() {
                self.waiting_client.was_answered();
                self.app.store.sync().await?;
                let message = "the worker has not answered in time; the job goes on";
                return Err(Problem::new(Kind::Unavailable, message));
            }
            tokio::select! {
                () = bell => {}
                () = sleep_until(self.until) => {}
                () = self.app.draining.cancelled() => {}
            }
        }
    }

    /// Returns the whole answer once the job has ended.
    async fn whole(mut self) -> Result<Response, Problem> {
        let (mut whole, mut share) = (Whole::default(), MemoryShare::default());
        loop {
            let update = self.next().await?;
            let over = update.outputs.is_empty();
            let state = update.state;
            if let Err(message) = whole.take(update) {
                return Ok(worker_error(&message));
            }
            share.grow_to(whole.bytes, Instant::now() + ROOM_TIMEOUT).await?;
            if state.is_final() && over {
                break;
            }
        }
        let job = client::read(&self.app, &self.endpoint, &self.id).await?;
        if let Some(message) = failure(&job) {
            return Ok(worker_error(&message));
        }
        let answer = answer(whole.parts, self.output(job).await?);
        share.grow_to(answer.len(), Instant::now() + ROOM_TIMEOUT).await?;
        Ok(output::held(answer, share))
    }

    /// Returns the next piece of the event stream; `None` at its end.
    async fn piece(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            match self.next().await {
                // The events of the run that was cut off are sent and cannot be taken back.
                Ok(StreamUpdate { of_other_run: true, .. }) if self.streamed => {
                    self.waiting_client.was_answered();
                    self.ended = true;
                    self.ready.push_back(Bytes::from(error_event(CUT_OFF)));
                }
                Ok(StreamUpdate { state, outputs, .. }) => {
                    self.ended = state.is_final() && outputs.is_empty();
                    self.streamed |= !outputs.is_empty();
                    self.ready.extend(outputs.iter().flat_map(pieces).map(Bytes::from));
                    if self.ended {
                        self.ready.extend(self.rest().await.into_iter().map(Bytes::from));
                    }
                }
                Err(problem) => {
                    self.waiting_client.was_answered();
                    self.ended = true;
                    self.ready.push_back(Bytes::from(error_event(&problem.message)));
                }
            }
        }
    }

    /// Returns the last pieces of the stream: the error of the job, or the output of a worker that
    /// does not stream.
    async fn rest(&self) -> Vec<String> {
        let job = match client::read(&self.app, &self.endpoint, &self.id).await {
            Ok(job) => job,
            Err(problem) => return vec![error_event(&problem.message)],
        };
        if let Some(message) = failure(&job) {
            return vec![error_event(&message)];
        }
        if self.streamed {
            return Vec::new();
        }
        match self.output(job).await {
            Ok(Some(output)) => {
                serde_json::from_str(&output).map(|output| pieces(&output)).unwrap_or_default()
            }
            Ok(None) => Vec::new(),
            Err(problem) => vec![error_event(&problem.message)],
        }
    }

    /// Returns the output of the job, also a large one.
    async fn output(&self, job: Job) -> Result<Option<String>, Problem> {
        if job.large_output.is_none() {
            return Ok(job.output);
        }
        self.app.store.read(move |conn| output::whole(conn, &job.id)).await
    }
}

impl Whole {
    /// Adds an update, up to the limit of an answer. Those of another run replace those of the run that
    /// was cut off.
    fn take(&mut self, update: StreamUpdate) -> Result<(), String> {
        if update.of_other_run {
            *self = Whole::default();
        }
        self.bytes += update.bytes;
        if self.bytes > WHOLE_MAX {
            let megabytes = WHOLE_MAX >> 20;
            return Err(format!("the answer is larger than {megabytes} MB; ask for a stream"));
        }
        self.parts.extend(update.outputs);
        Ok(())
    }
}

fn worker_error(message: &str) -> Response {
    let body = json!({ "error": { "message": message, "type": "worker_error" } });
    json_response(StatusCode::INTERNAL_SERVER_ERROR, &body)
}

fn events(reading: Reading, permit: Option<rates::Permit>) -> Response {
    let pieces = stream::unfold((reading, permit), |(mut reading, permit)| async move {
        let piece = reading.piece().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), (reading, permit)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Returns the pieces of the event stream for an output. Texts are sent as they are, because they
/// are events already. Any other value becomes one event.
fn pieces(output: &Value) -> Vec<String> {
    match output {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().flat_map(pieces).collect()
        }
        other => vec![format!("data: {other}\n\n")],
    }
}

fn error_event(message: &str) -> String {
    format!("data: {}\n\n", json!({ "error": { "message": message, "type": "worker_error" } }))
}

/// Returns the error of a job that was not completed; `None` for a completed one.
fn failure(job: &Job) -> Option<String> {
    let name = job.state.name();
    (job.state != JobState::Completed)
        .then(|| job.error.clone().unwrap_or_else(|| format!("the job is {name}")))
}

/// Returns the answer: the streamed part, or the list of several parts. Without streamed parts it
/// is the job's output.
fn answer(mut parts: Vec<Value>, output: Option<String>) -> String {
    if parts.is_empty() {
        let Some(text) = output else { return "null".to_owned() };
        // The output of a generator may be a list with one element.
        return match serde_json::from_str::<Vec<Box<RawValue>>>(&text) {
            Ok(list) if list.len() == 1 => list[0].get().to_owned(),
            _ => text,
        };
    }
    if parts.len() == 1 {
        return parts.swap_remove(0).to_string();
    }
    // A part that was too large for a chunk was split into texts.
    let texts: Option<String> = parts.iter().map(Value::as_str).collect();
    match texts.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok()) {
        Some(text) => text,
        None => Value::Array(parts).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_out_of_parts_or_of_the_output() {
        let of = |parts: Value, output: Option<&str>| {
            answer(parts.as_array().unwrap().clone(), output.map(str::to_owned))
        };
        assert_eq!(of(json!([{"id": 1}]), Some("[]")), r#"{"id":1}"#);
        assert_eq!(of(json!([]), Some(r#"{"z":1.50}"#)), r#"{"z":1.50}"#);
        assert_eq!(of(json!([]), Some(r#"[{"z":1.50}]"#)), r#"{"z":1.50}"#);
        assert_eq!(of(json!(["{\"a\":", "1}"]), None), r#"{"a":1}"#);
        assert_eq!(of(json!([1, 2]), None), "[1,2]");
        assert_eq!(of(json!([]), None), "null");
    }

    #[test]
    fn whole_answers_are_bounded() {
        let mut whole = Whole::default();
        let of = |bytes, of_other_run| {
            let outputs = vec![json!("x")];
            StreamUpdate { state: JobState::InProgress, of_other_run, outputs, bytes }
        };
        let update = |bytes| of(bytes, false);
        assert_eq!(whole.take(update(WHOLE_MAX)), Ok(()));
        assert!(whole.take(update(1)).is_err_and(|message| message.contains("20 MB")));
        assert_eq!(whole.parts.len(), 1);
        assert_eq!(whole.take(of(1, true)), Ok(()));
        assert_eq!((whole.parts.len(), whole.bytes), (1, 1));
    }

    #[test]
    fn texts_are_the_stream_itself() {
        assert_eq!(pieces(&json!("data: {}\n\n")), ["data: {}\n\n"]);
        assert_eq!(pieces(&json!(["a", "b"])), ["a", "b"]);
        assert_eq!(pieces(&json!({"x": 1})), ["data: {\"x\":1}\n\n"]);
    }

    #[test]
    fn calls_are_objects() {
        assert!(call(b"{\"a\": 1}").is_ok() && call(b" {}").is_ok());
        assert!(call(b"[]").is_err() && call(b"").is_err() && call(b"{").is_err());
    }
}
