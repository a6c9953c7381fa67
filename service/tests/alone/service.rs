//! The service without the rest of Plumb, for tests that kill it and for the benchmark.
//!
//! `service-alone serve DATA [KEY]`, and the two commands that this service uses to start workers.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use service::{Options, Runtime, StreamFormat, echo_worker_main, worker_guard_main};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.is_empty() {
        return ExitCode::FAILURE;
    }
    let command = arguments.remove(0);
    match command.to_str() {
        Some("guard") => worker_guard_main(arguments),
        Some("echo") => echo_worker_main(),
        Some("serve") => serve(&arguments),
        _ => ExitCode::FAILURE,
    }
}

fn serve(arguments: &[OsString]) -> ExitCode {
    let Some(data) = arguments.first() else { return ExitCode::FAILURE };
    let mut options = Options::new(data.into());
    options.key = arguments.get(1).and_then(|key| key.to_str()).map(str::to_owned);
    let me = || std::env::current_exe().map(OsString::from).unwrap_or_default();
    options.echo_worker = vec![me(), "echo".into()];
    options.worker_guard = vec![me(), "guard".into()];
    options.stream_format = StreamFormat::Object;
    if let Some(client) = std::env::var_os("SERVICE_ENGINE") {
        options.runtime = Runtime::Container(client);
    }
    options.job_rates = std::env::var_os("SERVICE_NO_RATES").is_none();
    options.access_log = options.job_rates;
    options.timing.crash_pause = Duration::from_millis(100);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let ended = runtime.block_on(async {
        let server = service::start(options).await.map_err(drop)?;
        server.run(CancellationToken::new()).await.map_err(drop)
    });
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
