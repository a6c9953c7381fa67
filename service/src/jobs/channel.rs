//! The channel of workers: take, done, progress, stream, ping, stop. The protocol is the one of the
//! real service's worker SDK, which is only known from the SDK's source.
//!
//! A worker sends the token that it was started with, in a header or in the address. Its message
//! about a job takes effect only while the job is in progress at this worker. Any other message is
//! answered 200 and changes nothing, so late or repeated messages do no harm. A job may end or be
//! queued again while its worker still runs it; that worker gets the job again only after it has
//! let go of it. A worker that was started before its endpoint changed finishes its jobs and gets
//! no new ones.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::named::Named;
use super::queue::{Outcome, Queue, Taker};
use super::record::State as JobState;
use crate::app::App;
use crate::auth;
use crate::body;
use crate::problem::{Kind, Problem};
use crate::resources::endpoint;
use crate::rest::answer::{json_response, json_text};
use crate::workers::worker::Worker;

/// A message of a worker about a job: a result, progress, or a part of a stream.
#[derive(Deserialize)]
struct Message {
    output: Option<Box<RawValue>>,
    metrics: Option<Box<RawValue>>,
    error: Option<Value>,
    status: Option<String>,
    #[serde(rename = "stopPod")]
    stop_pod: Option<bool>,
}

/// The most bytes of a result, or of a part of a stream, that a worker may send.
const RESULT_MAX: usize = 20 << 20;

/// The most bytes of a stored chunk of a stream; larger parts are split.
const CHUNK_MAX: usize = 1 << 20;

/// The most jobs that a worker takes at once.
const BATCH_MAX: i64 = 1000;

/// The pause before a worker that must not take jobs gets its empty answer.
const LEAVING_PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

type Answer = Result<Response, Problem>;
/// The ids of jobs, each with the JSON text that the worker gets.
type Assignments = Vec<(String, String)>;
/// The running service, as handlers get it.
type Running = State<Arc<App>>;

/// `GET /job-take/{worker}` and `/job-take-batch/{worker}`: jobs, or 204 after a while.
pub(super) async fn take(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let worker = known(&app, &endpoint, &id, &uri, &headers)?;
    worker.state().asked = true;
    if auth::query(&uri, "job_in_progress").as_deref() == Some("0") {
        worker.names(&[]);
    }
    let batch = auth::query(&uri, "batch_size");
    let count = batch.as_deref().and_then(|size| size.parse().ok()).unwrap_or(1);
    let count = i64::clamp(count, 1, BATCH_MAX);
    let jobs = wait_for_jobs(&app, &worker, count).await?;
    let assignments: Vec<String> = jobs.into_iter().map(|(_, assignment)| assignment).collect();
    Ok(match (batch, assignments.is_empty()) {
        (_, true) => StatusCode::NO_CONTENT.into_response(),
        (Some(_), false) => json_text(format!("[{}]", assignments.join(","))),
        (None, false) => json_text(assignments.concat()),
    })
}

async fn wait_for_jobs(
    app: &Arc<App>,
    worker: &Arc<Worker>,
    count: i64,
) -> Result<Assignments, Problem> {
    let deadline = Instant::now() + app.options.timing.take_hold;
    let queue = app.queue.projection.endpoint(&worker.endpoint);
    loop {
        let mut rung = std::pin::pin!(worker.bell.notified());
        rung.as_mut().enable();
        if !worker.may_take() || app.closing.is_cancelled() {
            // Without the pause, a worker that has not left yet would ask again and again without
            // end.
            sleep(LEAVING_PAUSE).await;
            return Ok(Vec::new());
        }
        if queue.tally().in_queue > 0 {
            let taken = claim(app, worker, count).await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
        tokio::select! {
            () = queue.queued.notified() => {}
            () = rung => {}
            () = sleep_until(deadline) => return Ok(Vec::new()),
            () = app.closing.cancelled() => return Ok(Vec::new()),
            () = app.draining.cancelled() => return Ok(Vec::new()),
        }
    }
}

async fn claim(app: &Arc<App>, worker: &Arc<Worker>, count: i64) -> Result<Assignments, Problem> {
    let timeout_ms = app.fleet.timeout_ms(&worker.endpoint);
    let (queue, worker) = (app.queue.clone(), Arc::clone(worker));
    let write = move |tx: &crate::store::Tx<'_>| {
        if endpoint::version(tx.conn, &worker.endpoint)?.is_some_and(|now| worker.version < now) {
            tx.after(move || leave_to_newer(&queue, &worker));
            return Ok(Vec::new());
        }
        let taker = Taker {
            endpoint: worker.endpoint.clone(),
            worker: worker.id.clone(),
            alive: Arc::clone(&worker.alive),
            timeout_ms,
            held: worker.held(),
        };
        let jobs = queue.take(tx, &taker, count)?;
        let ids: Vec<String> = jobs.iter().map(|(id, _)| id.clone()).collect();
        // Noted even if the worker's request is gone by then. If the worker did not get the jobs,
        // its pings do not name them, and they go back into the queue.
        tx.after(move || worker.got(ids.iter().map(String::as_str)));
        Ok(jobs)
    };
    // A lost write does no harm: a restart puts running jobs back into the queue anyway.
    app.store.write_soon(write).await
}

/// Retires a worker that runs the settings from before a change, and wakes another one for the job
/// that it has not taken. The next tick of the fleet would retire the worker too. But it must not
/// get this job before: the user who made the change wants to see the job run with the new
/// settings.
fn leave_to_newer(queue: &Queue, worker: &Worker) {
    worker.retire();
    queue.projection.endpoint(&worker.endpoint).queued.notify_one();
}

/// `GET /job-stop/{worker}`: the jobs that the worker must stop, or 204 after a while.
pub(super) async fn stop(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let worker = known(&app, &endpoint, &id, &uri, &headers)?;
    let deadline = Instant::now() + app.options.timing.take_hold;
    loop {
        let mut rung = std::pin::pin!(worker.bell.notified());
        rung.as_mut().enable();
        let ids = std::mem::take(&mut worker.state().to_stop);
        if !ids.is_empty() {
            return Ok(json_response(StatusCode::OK, &json!({ "jobsToStop": ids })));
        }
        if worker.is_leaving() || Instant::now() >= deadline || app.draining.is_cancelled() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        tokio::select! {
            () = rung => {}
            () = sleep_until(deadline) => {}
            () = app.draining.cancelled() => {}
        }
    }
}

/// `GET /ping/{worker}`: the worker reports that it lives, and names the jobs that it has.
pub(super) async fn ping(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let worker = known(&app, &endpoint, &id, &uri, &headers)?;
    if auth::query(&uri, "status").as_deref() == Some("unhealthy") {
        let check = auth::query(&uri, "check").unwrap_or_default();
        let reason: String =
            auth::query(&uri, "reason").unwrap_or_default().chars().take(256).collect();
        app.warn(&format!("worker {} is unhealthy: {check}: {reason}", worker.id));
    }
    let named = auth::query(&uri, "job_id").unwrap_or_default();
    let ids: Vec<&str> = named.split(',').filter(|id| !id.is_empty()).collect();
    worker.names(&ids);
    Ok(ok())
}

/// `POST /job-done/{worker}/{job}`: a result, or progress.
pub(super) async fn done(
    State(app): Running,
    Named((endpoint, id, job)): Named<(String, String, String)>,
    request: Request,
) -> Answer {
    let worker = known(&app, &endpoint, &id, request.uri(), request.headers())?;
    let body = match body::read(request.into_body(), RESULT_MAX).await {
        Ok(body) => body,
        Err(problem) if problem.kind == Kind::TooLarge => {
            let error = format!("the output is larger than {} MB", RESULT_MAX >> 20);
            finish(&app, &worker, &job, Outcome { output: None, error: Some(error) }).await?;
            return Err(problem);
        }
        Err(problem) => return Err(problem),
    };
    // The content type of the request says form data, but the body is JSON.
    let Ok(message) = serde_json::from_slice::<Message>(&body) else {
        let error = "the worker's result is not JSON".to_owned();
        finish(&app, &worker, &job, Outcome { output: None, error: Some(error) }).await?;
        return Err(Problem::invalid("the result must be a JSON object"));
    };
    let output = message.output.map(|output| output.get().to_owned());
    if message.status.is_some_and(|status| status == "IN_PROGRESS") {
        let (queue, by, of) = (app.queue.clone(), worker.id.clone(), job);
        let write =
            move |tx: &crate::store::Tx<'_>| queue.progress(tx, &by, &of, output.as_deref());
        app.store.write(write).await?;
        return Ok(ok());
    }
    let error = message.error.map(|error| match error {
        Value::String(text) => text,
        other => other.to_string(),
    });
    finish(&app, &worker, &job, Outcome { output, error }).await?;
    if message.stop_pod == Some(true) {
        worker.retire();
    }
    Ok(ok())
}

async fn finish(
    app: &Arc<App>,
    worker: &Arc<Worker>,
    id: &str,
    outcome: Outcome,
) -> Result<(), Problem> {
    let (queue, by, job) = (app.queue.clone(), worker.id.clone(), id.to_owned());
    let holder = Arc::clone(worker);
    let write = move |tx: &crate::store::Tx<'_>| {
        let finished = queue.finish(tx, &by, &job, &outcome)?;
        // Noted even if the worker's request is gone by then: the worker is done with this job.
        tx.after(move || holder.let_go(&job));
        Ok(finished)
    };
    let finished = app.store.write(write).await?;
    app.queue.projection.scale.notify_one();
    let Some(job) = finished else { return Ok(()) };
    app.fleet.forget_crashes(&worker.endpoint);
    let took = job.finished_at.unwrap_or(0) - job.started_at.unwrap_or(0);
    let what = if job.state == JobState::Completed { "completed" } else { "failed" };
    app.say(&format!("job {} {what} in {took} ms", job.id));
    Ok(())
}

/// `POST /job-stream/{worker}/{job}`: a part of the output.
pub(super) async fn stream(
    State(app): Running,
    Named((endpoint, id, job)): Named<(String, String, String)>,
    request: Request,
) -> Answer {
    let worker = known(&app, &endpoint, &id, request.uri(), request.headers())?;
    let body = body::read(request.into_body(), RESULT_MAX).await?;
    let message: Message = serde_json::from_slice(&body)
        .map_err(|_| Problem::invalid("a part of a stream must be JSON"))?;
    let chunks = split(&message);
    let (queue, by) = (app.queue.clone(), worker.id.clone());
    let write = move |tx: &crate::store::Tx<'_>| queue.stream(tx, &by, &job, &chunks);
    app.store.write(write).await?;
    Ok(ok())
}

/// Returns one chunk for a part that fits. A larger part is returned as text, split into several
/// chunks.
fn split(message: &Message) -> Vec<String> {
    let output = message.output.as_deref().map_or("null", RawValue::get);
    let whole = match message.metrics.as_deref() {
        Some(metrics) => format!("{{\"output\":{output},\"metrics\":{}}}", metrics.get()),
        None => format!("{{\"output\":{output}}}"),
    };
    if whole.len() <= CHUNK_MAX {
        return vec![whole];
    }
    let text = serde_json::from_str(output).unwrap_or_else(|_| output.to_owned());
    // A character can be six times as long when it is escaped.
    let (room, mut parts, mut part) = (CHUNK_MAX - 64, Vec::new(), String::new());
    let mut length = 0;
    for char in text.chars() {
        let escaped = match char {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            char if u32::from(char) < 0x20 => 6,
            char => char.len_utf8(),
        };
        if length + escaped > room {
            parts.push(json!({ "output": part }).to_string());
            (part, length) = (String::new(), 0);
        }
        part.push(char);
        length += escaped;
    }
    parts.push(json!({ "output": part }).to_string());
    parts
}

/// Returns the worker that calls, if it is a worker of this service and sends its token.
fn known(
    app: &App,
    endpoint: &str,
    id: &str,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Arc<Worker>, Problem> {
    let shown = auth::authorization(headers).unwrap_or("");
    let bare = shown.strip_prefix("Bearer ").unwrap_or(shown);
    let token = auth::query(uri, "token").unwrap_or_default();
    let worker = app.fleet.known(endpoint, id, &[bare, &token]);
    let worker = worker.ok_or_else(Problem::unauthorized)?;
    worker.heard();
    Ok(worker)
}

fn ok() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_parts_are_split_and_lose_nothing() {
        let part = |value: Value| serde_json::from_value::<Message>(value).unwrap();
        let small = r#"{"output":{"z":1.50,"a":1},"metrics":{"running":1}}"#;
        assert_eq!(split(&serde_json::from_str(small).unwrap()), [small]);
        for text in ["x".repeat(CHUNK_MAX + 1), "\u{1}é\"".repeat(700_000)] {
            let chunks = split(&part(json!({ "output": text })));
            assert!(chunks.len() > 1 && chunks.iter().all(|chunk| chunk.len() <= CHUNK_MAX));
            let parsed = chunks.iter().map(|chunk| serde_json::from_str::<Value>(chunk).unwrap());
            let whole: String =
                parsed.map(|chunk| chunk["output"].as_str().unwrap().to_owned()).collect();
            assert!(whole == text);
        }
    }
}
