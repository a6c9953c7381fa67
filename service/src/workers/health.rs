//! The health checks of a worker that serves HTTP. 200 means that it takes requests, 204 that it
//! initializes, and any other answer that it takes none.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CONNECTION, HOST};
use http_body_util::Empty;
use hyper::Request;
use tokio::time::{sleep, timeout};

use super::http_server::{Health, HttpServer, connect};
use super::worker::Worker;
use crate::app::App;

/// The time for a worker to answer a health check.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest pause between two checks of a worker that does not take requests.
const STARTING_PAUSE: Duration = Duration::from_millis(250);

/// Checks a worker as long as its process lives.
pub(super) async fn watch(app: Arc<App>, worker: Arc<Worker>) {
    let Some(server) = worker.server.get() else { return };
    let interval = app.options.timing.health_interval;
    while worker.alive.load(SeqCst) {
        let health = ask(server).await;
        match health {
            Health::Healthy => worker.is_ready(),
            Health::Initializing => worker.initializes(),
            Health::Silent | Health::Unhealthy(_) => {}
        }
        if server.set_health(health) != health {
            app.fleet.rotation.notify_waiters();
            app.say(&format!("worker {} {}", worker.id, described(health, server)));
        }
        let is_healthy = health == Health::Healthy;
        sleep(if is_healthy { interval } else { interval.min(STARTING_PAUSE) }).await;
    }
}

async fn ask(server: &HttpServer) -> Health {
    match timeout(ANSWER_TIMEOUT, status(server)).await {
        Ok(Ok(200)) => Health::Healthy,
        Ok(Ok(204)) => Health::Initializing,
        Ok(Ok(status)) => Health::Unhealthy(status),
        Ok(Err(_)) | Err(_) => Health::Silent,
    }
}

async fn status(server: &HttpServer) -> io::Result<u16> {
    let (mut sender, connection) = connect::<Empty<Bytes>>(server.health_port()).await?;
    let host = format!("127.0.0.1:{}", server.health_port());
    let request = Request::get(&server.health_path).header(HOST, host).header(CONNECTION, "close");
    let request = request.body(Empty::new()).map_err(io::Error::other)?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    let response = tokio::select! {
        answered = &mut answer => answered,
        _ = connection => answer.await,
    };
    Ok(response.map_err(io::Error::other)?.status().as_u16())
}

fn described(health: Health, server: &HttpServer) -> String {
    let path = &server.health_path;
    match health {
        Health::Healthy => "is healthy: it gets requests".to_owned(),
        Health::Initializing => format!("initializes: {path} answers 204"),
        Health::Unhealthy(status) => format!("gets no requests: {path} answers {status}"),
        Health::Silent => {
            format!("gets no requests: {path} does not answer at port {}", server.health_port())
        }
    }
}
