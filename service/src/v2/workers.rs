//! The workers of an endpoint, and its releases.

use std::sync::Arc;

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::logs;
use crate::clock::{iso, now_ms};
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Shape, any, count, flag, integer, list as list_of, must, named, object, one_of, text,
};
use crate::problem::Problem;
use crate::resources::endpoint::Endpoint;
use crate::resources::release::Release;
use crate::resources::template::Template;
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::objects;
use crate::workers::worker::{Phase, Worker};

const STATUSES: &[&str] = &["RUNNING", "IDLE", "INITIALIZING", "THROTTLED", "UNHEALTHY"];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        op::get(
            "/serverless/{id}/workers",
            "listEndpointWorkers",
            "List the workers of an endpoint",
            list,
        )
        .gives(200, workers_shape()),
        op::get(
            "/serverless/{id}/releases",
            "listEndpointReleases",
            "List the releases of an endpoint, the newest first",
            list_releases,
        )
        .gives(200, releases_shape()),
        op::get(
            "/serverless/{id}/builds",
            "listEndpointBuilds",
            "List the builds of an endpoint: this service builds nothing",
            list_builds,
        )
        .gives(200, object([must("builds", list_of(any()))])),
        logs::described(op::get(
            "/serverless/{id}/workers/{workerId}/logs",
            "getWorkerLogs",
            "Follow the output of a worker",
            logs::follow,
        )),
    ]
}

fn workers_shape() -> Shape {
    let worker = object([
        must("id", text()),
        must("status", one_of(STATUSES)),
        must("isStale", flag()),
        must("version", count().or_null()),
        must("gpuCount", count()),
        must("image", text().or_null()),
        must("uptimeSeconds", count().or_null()),
        must("gpuTypeId", text().or_null()),
        must("dataCenterId", text().or_null()),
        must("startedAt", text().or_null()),
    ]);
    let summary = ["running", "idle", "initializing", "throttled", "unhealthy", "total"];
    let workers = object([
        must("workers", list_of(named("Worker", worker))),
        must("summary", named("WorkerSummary", object(summary.map(|name| must(name, count()))))),
        must("endpointVersion", count().or_null()),
    ]);
    named("ListEndpointWorkersResponse", workers)
}

fn releases_shape() -> Shape {
    let difference = object([must("field", text()), must("old", any()), must("new", any())]);
    let release = object([
        must("id", text()),
        must("version", count().or_null()),
        must("source", one_of(&["GIT_BUILD", "MANUAL"])),
        must("buildId", text().or_null()),
        must("createdByUserId", text().or_null()),
        must("workerCount", count()),
        must("createdAt", text()),
        must("diff", list_of(difference)),
    ]);
    let rollout = object([
        must("inProgress", flag()),
        must("workersOnLatest", count()),
        must("workersTotal", count()),
        must("percentOnLatest", integer().between(0, 100)),
    ]);
    let releases = object([
        must("endpointVersion", count().or_null()),
        must("rollout", rollout),
        must("releases", list_of(named("Release", release))),
    ]);
    named("ListEndpointReleasesResponse", releases)
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let read = move |conn: &Connection| {
        let endpoint: Endpoint = objects::get(conn, &id)?;
        let template = objects::find::<Template>(conn, &endpoint.template_id)?;
        Ok((endpoint, template))
    };
    let (endpoint, template) = request.app.store.read(read).await?;
    let image = template.map(|template| template.image_name);
    let workers: Vec<Value> = request
        .app
        .fleet
        .workers_of(&endpoint.id)
        .iter()
        .filter_map(|worker| shown(worker, &endpoint, image.as_deref()))
        .collect();
    let of = |status: &str| workers.iter().filter(|worker| worker["status"] == status).count();
    let summary = json!({
        "running": of("RUNNING"),
        "idle": of("IDLE"),
        "initializing": of("INITIALIZING"),
        "throttled": of("THROTTLED"),
        "unhealthy": of("UNHEALTHY"),
        "total": workers.len(),
    });
    let version = endpoint.version;
    let shown = json!({ "workers": workers, "summary": summary, "endpointVersion": version });
    Ok(answer::shown(&request.app, shown))
}

/// Returns a worker as JSON; `None` if it is about to end and has no job.
fn shown(worker: &Worker, endpoint: &Endpoint, image: Option<&str>) -> Option<Value> {
    let status = {
        let state = worker.state();
        match state.phase {
            _ if !state.jobs.is_empty() => "RUNNING",
            Phase::Starting => "INITIALIZING",
            Phase::Ready => "IDLE",
            Phase::Retiring | Phase::Ending => return None,
        }
    };
    let is_current = worker.version == endpoint.version;
    Some(json!({
        "id": worker.id,
        "status": status,
        "isStale": !is_current,
        "version": worker.version,
        "gpuCount": if endpoint.compute_type == "CPU" { 0 } else { endpoint.gpu_count },
        // The image of an older version is not known any more.
        "image": image.filter(|_| is_current),
        "uptimeSeconds": (now_ms() - worker.started_at).max(0) / 1000,
        "gpuTypeId": endpoint.gpu_type_ids.first(),
        "dataCenterId": endpoint.data_centers().first(),
        "startedAt": iso(worker.started_at),
    }))
}

async fn list_builds(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.read(move |conn: &Connection| objects::get::<Endpoint>(conn, &id)).await?;
    Ok(answer::shown(&request.app, json!({ "builds": [] })))
}

async fn list_releases(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let read = move |conn: &Connection| {
        let endpoint: Endpoint = objects::get(conn, &id)?;
        Ok((endpoint, objects::all_named::<Release>(conn, &id)?))
    };
    let (endpoint, mut releases) = request.app.store.read(read).await?;
    releases.reverse();
    let workers = request.app.fleet.workers_of(&endpoint.id);
    let on = |version: i64| workers.iter().filter(|worker| worker.version == version).count();
    let (latest, total) = (on(endpoint.version), workers.len());
    let shown: Vec<Value> =
        releases.iter().map(|release| shown_release(release, on(release.version))).collect();
    let shown = json!({
        "endpointVersion": endpoint.version,
        "rollout": {
            "inProgress": latest < total,
            "workersOnLatest": latest,
            "workersTotal": total,
            "percentOnLatest": (latest * 100).checked_div(total).unwrap_or(0),
        },
        "releases": shown,
    });
    Ok(answer::shown(&request.app, shown))
}

fn shown_release(release: &Release, workers: usize) -> Value {
    json!({
        "id": release.id,
        "version": release.version,
        "source": "MANUAL",
        "buildId": null,
        "createdByUserId": null,
        "workerCount": workers,
        "createdAt": iso(release.created_at),
        "diff": release.diff,
    })
}

/// Returns the live worker that the path names; `None` if the endpoint has no such worker.
pub(super) fn living(request: &RestRequest) -> Option<Arc<Worker>> {
    let worker = request.app.fleet.worker(request.place(1))?;
    (worker.endpoint == request.id).then_some(worker)
}
