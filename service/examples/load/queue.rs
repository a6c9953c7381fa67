//! The measurement of a long queue: its memory, a start with it, and a purge of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crate::running::Service;
use crate::{ENDPOINTS, WORKERS, figures};

/// The number of jobs that are purged.
const PURGED: usize = 100_000;

/// Measures with so many jobs in the queue of an endpoint without workers. Returns the service that
/// runs afterwards.
pub(crate) async fn measure(
    service: Service,
    folder: &Path,
    endpoints: &[String],
    queued: usize,
) -> Service {
    let parked = service.endpoint("parked", 0).await;
    let started = Instant::now();
    fill(&service, &parked, queued).await;
    let rate = figures::per_second(queued, started.elapsed());
    println!("{queued} jobs queued: {rate:.0}/s, {} MB", service.memory());
    figures::times(&service, &endpoints[0], "those in the queue of another endpoint").await;
    figures::throughput(&service, endpoints, 20_000, 64).await;
    println!("{} MB", service.memory());
    drop(service);
    let started = Instant::now();
    let service = Service::start(folder).await;
    println!("start over {queued} queued jobs: {:.2?}, {} MB", started.elapsed(), service.memory());
    for endpoint in endpoints {
        service.staffed(endpoint, WORKERS / ENDPOINTS).await;
    }
    let purged = service.endpoint("purged", 0).await;
    fill(&service, &purged, PURGED).await;
    purge(&service, &purged, &endpoints[0]).await;
    println!("{} MB", service.memory());
    service
}

/// Measures a purge of one endpoint while another endpoint serves jobs.
async fn purge(service: &Service, purged: &str, other: &str) {
    let (mut client, mut bystander) = (service.client().await, service.client().await);
    let path = format!("/v2/{other}/runsync");
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let beside = tokio::spawn(async move {
        let mut times = Vec::new();
        while !told.load(Relaxed) || times.len() < 1000 {
            let started = Instant::now();
            bystander.post(&path, r#"{"input":{}}"#).await;
            times.push(started.elapsed());
        }
        times
    });
    let started = Instant::now();
    let answer = client.post(&format!("/v2/{purged}/purge-queue"), "").await;
    let took = started.elapsed();
    over.store(true, Relaxed);
    let times = beside.await.unwrap();
    let worst = times.iter().max().unwrap();
    println!(
        "purge of {}: {took:.2?}; /runsync beside it {}, at most {worst:.1?}",
        answer["removed"],
        figures::shown(times.clone())
    );
}

/// Submits so many jobs with 64 clients.
async fn fill(service: &Service, endpoint: &str, count: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for _ in 0..64 {
        let (mut client, next) = (service.client().await, Arc::clone(&next));
        let path = format!("/v2/{endpoint}/run");
        clients.push(tokio::spawn(async move {
            while next.fetch_add(1, Relaxed) < count {
                client.post(&path, r#"{"input":{}}"#).await;
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}
