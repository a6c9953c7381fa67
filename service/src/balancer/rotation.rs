//! The choice of a worker for a request, and the requests that wait for a worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::{Instant, sleep_until};

use super::affinity::Affinity;
use super::refusal::Refusal;
use crate::app::App;
use crate::problem::{Kind, Problem};
use crate::workers::worker::Worker;

/// The number of requests of each endpoint that wait for a worker.
#[derive(Default)]
pub(crate) struct Balancer {
    waiting: Mutex<HashMap<String, usize>>,
    /// Locked while a worker is chosen. Without it two requests at once could choose the same idle
    /// worker.
    choice: Mutex<()>,
}

impl Balancer {
    /// Returns the endpoints that have waiting requests.
    pub(crate) fn pressed(&self) -> Vec<String> {
        self.counts().keys().cloned().collect()
    }

    /// Returns the number of waiting requests of an endpoint.
    pub(crate) fn waiting(&self, endpoint: &str) -> usize {
        self.counts().get(endpoint).copied().unwrap_or(0)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiting request, counted until this is dropped.
struct Waiting<'a> {
    balancer: &'a Balancer,
    endpoint: &'a str,
}

impl<'a> Waiting<'a> {
    fn new(balancer: &'a Balancer, endpoint: &'a str) -> Waiting<'a> {
        *balancer.counts().entry(endpoint.to_owned()).or_default() += 1;
        Waiting { balancer, endpoint }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut counts = self.balancer.counts();
        if let Some(count) = counts.get_mut(self.endpoint) {
            *count -= 1;
            if *count == 0 {
                counts.remove(self.endpoint);
            }
        }
    }
}

/// A worker with one request, counted until this is dropped.
pub(super) struct Slot(Arc<Worker>);

impl Slot {
    fn of(worker: &Arc<Worker>) -> Slot {
        worker.begin_request();
        Slot(Arc::clone(worker))
    }

    /// Returns the worker.
    pub(super) fn worker(&self) -> &Worker {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// Waits until a worker takes the request, and returns the worker.
pub(super) async fn worker_for(
    app: &Arc<App>,
    endpoint: &str,
    affinity: &Affinity,
) -> Result<Slot, Refusal> {
    let timing = &app.options.timing;
    let limit = match affinity {
        Affinity::Strict(_) => timing.affinity_wait,
        Affinity::None | Affinity::Soft(_) => timing.worker_wait,
    };
    let deadline = Instant::now() + limit;
    let mut waiting = None;
    loop {
        let mut rung = std::pin::pin!(app.fleet.rotation.notified());
        rung.as_mut().enable();
        if app.closing.is_cancelled() {
            return Err(stopping());
        }
        if let Some(slot) = chosen(app, endpoint, affinity)? {
            return Ok(slot);
        }
        waiting.get_or_insert_with(|| Waiting::new(&app.balancer, endpoint));
        tokio::select! {
            () = rung => {}
            () = app.closing.cancelled() => {}
            () = sleep_until(deadline) => return Err(waited_in_vain(app, endpoint, affinity, limit)),
        }
    }
}

fn stopping() -> Refusal {
    Refusal::from(Problem::new(Kind::Unavailable, "the service is stopping"))
}

/// Returns the worker that the request names, else the one with the fewest requests; `None` if the
/// request must wait.
fn chosen(app: &App, endpoint: &str, affinity: &Affinity) -> Result<Option<Slot>, Refusal> {
    let _one_at_a_time = app.balancer.choice.lock().unwrap_or_else(PoisonError::into_inner);
    let workers = app.fleet.workers_of(endpoint);
    let named = |id: &str| workers.iter().find(|worker| worker.id == id);
    match affinity {
        Affinity::Strict(id) => {
            let Some(worker) = named(id).filter(|worker| worker.may_take()) else {
                let message = format!("worker {id} is gone; leave X-Runpod-Worker-Id out");
                let status = StatusCode::NOT_FOUND;
                return Err(Refusal::known(status, "affinity_worker_gone", message));
            };
            return Ok(worker.is_in_rotation().then(|| Slot::of(worker)));
        }
        Affinity::Soft(id) => {
            if let Some(worker) = named(id).filter(|worker| worker.is_in_rotation()) {
                return Ok(Some(Slot::of(worker)));
            }
        }
        Affinity::None => {}
    }
    // Among workers with equally few requests the first one is taken, so that the others can become
    // idle.
    let healthy = workers.iter().filter(|worker| worker.is_in_rotation());
    Ok(healthy.min_by_key(|worker| worker.state().requests).map(Slot::of))
}

fn waited_in_vain(app: &App, endpoint: &str, affinity: &Affinity, limit: Duration) -> Refusal {
    let (status, seconds) = (StatusCode::BAD_REQUEST, limit.as_secs());
    if let Affinity::Strict(id) = affinity {
        let message =
            format!("timed out waiting for worker {id}: it was not healthy in {seconds} s");
        return Refusal::known(status, "worker_timeout", message);
    }
    let counts = app.fleet.counts(endpoint);
    let message = format!(
        "no worker was healthy within {seconds} s ({} start, {} are unhealthy); \
         the logs of the workers tell more",
        counts.initializing, counts.unhealthy
    );
    Refusal::known(status, "no workers available", message)
}
