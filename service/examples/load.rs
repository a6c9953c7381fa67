//! How fast the job API is, on this machine, with real workers.
//!
//! ```text
//! cargo run --release -p service --example load [JOBS] [QUEUED] [SECONDS]
//! ```
//!
//! Starts a service in a process of its own with eight echo workers and measures, over real
//! sockets: jobs per second from submit to result; the time of one `/run`, `/status` and
//! `/runsync`; the same with QUEUED jobs in the queue; and the service's memory over a load of
//! SECONDS (0 leaves that out).

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

use std::ffi::OsString;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use service::{Options, echo_worker_main, worker_guard_main};
use tokio_util::sync::CancellationToken;

const KEY: &str = "load";
const WORKERS: usize = 8;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = arguments.first().and_then(|first| first.to_str()).unwrap_or("").to_owned();
    match command.as_str() {
        "guard" => worker_guard_main(arguments.split_off(1)),
        "echo" => echo_worker_main(),
        "serve" => serve(arguments.remove(1)),
        _ => {
            let number = |at: usize, default: usize| {
                let text = arguments.get(at).and_then(|text| text.to_str());
                text.map_or(default, |text| text.parse().unwrap())
            };
            let load = Load { jobs: number(0, 20_000), queued: number(1, 100_000) };
            let seconds = u64::try_from(number(2, 20)).unwrap();
            runtime().block_on(measure(load, Duration::from_secs(seconds)));
            ExitCode::SUCCESS
        }
    }
}

fn serve(data: OsString) -> ExitCode {
    let me = std::env::current_exe().unwrap().into_os_string();
    let mut options = Options::new(data.into());
    options.key = Some(KEY.to_owned());
    options.worker_guard = vec![me.clone(), "guard".into()];
    options.echo_worker = vec![me, "echo".into()];
    options.job_rates = false;
    options.access_log = false;
    runtime().block_on(async {
        let server = service::start(options).await.unwrap();
        server.run(CancellationToken::new()).await.unwrap();
    });
    ExitCode::SUCCESS
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

struct Load {
    jobs: usize,
    queued: usize,
}

struct Service {
    child: Child,
    client: Client,
    queue: String,
    rest: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Service {
    async fn start(folder: &std::path::Path) -> Service {
        drop(rustls::crypto::ring::default_provider().install_default());
        let me = std::env::current_exe().unwrap();
        let child = Command::new(me).arg("serve").arg(folder).spawn().unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut service = Service { child, client, queue: String::new(), rest: String::new() };
        while service.queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Ok(text) = std::fs::read(folder.join("serve.json")) else { continue };
            let told: Value = serde_json::from_slice(&text).unwrap();
            told["queue_url"].as_str().unwrap().clone_into(&mut service.queue);
            told["rest_url"].as_str().unwrap().clone_into(&mut service.rest);
        }
        service
    }

    async fn post(&self, url: String, body: &Value) -> Value {
        let sent = self.client.post(url).bearer_auth(KEY).json(body).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
        sent.json().await.unwrap()
    }

    async fn get(&self, url: String) -> Value {
        self.client.get(url).bearer_auth(KEY).send().await.unwrap().json().await.unwrap()
    }

    async fn endpoint(&self, name: &str, workers: usize) -> String {
        let template = json!({ "name": name, "imageName": "echo", "isServerless": true });
        let template = self.post(format!("{}/templates", self.rest), &template).await;
        let body = json!({ "name": name, "templateId": template["id"], "workersMin": workers,
            "workersMax": workers, "gpuTypeIds": ["NVIDIA L4"] });
        let made = self.post(format!("{}/endpoints", self.rest), &body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    async fn health(&self, endpoint: &str) -> Value {
        self.get(format!("{}/{endpoint}/health", self.queue)).await
    }

    /// The memory of the service's process, in megabytes.
    fn memory(&self) -> String {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: ?");
        line.trim_start_matches("VmRSS:").trim().to_owned()
    }
}

async fn measure(load: Load, load_time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let service = Arc::new(Service::start(folder.path()).await);
    let endpoint = service.endpoint("load", WORKERS).await;
    while service.health(&endpoint).await["workers"]["idle"] != WORKERS {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{WORKERS} echo workers, {} at start", service.memory());
    for clients in [1, 8, 64] {
        throughput(&service, &endpoint, load.jobs, clients).await;
    }
    times(&service, &endpoint, "an empty queue").await;
    let parked = service.endpoint("parked", 0).await;
    let started = Instant::now();
    concurrently(&service, load.queued, 64, move |service, _| {
        let url = format!("{}/{parked}/run", service.queue);
        async move { drop(service.post(url, &json!({ "input": {} })).await) }
    })
    .await;
    let rate = rate(load.queued, started.elapsed());
    println!("{} jobs queued: {rate}/s, {}", load.queued, service.memory());
    times(&service, &endpoint, "those in the queue of another endpoint").await;
    throughput(&service, &endpoint, load.jobs, 64).await;
    steady(&service, &endpoint, load_time).await;
}

/// Jobs per second from submit to result.
async fn throughput(service: &Arc<Service>, endpoint: &str, jobs: usize, clients: usize) {
    let started = Instant::now();
    let endpoint = endpoint.to_owned();
    concurrently(service, jobs, clients, move |service, number| {
        let url = format!("{}/{endpoint}/runsync", service.queue);
        async move {
            let done = service.post(url, &json!({ "input": { "n": number } })).await;
            assert_eq!(done["output"]["n"], number, "{done}");
        }
    })
    .await;
    let rate = rate(jobs, started.elapsed());
    println!("{jobs} jobs, {clients} clients: {rate} jobs/s from submit to result");
}

/// The time of one request at a time.
async fn times(service: &Arc<Service>, endpoint: &str, with: &str) {
    let url = |operation: &str| format!("{}/{endpoint}/{operation}", service.queue);
    let body = json!({ "input": { "n": 1 } });
    let (mut run, mut status, mut runsync) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..1000 {
        let started = Instant::now();
        let made = service.post(url("run"), &body).await;
        run.push(started.elapsed());
        let started = Instant::now();
        service.get(url(&format!("status/{}", made["id"].as_str().unwrap()))).await;
        status.push(started.elapsed());
        let started = Instant::now();
        service.post(url("runsync"), &body).await;
        runsync.push(started.elapsed());
    }
    for (name, mut times) in [("/run", run), ("/status", status), ("/runsync", runsync)] {
        times.sort();
        println!("{name} with {with}: p50 {:.1?}, p99 {:.1?}", times[500], times[990]);
    }
}

/// The service's memory under a load that does not end.
async fn steady(service: &Arc<Service>, endpoint: &str, time: Duration) {
    let started = Instant::now();
    let before = service.memory();
    let done = Arc::new(AtomicUsize::new(0));
    while started.elapsed() < time {
        let (endpoint, done) = (endpoint.to_owned(), Arc::clone(&done));
        concurrently(service, 5000, 64, move |service, number| {
            let url = format!("{}/{endpoint}/runsync", service.queue);
            done.fetch_add(1, Relaxed);
            async move { drop(service.post(url, &json!({ "input": { "n": number } })).await) }
        })
        .await;
        println!("  {:.0?}: {}", started.elapsed(), service.memory());
    }
    println!(
        "{} jobs in {time:.0?}: {before} before, {} after",
        done.load(Relaxed),
        service.memory()
    );
}

async fn concurrently<F>(
    service: &Arc<Service>,
    count: usize,
    clients: usize,
    work: impl Fn(Arc<Service>, usize) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            let (service, next, work) = (Arc::clone(service), Arc::clone(&next), Arc::clone(&work));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= count {
                        return;
                    }
                    work(Arc::clone(&service), number).await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(count: usize, time: Duration) -> String {
    format!("{:.0}", count as f64 / time.as_secs_f64())
}
