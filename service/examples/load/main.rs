//! A load program: measures the job API on this machine with real workers.
//!
//! ```text
//! cargo run --release -p service --example load [JOBS] [QUEUED] [SECONDS]
//! ```
//!
//! The program starts a service in a process of its own, with eight echo workers behind four
//! endpoints. It measures over real sockets: jobs per second from submit to result, and the
//! processor time of each; the time of `/runsync` at half of that load; the time of one request at
//! a time; the same with QUEUED jobs in the queue, a start with this queue, and a purge of 100,000
//! jobs; the memory of many connections; and the memory under a load of SECONDS. A 0 leaves its
//! part out.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people")]

mod call;
mod crowd;
mod figures;
mod queue;
mod running;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use service::{Options, echo_worker_main, worker_guard_main};
use tokio_util::sync::CancellationToken;

/// The allocator of the `plumb` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KEY: &str = "load";
const WORKERS: usize = 8;
const ENDPOINTS: usize = 4;

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
            let seconds = Duration::from_secs(u64::try_from(number(2, 20)).unwrap());
            runtime().block_on(measure(number(0, 20_000), number(1, 100_000), seconds));
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
    options.access_log = std::env::var_os("ACCESS_LOG").is_some();
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

async fn measure(jobs: usize, queued: usize, seconds: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let service = running::Service::start(folder.path()).await;
    let mut endpoints = Vec::new();
    for number in 0..ENDPOINTS {
        endpoints.push(service.endpoint(&format!("load{number}"), WORKERS / ENDPOINTS).await);
    }
    println!("{WORKERS} echo workers, {} MB at start", service.memory());
    if jobs > 0 {
        let mut most = 0.0;
        for clients in [1, 8, 64] {
            most = figures::throughput(&service, &endpoints, jobs, clients).await;
        }
        figures::paced(&service, &endpoints, jobs, most / 2.0).await;
        figures::times(&service, &endpoints[0], "an empty queue").await;
    }
    let service = match queued {
        0 => service,
        _ => queue::measure(service, folder.path(), &endpoints, queued).await,
    };
    crowd::measure(&service, &endpoints[0]).await;
    figures::steady(&service, &endpoints, seconds).await;
}
