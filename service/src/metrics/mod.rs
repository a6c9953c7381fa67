//! `/metrics`: the state of the service as numbers, in the text form of Prometheus.
//!
//! Counts since the start are kept by the modules that count. Gauges are read at each request. The
//! labels have few values: interfaces, statuses, names of rates, and at most [`ENDPOINTS_MAX`]
//! endpoints.

mod exposition;
mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::app::App;
use crate::jobs::projection::EndpointQueue;
use crate::keys::{Access, Interface};
use crate::pods::model::Pod;
use crate::pods::status::Status;
use crate::problem::Problem;
use crate::store::objects;
use exposition::{Exposition, MEDIA};
pub(crate) use requests::RequestCounts;

/// The most endpoints with metrics of their own. They are the first ones by id.
const ENDPOINTS_MAX: usize = 500;

/// The queues of the endpoints with jobs, by the endpoint's id.
type EndpointQueues = BTreeMap<String, Arc<EndpointQueue>>;

/// `GET /metrics`. Takes a key that may read the REST API.
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let principal = app.keys.authenticate(Interface::Rest, request.headers(), request.uri())?;
    principal.permit(Access { interface: Interface::Rest, changes: false, endpoint: None })?;
    let pods = app.store.read(|conn| objects::list::<Pod>(conn, 0)).await?;
    let mut response = text(&app, &pods).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    Ok(response)
}

fn text(app: &App, pods: &[Pod]) -> String {
    let mut text = Exposition::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.gauge("plumb_info", "The version of the service").sample(&version, 1);
    let queues: EndpointQueues = app.queue.projection.all().into_iter().collect();
    jobs(&mut text, &queues);
    job_times(&mut text, &queues);
    workers(&mut text, app, &queues);
    self::pods(&mut text, app, pods);
    requests(&mut text, &app.requests);
    text.histogram("plumb_store_commit_seconds", "The time of a commit of the store")
        .distribution(&[], app.store.commits());
    text.finish()
}

fn jobs(text: &mut Exposition, queues: &EndpointQueues) {
    let tallies: Vec<_> =
        queues.iter().take(ENDPOINTS_MAX).map(|(id, queue)| (id.as_str(), queue.tally())).collect();
    let mut jobs = text.gauge("plumb_jobs", "Jobs that have not ended, by endpoint and state");
    for (endpoint, tally) in &tallies {
        jobs.sample(&[("endpoint", endpoint), ("state", "IN_QUEUE")], tally.in_queue);
        jobs.sample(&[("endpoint", endpoint), ("state", "IN_PROGRESS")], tally.in_progress);
    }
    let help = "Jobs that ended; failed ones include those that ran out of time";
    let mut ended = text.counter("plumb_jobs_ended_total", help);
    for (endpoint, tally) in &tallies {
        ended.sample(&[("endpoint", endpoint), ("result", "completed")], tally.completed);
        ended.sample(&[("endpoint", endpoint), ("result", "failed")], tally.failed);
    }
    let mut retried = text.counter("plumb_job_retries_total", "Jobs that went back into the queue");
    for (endpoint, tally) in &tallies {
        retried.sample(&[("endpoint", endpoint)], tally.retried);
    }
}

fn job_times(text: &mut Exposition, queues: &EndpointQueues) {
    let shown = || queues.iter().take(ENDPOINTS_MAX);
    let mut delays = text
        .histogram("plumb_job_delay_seconds", "The time of a job from its submission to its run");
    for (endpoint, queue) in shown() {
        delays.distribution(&[("endpoint", endpoint)], &queue.delays);
    }
    let mut executions =
        text.histogram("plumb_job_execution_seconds", "The time that a job was run");
    for (endpoint, queue) in shown() {
        executions.distribution(&[("endpoint", endpoint)], &queue.executions);
    }
}

fn workers(text: &mut Exposition, app: &App, queues: &EndpointQueues) {
    let mut ids: Vec<String> =
        app.fleet.all().iter().map(|worker| worker.endpoint.clone()).collect();
    ids.extend(queues.keys().cloned());
    ids.sort_unstable();
    ids.dedup();
    let mut workers = text.gauge("plumb_workers", "Workers by endpoint and state");
    for endpoint in ids.iter().take(ENDPOINTS_MAX) {
        let counts = app.fleet.counts(endpoint);
        for (state, count) in [
            ("initializing", counts.initializing),
            ("idle", counts.idle),
            ("running", counts.running),
            ("throttled", counts.throttled),
            ("unhealthy", counts.unhealthy),
        ] {
            workers.sample(&[("endpoint", endpoint), ("state", state)], count);
        }
    }
}

fn pods(text: &mut Exposition, app: &App, pods: &[Pod]) {
    let statuses: Vec<_> = pods.iter().map(|pod| app.pod_runner.condition(pod).status).collect();
    let mut family = text.gauge("plumb_pods", "Pods by state");
    for state in Status::ALL {
        let count = statuses.iter().filter(|status| **status == state).count();
        family.sample(&[("state", state.name())], count);
    }
}

fn requests(text: &mut Exposition, counts: &RequestCounts) {
    let help = "Requests by interface and status; status 0 is a request without an answer";
    let mut requests = text.counter("plumb_requests_total", help);
    for (interface, status, count) in counts.statuses() {
        requests.sample(&[("interface", interface), ("status", &status.to_string())], count);
    }
    let help = "The time from a request to the head of its answer";
    let mut times = text.histogram("plumb_request_seconds", help);
    for (interface, histogram) in counts.times() {
        times.distribution(&[("interface", interface)], histogram);
    }
    let help = "Requests that were refused because there were too many, by rate";
    let mut refusals = text.counter("plumb_rate_refusals_total", help);
    for (limit, count) in counts.refusals() {
        refusals.sample(&[("rate", limit)], count);
    }
}
