//! The measurements of jobs per second, response times, processor time and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use crate::call::Client;
use crate::running::{Processor, Service};

/// Measures the jobs per second from submit to result, prints them, and returns them.
pub(crate) async fn throughput(
    service: &Service,
    endpoints: &[String],
    jobs: usize,
    clients: usize,
) -> f64 {
    let (before, started) = (service.processor(), Instant::now());
    let times = run(service, endpoints, Share { jobs, clients, rate: None }).await;
    let rate = per_second(jobs, started.elapsed());
    let cost = cost(before, service.processor(), jobs);
    let times = shown(times);
    println!(
        "{jobs} jobs, {clients} clients: {rate:.0} jobs/s from submit to result, {times}; {cost}"
    );
    rate
}

/// Measures the time of `/runsync` at a load of `rate` jobs a second.
pub(crate) async fn paced(service: &Service, endpoints: &[String], jobs: usize, rate: f64) {
    let before = service.processor();
    let times = run(service, endpoints, Share { jobs, clients: 64, rate: Some(rate) }).await;
    let cost = cost(before, service.processor(), jobs);
    println!(
        "{jobs} jobs, 64 clients, {rate:.0} jobs/s offered: /runsync {}; {cost}",
        shown(times)
    );
}

/// Measures the time of one request at a time.
pub(crate) async fn times(service: &Service, endpoint: &str, with: &str) {
    let mut client = service.client().await;
    let path = |operation: &str| format!("/v2/{endpoint}/{operation}");
    let body = r#"{"input":{"n":1}}"#;
    let (mut run, mut status, mut runsync) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..1000 {
        let started = Instant::now();
        let made = client.post(&path("run"), body).await;
        run.push(started.elapsed());
        let started = Instant::now();
        client.get(&path(&format!("status/{}", made["id"].as_str().unwrap()))).await;
        status.push(started.elapsed());
        let started = Instant::now();
        client.post(&path("runsync"), body).await;
        runsync.push(started.elapsed());
    }
    for (name, times) in [("/run", run), ("/status", status), ("/runsync", runsync)] {
        println!("{name} with {with}: {}", shown(times));
    }
}

/// Measures the service's memory under a load that lasts for this time.
pub(crate) async fn steady(service: &Service, endpoints: &[String], time: Duration) {
    let (started, before, mut done) = (Instant::now(), service.memory(), 0);
    while started.elapsed() < time {
        run(service, endpoints, Share { jobs: 20_000, clients: 64, rate: None }).await;
        done += 20_000;
        println!("  {:.0?}: {} MB", started.elapsed(), service.memory());
    }
    if done > 0 {
        println!("{done} jobs in {time:.0?}: {before} MB before, {} MB after", service.memory());
    }
}

/// The number of jobs, and the clients that share them.
#[derive(Clone, Copy)]
struct Share {
    jobs: usize,
    clients: usize,
    /// The jobs a second of all clients together. With `None`, each client submits its next job
    /// when it has a result.
    rate: Option<f64>,
}

/// Submits jobs over all endpoints, and returns the time of each.
async fn run(service: &Service, endpoints: &[String], share: Share) -> Vec<Duration> {
    let (next, began) = (Arc::new(AtomicUsize::new(0)), tokio::time::Instant::now());
    let mut clients = Vec::new();
    for number in 0..share.clients {
        let path = format!("/v2/{}/runsync", endpoints[number % endpoints.len()]);
        let (mut client, next) = (service.client().await, Arc::clone(&next));
        clients.push(tokio::spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= share.jobs {
                    return times;
                }
                if let Some(rate) = share.rate {
                    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
                    let due = number as f64 / rate;
                    sleep_until(began + Duration::from_secs_f64(due)).await;
                }
                times.push(one(&mut client, &path, number).await);
            }
        }));
    }
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    times
}

async fn one(client: &mut Client, path: &str, number: usize) -> Duration {
    let started = Instant::now();
    let done = client.post(path, &format!(r#"{{"input":{{"n":{number}}}}}"#)).await;
    let took = started.elapsed();
    assert_eq!(done["output"]["n"], number, "{done}");
    took
}

/// Returns the median and the 99th percentile as a text.
pub(crate) fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let (middle, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    format!("p50 {middle:.1?}, p99 {high:.1?}")
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(crate) fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Returns the processor time of one job as a text.
#[expect(clippy::cast_precision_loss, reason = "a time for people")]
fn cost(before: Processor, after: Processor, jobs: usize) -> String {
    let each = |before: f64, after: f64| (after - before) / jobs as f64 * 1e6;
    format!(
        "processor time of one job: service {:.0} µs, workers {:.0} µs, clients {:.0} µs",
        each(before.service, after.service),
        each(before.workers, after.workers),
        each(before.load, after.load)
    )
}
