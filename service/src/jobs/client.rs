//! The operations of the job API for clients, which submit jobs.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::named::Named;
use super::output;
use super::projection::Subscription;
use super::queue::{self, Drained, NewJob, PURGE, Queue};
use super::rates::{self, Limit, Permit};
use super::record::Job;
use super::submission::{self, RUN_MAX, RUNSYNC_MAX, Submission};
use super::waiting_client::WaitingClient;
use crate::access_log::Entry;
use crate::app::App;
use crate::auth;
use crate::body::{self, Received};
use crate::memory_budget::MemoryShare;
use crate::options::StreamFormat;
use crate::problem::{Kind, Problem};
use crate::resources::endpoint::Endpoint;
use crate::rest::answer::{json_response, json_text};
use crate::store::objects;
use crate::workers::usage::Level;

/// The most bytes of chunks that one answer of `/stream` holds.
const STREAM_ANSWER_MAX: usize = 256 << 10;

/// The time that an answer waits for its memory.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// The most jobs in an answer of `/requests`.
const REQUESTS_MAX: i64 = 100;

/// The longest time that a result of `/runsync` is kept; a larger `wait` asks for more than the
/// default.
const SYNC_RETENTION_MAX_MS: i64 = 300_000;

type Answer = Result<Response, Problem>;
/// The running service, as handlers get it.
pub(super) type Running = State<Arc<App>>;

/// `POST /run`
pub(super) async fn run(
    State(app): Running,
    Named(endpoint): Named<String>,
    request: Request,
) -> Answer {
    let entry = request.extensions().get::<Entry>().cloned();
    let body = body(request, RUN_MAX).await?;
    // Entered only now: otherwise a client that sends its body slowly would take a place from
    // others.
    let _permit = enter(&app, &endpoint, rates::RUN)?;
    let retention_ms = millis(app.options.timing.retention);
    let new = NewJob::new(Submission::parse(&body)?, false, retention_ms);
    let job = accept(&app, &endpoint, new, None).await?;
    note(entry.as_ref(), &job.id);
    Ok(json_response(StatusCode::OK, &job.reference()))
}

/// `POST /runsync`: the result if the job ends in time, else the reference.
pub(super) async fn runsync(
    State(app): Running,
    Named(endpoint): Named<String>,
    request: Request,
) -> Answer {
    let entry = request.extensions().get::<Entry>().cloned();
    let wait_ms = submission::wait(auth::query(request.uri(), "wait").as_deref())?;
    let explicit = auth::query(request.uri(), "wait").is_some();
    let kept = millis(app.options.timing.retention_sync);
    let retention = if explicit { wait_ms.min(SYNC_RETENTION_MAX_MS).max(kept) } else { kept };
    let body = body(request, RUNSYNC_MAX).await?;
    let _permit = enter(&app, &endpoint, rates::RUNSYNC)?;
    let new = NewJob::new(Submission::parse(&body)?, true, retention);
    drop(body);
    let deadline = Instant::now() + duration(wait_ms);
    let waiting_client = WaitingClient::new(&app, &endpoint);
    let subscription = app.queue.projection.subscribe(&new.id);
    let job = accept(&app, &endpoint, new, Some(&waiting_client)).await?;
    note(entry.as_ref(), &job.id);
    let job = settled(&app, job, subscription, deadline).await?;
    waiting_client.was_answered();
    if job.state.is_final() {
        return output::answer(&app, &job).await;
    }
    app.store.sync().await?;
    Ok(json_response(StatusCode::OK, &job.reference()))
}

/// `GET /status/{id}`
pub(super) async fn status(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    method: Method,
    uri: Uri,
) -> Answer {
    let _permit = enter(&app, &endpoint, rates::STATUS)?;
    let ttl = auth::query(&uri, "ttl");
    let ttl_ms = ttl.map(|ttl| submission::in_range(&ttl, "ttl", &submission::TTL)).transpose()?;
    if let Some(ttl_ms) = ttl_ms.filter(|_| method == Method::GET) {
        let (endpoint, id) = (endpoint.clone(), id.clone());
        app.store.write(move |tx| Queue::set_ttl(tx, &endpoint, &id, ttl_ms)).await?;
    }
    let job = read(&app, &endpoint, &id).await?;
    output::answer(&app, &job).await
}

/// `GET /status-sync/{id}`: the status once the job has ended, or after `wait`.
pub(super) async fn status_sync(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    uri: Uri,
) -> Answer {
    let _permit = enter(&app, &endpoint, rates::STATUS)?;
    let wait_ms = submission::wait(auth::query(&uri, "wait").as_deref())?;
    let deadline = Instant::now() + duration(wait_ms);
    let subscription = app.queue.projection.subscribe(&id);
    let job = read(&app, &endpoint, &id).await?;
    let job = settled(&app, job, subscription, deadline).await?;
    output::answer(&app, &job).await
}

/// `GET /stream/{id}`: the chunks since the last call. Without any, the answer waits for a while.
pub(super) async fn stream(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let _permit = enter(&app, &endpoint, rates::STREAM)?;
    if method == Method::HEAD {
        // A HEAD request takes no chunks out of the stream, because its answer has no body.
        read(&app, &endpoint, &id).await?;
        return Ok(json_text(String::new()));
    }
    let hold = match auth::query(&uri, "wait") {
        Some(wait) => duration(submission::wait(Some(&wait))?),
        None => app.options.timing.stream_hold,
    };
    let deadline = Instant::now() + hold;
    let subscription = app.queue.projection.subscribe(&id);
    loop {
        let mut bell = std::pin::pin!(subscription.news().notified());
        bell.as_mut().enable();
        let (of, job) = (endpoint.clone(), id.clone());
        let drain = move |tx: &crate::store::Tx<'_>| Queue::drain(tx, &of, &job, STREAM_ANSWER_MAX);
        let Drained { state, chunks, .. } = app.store.write(drain).await?;
        let patient = Instant::now() < deadline && !app.draining.is_cancelled();
        if chunks.is_empty() && !state.is_final() && patient {
            tokio::select! {
                () = bell => {}
                () = sleep_until(deadline) => {}
                () = app.draining.cancelled() => {}
            }
            continue;
        }
        let mut share = MemoryShare::default();
        let bytes = chunks.iter().map(String::len).sum();
        // The chunks have left the store and cannot be put back, so they are sent even if no memory
        // becomes free in time.
        drop(share.grow_to(bytes, Instant::now() + ROOM_TIMEOUT).await);
        let chunks = chunks.join(",");
        let shown = if wants_object(app.options.stream_format, &headers) {
            format!("{{\"status\":\"{}\",\"stream\":[{chunks}]}}", state.name())
        } else {
            format!("[{chunks}]")
        };
        return Ok(output::held(shown, share));
    }
}

/// `POST /cancel/{id}`
pub(super) async fn cancel(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    request: Request,
) -> Answer {
    let _permit = enter(&app, &endpoint, rates::CANCEL)?;
    note(request.extensions().get::<Entry>(), &id);
    let running = Arc::clone(&app);
    let write = move |tx: &crate::store::Tx<'_>| {
        let job = running.queue.cancel(tx, &endpoint, &id)?;
        let (worker, id) = (job.worker.clone(), job.id.clone());
        // Done even if the client has left by then.
        let killer = (job.losses > 0).then(|| job.endpoint.clone());
        tx.after(move || {
            running.stop_job(worker.as_deref(), &id);
            if let Some(endpoint) = killer {
                // The job that made its workers crash is gone, so the next worker starts without a
                // pause.
                running.fleet.forget_crashes(&endpoint);
            }
        });
        Ok(job)
    };
    let job = app.store.write(write).await?;
    app.say(&format!("job {} cancelled", job.id));
    Ok(json_response(StatusCode::OK, &job.reference()))
}

/// `POST /retry/{id}`
pub(super) async fn retry(
    State(app): Running,
    Named((endpoint, id)): Named<(String, String)>,
    request: Request,
) -> Answer {
    note(request.extensions().get::<Entry>(), &id);
    let queue = app.queue.clone();
    let job = app.store.write(move |tx| queue.retry(tx, &endpoint, &id)).await?;
    app.say(&format!("job {} queued again", job.id));
    Ok(json_response(StatusCode::OK, &job.reference()))
}

/// `POST /purge-queue`
pub(super) async fn purge(State(app): Running, Named(endpoint): Named<String>) -> Answer {
    let _permit = enter(&app, &endpoint, rates::PURGE)?;
    let purging = tokio::spawn(purge_queue(Arc::clone(&app), endpoint));
    let removed = purging.await.unwrap_or_else(|_| Err(Problem::because("a purge panicked")))?;
    app.say(&format!("{removed} queued jobs removed"));
    Ok(json_response(StatusCode::OK, &json!({ "removed": removed, "status": "completed" })))
}

/// Removes the jobs that are in the queue now, in many small writes. Continues when the client
/// leaves.
async fn purge_queue(app: Arc<App>, endpoint: String) -> Result<usize, Problem> {
    let (position, mut removed) = (app.queue.projection.last_position(), 0);
    loop {
        let (queue, endpoint) = (app.queue.clone(), endpoint.clone());
        let write = move |tx: &crate::store::Tx<'_>| queue.purge(tx, &endpoint, position);
        let count = app.store.write(write).await?;
        removed += count;
        if count < usize::from(PURGE) {
            return Ok(removed);
        }
    }
}

/// `GET /health`. The requests of an endpoint that balances load are shown as its jobs.
pub(super) async fn health(State(app): Running, Named(endpoint): Named<String>) -> Answer {
    let volumes = check_endpoint(&app, &endpoint).await?;
    let tally = app.queue.projection.tally(&endpoint);
    let counts = app.fleet.counts(&endpoint);
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (requests, waiting) =
        (app.fleet.requests(Some(&endpoint)), app.balancer.waiting(&endpoint));
    let mut shown = json!({
        "jobs": {
            "completed": tally.completed,
            "failed": tally.failed,
            "inProgress": tally.in_progress + count(requests),
            "inQueue": tally.in_queue + count(waiting),
            "retried": tally.retried,
        },
        "workers": {
            "idle": counts.idle,
            "initializing": counts.initializing,
            "ready": counts.idle + counts.running,
            "running": counts.running,
            "throttled": counts.throttled,
            "unhealthy": counts.unhealthy,
        },
    });
    if !volumes.is_empty() {
        let level = |id: &String| {
            let level = app.usage.level(id).unwrap_or_default();
            json!({ "id": id, "size": level.size, "usedBytes": level.used, "full": level.is_full() })
        };
        shown["volumes"] = volumes.iter().map(level).collect();
    }
    Ok(json_response(StatusCode::OK, &shown))
}

/// `GET /requests`: the latest jobs. The documents name this operation without its form; the form
/// is the one that public clients read.
pub(super) async fn requests(State(app): Running, Named(endpoint): Named<String>) -> Answer {
    let _permit = enter(&app, &endpoint, rates::REQUESTS)?;
    check_endpoint(&app, &endpoint).await?;
    let jobs = app.store.read(move |conn| queue::latest(conn, &endpoint, REQUESTS_MAX)).await?;
    let shown: Vec<Value> = jobs.iter().map(Job::listed).collect();
    Ok(json_response(StatusCode::OK, &json!({ "requests": shown })))
}

/// Puts a job into the queue. With `waiting_client`, the job is cancelled if that client leaves.
pub(super) async fn accept(
    app: &Arc<App>,
    endpoint: &str,
    new: NewJob,
    waiting_client: Option<&WaitingClient>,
) -> Result<Job, Problem> {
    let (queue, endpoint) = (app.queue.clone(), endpoint.to_owned());
    let submitted = waiting_client.map(WaitingClient::submitted);
    let running = Arc::clone(app);
    let write = move |tx: &crate::store::Tx<'_>| {
        if running.options.refuse_full_volumes {
            check_volumes(&running, tx, &endpoint)?;
        }
        let job = queue.submit(tx, &endpoint, &new)?;
        if let Some(submitted) = submitted {
            let id = job.id.clone();
            tx.after(move || submitted(id));
        }
        Ok(job)
    };
    if waiting_client.is_some() {
        // The write need not be durable yet. The client gets either the result, whose own write
        // makes all earlier ones durable, or a reference after [`Store::sync`].
        app.store.write_soon(write).await
    } else {
        app.store.write(write).await
    }
}

/// Refuses a job of an endpoint with a volume whose files take more than its size.
fn check_volumes(app: &App, tx: &crate::store::Tx<'_>, endpoint: &str) -> Result<(), Problem> {
    let endpoint: Endpoint = objects::get(tx.conn, endpoint)?;
    let is_full = |id: &&str| app.usage.level(id).is_some_and(Level::is_full);
    match endpoint.volumes().into_iter().find(is_full) {
        Some(id) => Err(Problem::invalid(format!(
            "network volume {id} holds more than its size: make it larger, or remove files"
        ))),
        None => Ok(()),
    }
}

/// Reads the body up to a limit. A larger one is answered 400 as in the documents, not 413 as in
/// the management API.
pub(super) async fn body(request: Request, limit: usize) -> Result<Received, Problem> {
    body::read(request.into_body(), limit).await.map_err(|problem| match problem.kind {
        Kind::TooLarge => Problem::invalid(problem.message),
        _ => problem,
    })
}

/// Waits until the job has ended, or until the deadline, and returns the job. `job` must have been
/// read after the subscription began.
async fn settled(
    app: &Arc<App>,
    mut job: Job,
    mut subscription: Subscription,
    deadline: Instant,
) -> Result<Job, Problem> {
    while !job.state.is_final() {
        let (ended, has_news) = tokio::select! {
            ended = subscription.end() => (ended, true),
            () = sleep_until(deadline) => (None, false),
            () = app.draining.cancelled() => (None, false),
        };
        job = match ended {
            Some(ended) => Job::clone(&ended),
            None => read(app, &job.endpoint, &job.id).await?,
        };
        if !has_news {
            break;
        }
    }
    Ok(job)
}

pub(super) async fn read(app: &App, endpoint: &str, id: &str) -> Result<Job, Problem> {
    let (endpoint, id) = (endpoint.to_owned(), id.to_owned());
    app.store.read(move |conn| queue::get(conn, &endpoint, &id)).await
}

/// Returns the volumes of an endpoint, or the problem that there is no such endpoint.
async fn check_endpoint(app: &App, endpoint: &str) -> Result<Vec<String>, Problem> {
    let id = endpoint.to_owned();
    let endpoint = app.store.read(move |conn| objects::get::<Endpoint>(conn, &id)).await?;
    Ok(endpoint.volumes().into_iter().map(str::to_owned).collect())
}

pub(super) fn enter(app: &App, endpoint: &str, limit: Limit) -> Result<Option<Permit>, Problem> {
    if !app.options.job_rates {
        return Ok(None);
    }
    let running = app.fleet.counts(endpoint).running;
    let entered = app.rates.enter(endpoint, limit, running);
    entered.map(Some).inspect_err(|_| app.requests.refused(limit.name))
}

/// Returns true if a client gets the chunks of a stream in an object with the job's state.
fn wants_object(format: StreamFormat, headers: &HeaderMap) -> bool {
    match format {
        StreamFormat::Array => false,
        StreamFormat::Object => true,
        StreamFormat::Auto => {
            let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
            agent.is_some_and(|agent| agent.to_ascii_lowercase().contains("runpod"))
        }
    }
}

fn note(entry: Option<&Entry>, id: &str) {
    if let Some(entry) = entry {
        entry.object(id);
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
