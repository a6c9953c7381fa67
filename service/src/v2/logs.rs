//! The output of a worker or a pod as server-sent events, until the worker or pod is gone.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures_util::stream;
use rusqlite::Connection;
use serde_json::json;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::workers::living;
use crate::app::App;
use crate::clock::iso;
use crate::description::operation::Operation;
use crate::description::shape::{integer, one_of, text};
use crate::ids;
use crate::pods::model::Pod;
use crate::problem::Problem;
use crate::resources::endpoint::Endpoint;
use crate::rest::request::RestRequest;
use crate::store::objects;
use crate::workers::logs;

/// The time between two reads of the file.
const PAUSE: Duration = Duration::from_millis(250);

/// The most bytes of one read.
const BLOCK: u64 = 256 << 10;

/// A log that a client follows.
struct Log {
    app: Arc<App>,
    /// False as soon as nothing writes into the log any more; `None` if the writer was gone from
    /// the start.
    alive: Option<Arc<AtomicBool>>,
    path: PathBuf,
    /// The number of bytes, and of lines, that were read so far.
    bytes: u64,
    line: u64,
    /// The number of lines at the beginning that are not shown.
    after: u64,
    /// The time before which nothing is shown.
    since: String,
}

/// Describes an operation that follows a log.
pub(super) fn described(operation: Operation) -> Operation {
    operation
        .query("source", one_of(&["container", "system"]))
        .query("tail", integer().between(0, i64::from(i32::MAX)).note("Only the last lines"))
        .query("since", text().note("Only lines after this time"))
        .gives_text("text/event-stream", text())
}

/// `GET /serverless/{id}/workers/{workerId}/logs`
pub(super) async fn follow(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.read(move |conn: &Connection| objects::get::<Endpoint>(conn, &id)).await?;
    let worker = request.place(1);
    // Any other text could lead to another file.
    let is_id = ids::is_long(&request.id) && ids::is_long(worker);
    let path = logs::path(&request.app.options.data, &request.id, worker);
    let worker = living(&request);
    if !is_id || (worker.is_none() && !tokio::fs::try_exists(&path).await.unwrap_or(false)) {
        return Err(Problem::not_found("worker"));
    }
    Ok(stream_of(&request, path, worker.map(|worker| Arc::clone(&worker.alive))).await)
}

/// `GET /pods/{id}/logs`
pub(super) async fn follow_pod(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.read(move |conn: &Connection| objects::get::<Pod>(conn, &id)).await?;
    if !ids::is_long(&request.id) {
        return Err(Problem::not_found("pod"));
    }
    let path = logs::path(&request.app.options.data, logs::POD, &request.id);
    let run = request.app.pod_runner.run_of(&request.id);
    Ok(stream_of(&request, path, run.map(|run| Arc::clone(&run.alive))).await)
}

/// Returns the answer with the log at this path, from the line that the request names.
async fn stream_of(
    request: &RestRequest,
    path: PathBuf,
    alive: Option<Arc<AtomicBool>>,
) -> Response {
    if request.parameter("source").is_some_and(|source| source == "system") {
        // The service writes messages about a worker into its own log, so this log has none.
        return events(Body::empty());
    }
    let last = request.headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let seen = last.and_then(|id| id.rsplit('/').next()?.parse::<u64>().ok());
    let tail = request.parameter("tail").and_then(|tail| tail.parse::<u64>().ok());
    let after = match (seen, tail) {
        (Some(seen), _) => seen,
        (None, Some(tail)) => count_lines(&path).await.saturating_sub(tail),
        (None, None) => 0,
    };
    let since = request.parameter("since").unwrap_or_default();
    let app = Arc::clone(&request.app);
    let log = Log { app, alive, path, bytes: 0, line: 0, after, since };
    events(Body::from_stream(stream::unfold(log, next)))
}

fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

async fn count_lines(path: &PathBuf) -> u64 {
    let bytes = tokio::fs::read(path).await.unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').skip(1).count() as u64
}

/// Returns the next events; `None` at the end of a log whose writer is gone.
async fn next(mut log: Log) -> Option<(Result<Bytes, Infallible>, Log)> {
    loop {
        let is_over = log.is_over();
        let events = log.read().await.unwrap_or_default();
        if !events.is_empty() {
            return Some((Ok(events.into()), log));
        }
        if is_over {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Log {
    fn is_over(&self) -> bool {
        let lives = self.alive.as_ref().is_some_and(|alive| alive.load(SeqCst));
        !lives || self.app.draining.is_cancelled()
    }

    /// Returns the lines since the last read as events.
    async fn read(&mut self) -> std::io::Result<String> {
        let mut file = File::open(&self.path).await?;
        // Lines have no time of their own. The file's time, which is that of its last line, is used
        // for all of them.
        let written = file.metadata().await?.modified()?;
        let written = written.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let time = iso(i64::try_from(written).unwrap_or(i64::MAX));
        file.seek(SeekFrom::Start(self.bytes)).await?;
        let mut block = Vec::new();
        file.take(BLOCK).read_to_end(&mut block).await?;
        let whole = match block.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            // A line longer than a block is shown in parts.
            None if block.len() as u64 == BLOCK => block.len(),
            None => 0,
        };
        self.bytes += whole as u64;
        let mut events = String::new();
        for line in String::from_utf8_lossy(&block[..whole]).lines() {
            self.line += 1;
            if self.line > self.after && time >= self.since {
                let data = json!({ "ts": time, "source": "container", "line": line });
                // Writing into a text does not fail.
                let _written = write!(events, "id: {time}/{:012}\ndata: {data}\n\n", self.line);
            }
        }
        Ok(events)
    }
}
