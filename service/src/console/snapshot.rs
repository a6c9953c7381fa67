//! The part of the state that a page shows, as JSON text. The same state gives the same text.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};

use crate::app::App;
use crate::jobs::queue;
use crate::jobs::record::Job;
use crate::problem::Problem;
use crate::resources::endpoint::{Endpoint, TIMEOUT_DEFAULT_MS};
use crate::resources::template::Template;
use crate::store::objects;
use crate::workers::worker::{Phase, Worker};

/// The most endpoints, and the most jobs, of a list.
const ENDPOINTS_MAX: usize = 500;
const JOBS_MAX: i64 = 200;

/// The most bytes of an input or an output that are shown before the user asks for more.
pub(super) const TEXT_MAX: usize = 64 << 10;

/// The subject of a page.
pub(super) enum Topic {
    Endpoints,
    Endpoint(String),
    Job { endpoint: String, id: String },
}

impl Topic {
    /// Reads `endpoints`, `endpoint/ID` or `job/ENDPOINT/ID`; returns `None` for another text.
    pub(super) fn parse(text: &str) -> Option<Topic> {
        let mut parts = text.split('/');
        let topic = match (parts.next()?, parts.next(), parts.next()) {
            ("endpoints", None, None) => Topic::Endpoints,
            ("endpoint", Some(id), None) => Topic::Endpoint(id.to_owned()),
            ("job", Some(endpoint), Some(id)) => {
                Topic::Job { endpoint: endpoint.to_owned(), id: id.to_owned() }
            }
            _ => return None,
        };
        parts.next().is_none().then_some(topic)
    }
}

/// Returns the state of a topic, or the problem that there is no such object.
pub(super) async fn take(app: &Arc<App>, topic: &Topic) -> Result<String, Problem> {
    let state = match topic {
        Topic::Endpoints => endpoints(app).await,
        Topic::Endpoint(id) => endpoint(app, id).await,
        Topic::Job { endpoint, id } => job(app, endpoint, id).await,
    };
    state.map(|state| state.to_string())
}

async fn endpoints(app: &App) -> Result<Value, Problem> {
    let all = app.store.read(|conn| objects::list::<Endpoint>(conn, 0)).await?;
    let newest = all.iter().rev().take(ENDPOINTS_MAX);
    let shown: Vec<Value> = newest.map(|endpoint| summary(app, endpoint)).collect();
    Ok(json!({ "total": all.len(), "endpoints": shown }))
}

/// Returns an endpoint with its changing numbers.
fn summary(app: &App, endpoint: &Endpoint) -> Value {
    let tally = app.queue.projection.tally(&endpoint.id);
    let counts = app.fleet.counts(&endpoint.id);
    // For an endpoint that balances load, requests are shown in the place of jobs.
    let (requests, waiting) =
        (app.fleet.requests(Some(&endpoint.id)), app.balancer.waiting(&endpoint.id));
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    json!({
        "id": endpoint.id,
        "name": app.shown_name(endpoint),
        "type": endpoint.kind,
        "compute": endpoint.compute_type,
        "version": endpoint.version,
        "created": endpoint.created_at,
        "workersMin": endpoint.workers_min,
        "workersMax": endpoint.workers_max,
        "jobs": {
            "queued": tally.in_queue + count(waiting),
            "running": tally.in_progress + count(requests),
            "completed": tally.completed,
            "failed": tally.failed,
            "retried": tally.retried,
        },
        "workers": {
            "running": counts.running,
            "idle": counts.idle,
            "starting": counts.initializing,
            "unhealthy": counts.unhealthy,
            "throttled": counts.throttled,
        },
    })
}

async fn endpoint(app: &App, id: &str) -> Result<Value, Problem> {
    let id = id.to_owned();
    let read = move |conn: &Connection| {
        let endpoint: Endpoint = objects::get(conn, &id)?;
        let template = objects::find::<Template>(conn, &endpoint.template_id)?;
        let jobs = queue::latest(conn, &id, JOBS_MAX)?;
        Ok((endpoint, template, jobs))
    };
    let (endpoint, template, jobs) = app.store.read(read).await?;
    let mut shown = summary(app, &endpoint);
    let workers = app.fleet.workers_of(&endpoint.id);
    shown["workerList"] = workers.iter().map(|worker| self::worker(worker, &endpoint)).collect();
    shown["jobList"] = jobs.iter().map(listed).collect();
    shown["settings"] = settings(&endpoint, template.as_ref());
    if endpoint.is_balanced() {
        shown["base"] = json!(format!("{}/lb/{}", app.base_url(), endpoint.id));
    }
    Ok(shown)
}

fn settings(endpoint: &Endpoint, template: Option<&Template>) -> Value {
    json!({
        "template": template.map(|template| json!({
            "id": template.id,
            "name": template.name,
            "image": template.image_name,
            "command": template.docker_entrypoint.iter().chain(&template.docker_start_cmd)
                .collect::<Vec<_>>(),
            "isOwn": template.bound_endpoint_id.is_some(),
        })),
        "gpus": endpoint.gpu_type_ids,
        "gpuCount": endpoint.gpu_count,
        "cpus": endpoint.instances(),
        "scaler": endpoint.scaler_type,
        "scalerValue": endpoint.scaler_value,
        "idleTimeout": endpoint.idle_timeout,
        "executionTimeoutMs": endpoint.execution_timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS),
        "volumes": endpoint.volumes(),
        "models": endpoint.model_references,
        // The values are left out, so that nobody can read secrets from another person's screen.
        "environment": endpoint.env.keys().collect::<Vec<_>>(),
    })
}

fn worker(worker: &Worker, endpoint: &Endpoint) -> Value {
    let state = worker.state();
    let word = match state.phase {
        Phase::Retiring | Phase::Ending => "ending",
        _ if !state.jobs.is_empty() || state.requests > 0 => "running",
        Phase::Starting => "starting",
        Phase::Ready => "idle",
    };
    let mut jobs: Vec<&String> = state.jobs.keys().collect();
    jobs.sort();
    json!({
        "id": worker.id,
        "state": word,
        "started": worker.started_at,
        "version": worker.version,
        "isStale": worker.version != endpoint.version,
        "jobs": jobs,
        "requests": state.requests,
    })
}

/// Returns a job without its input and its output.
fn listed(job: &Job) -> Value {
    json!({
        "id": job.id,
        "state": job.state.name(),
        "created": job.submitted_at,
        "started": job.started_at,
        "finished": job.finished_at,
        // The time of the runs that were cut off, in milliseconds.
        "spent": job.spent_ms,
        "worker": job.worker,
        "retries": job.retries,
        "losses": job.losses,
        "lowPriority": job.low_priority,
        "error": job.error.as_deref().map(|error| cut(error, 300)),
    })
}

async fn job(app: &App, endpoint: &str, id: &str) -> Result<Value, Problem> {
    let (endpoint, id) = (endpoint.to_owned(), id.to_owned());
    let read = move |conn: &Connection| {
        let job = queue::get(conn, &endpoint, &id)?;
        let named: Endpoint = objects::get(conn, &endpoint)?;
        let sql = "select substr(output, 1, ?2), coalesce(octet_length(output), 0), \
                   (select count(*) from chunks where job = ?1) from jobs where id = ?1";
        let mut statement = conn.prepare_cached(sql)?;
        let length = i64::try_from(TEXT_MAX).unwrap_or(i64::MAX);
        let found = statement.query_row(rusqlite::params![id, length], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        Ok((job, named, found.optional()?.unwrap_or_default()))
    };
    let (job, endpoint, (output, bytes, chunks)) = app.store.read(read).await?;
    let mut shown = listed(&job);
    shown["endpoint"] = json!({ "id": endpoint.id, "name": app.shown_name(&endpoint) });
    shown["error"] = json!(job.error.as_deref().map(|error| cut(error, TEXT_MAX)));
    shown["output"] = output.map_or(Value::Null, |text| json!({ "text": text, "bytes": bytes }));
    shown["chunks"] = json!(chunks);
    shown["webhook"] = json!(job.webhook.is_some());
    Ok(shown)
}

/// Returns the beginning of a text, up to so many bytes, with a sign that more follows.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_one_of_three() {
        assert!(matches!(Topic::parse("endpoints"), Some(Topic::Endpoints)));
        assert!(matches!(Topic::parse("endpoint/e"), Some(Topic::Endpoint(id)) if id == "e"));
        let job = Topic::parse("job/e/j");
        assert!(matches!(job, Some(Topic::Job { endpoint, id }) if endpoint == "e" && id == "j"));
        for wrong in ["", "endpoint", "job/e", "endpoints/e", "job/e/j/k", "x"] {
            assert!(Topic::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_cut_text_is_a_text() {
        assert_eq!(cut("äöü", 6), "äöü");
        assert_eq!(cut("äöü", 3), "ä…");
    }
}
