//! `plumb serve`: runs the serverless compute service on this machine, in the foreground.

mod key;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use service::{
    Addresses, Options, Quirk, Server, StartError, StoreError, TlsError, TlsFiles, WorkerLimits,
};

use crate::args::{Serve, ServeCommand, ServiceFolder};
use crate::child_service;
use crate::environment::{API_KEY, GRAPHQL_URL, QUEUE_URL, REST_URL, V2_URL};
use crate::error::{CommandError, Status, chain};
use crate::folder::Folder;
use crate::log;
use crate::output::Output;
use crate::runtime;
use crate::signals::stop_or_end;

/// The argument that makes this program the built-in worker.
pub(crate) const ECHO_WORKER: &str = "__echo-worker";
/// The argument that makes this program the guard of a worker, whose command follows.
pub(crate) const WORKER_GUARD: &str = "__worker-guard";

/// The longest wait for another service of the folder to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two checks for the end of that service.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn run(base: &Path, args: &Serve, output: &Output) -> Result<Status, CommandError> {
    // The data, the logs and the files of workers are for this user alone, whatever the shell's umask allows.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    if let Some(ServeCommand::Key(command)) = &args.command {
        return key::run(base, command, output);
    }
    let options = options(base, args)?;
    runtime::wait_for(serve(options, args, output))
}

/// Returns the data folder of a service.
fn data_folder(base: &Path, folder: &ServiceFolder) -> Result<PathBuf, CommandError> {
    match &folder.data {
        Some(data) => Ok(base.join(data)),
        None => Folder::new(base, None)?.service_data(),
    }
}

fn options(base: &Path, args: &Serve) -> Result<Options, CommandError> {
    let mut options = Options::new(data_folder(base, &args.folder)?);
    if let Some(listen) = args.listen {
        options.listen = listen;
    }
    options.key.clone_from(&args.key);
    options.until_idle = args.until_idle;
    options.verbose = log::has_requests();
    if let Some(rate) = &args.rate {
        options.rate.clone_from(rate);
    }
    options.worker_quota = args.worker_quota;
    options.access_log = !args.no_access_log;
    options.timing.finish = Duration::from_secs(args.drain);
    options.refuse_full_volumes = args.full_volumes == "refuse";
    options.job_rates = args.rates == "on";
    options.runtime = args.runtime.parse().map_err(CommandError::new)?;
    options.stream_format = args.stream_format.parse().map_err(CommandError::new)?;
    let origins = args.cors.iter().map(|text| text.parse());
    options.cors = origins.collect::<Result<_, _>>().map_err(CommandError::new)?;
    options.tls = tls_files(base, args);
    options.worker_limits = WorkerLimits {
        memory: args.worker_memory.map(|mebibytes| mebibytes << 20),
        files: args.worker_files,
        cpu_seconds: args.worker_cpu,
    };
    options.quirks =
        Quirk::parse_list(&args.quirks).map_err(|error| CommandError::new(chain(&error)))?;
    let fault = |text: &String| text.parse().map_err(|error| CommandError::new(chain(&error)));
    options.faults = args.fault.iter().map(fault).collect::<Result<_, _>>()?;
    let program = std::env::current_exe()
        .map_err(|error| CommandError::caused("cannot find this program", &error))?;
    let this = |word: &str| vec![program.clone().into_os_string(), word.into()];
    (options.echo_worker, options.worker_guard) = (this(ECHO_WORKER), this(WORKER_GUARD));
    options.log = Arc::new(log::service_line);
    Ok(options)
}

/// Returns the files of the certificate and its key, if both are given.
fn tls_files(base: &Path, args: &Serve) -> Option<TlsFiles> {
    let (certificate, key) = args.tls_cert.as_ref().zip(args.tls_key.as_ref())?;
    Some(TlsFiles { certificate: base.join(certificate), key: base.join(key) })
}

async fn serve(options: Options, args: &Serve, output: &Output) -> Result<Status, CommandError> {
    let fail = |error: &dyn std::error::Error| CommandError::new(chain(error));
    let stop = stop_or_end()?;
    let data = options.data.clone();
    let server = start_when_free(options, args.listen.is_none()).await.map_err(|error| {
        let help = help(&error);
        let failed = match error {
            StartError::Strange(strange) => strange.into(),
            error => fail(&error),
        };
        match help {
            Some(help) => failed.help(help),
            None => failed,
        }
    })?;
    child_service::remember_port(&data, &server.addresses().rest);
    announce(server.addresses(), &data, args, output);
    server.run(stop).await.map_err(|error| fail(&error))?;
    Ok(Status::Done)
}

/// Returns the advice for a service that cannot start.
fn help(error: &StartError) -> Option<&'static str> {
    const FULL: &str = "make room on it, then run the command again";
    const DAMAGED: &str = "bring service.db back from a copy, or move it away with the files -wal and \
                           -shm beside it: the service then starts without its objects and jobs";
    const UNREADABLE: &str = "if the disk is full, make room on it; if service.db is damaged, bring it back \
                              from a copy, or move it away with the files -wal and -shm beside it: the \
                              service then starts without its objects and jobs";
    match error {
        StartError::Locked { .. } => {
            Some("another `plumb serve`, or a command that started one, uses this folder")
        }
        StartError::Tls(TlsError::File { .. }) => {
            Some("--tls-cert and --tls-key name files in PEM; the key must not be encrypted")
        }
        StartError::KeptKey { .. } => Some("remove the file: the service makes a new key"),
        StartError::Store { source: StoreError::Full(_), .. } => Some(FULL),
        StartError::Data { source, .. }
        | StartError::Store { source: StoreError::System(source), .. }
            if source.kind() == ErrorKind::StorageFull =>
        {
            Some(FULL)
        }
        StartError::Store { source: StoreError::Damaged(_), .. } => Some(DAMAGED),
        StartError::Recover { .. } => Some(UNREADABLE),
        _ => None,
    }
}

/// Starts the service once the folder is free. A service that a command started ends soon after that command.
async fn start_when_free(options: Options, anywhere: bool) -> Result<Server, StartError> {
    let patience = if options.until_idle { Duration::ZERO } else { PATIENCE };
    let until = Instant::now() + patience;
    loop {
        match start(options.clone(), anywhere).await {
            Err(StartError::Locked { .. }) if Instant::now() < until => {
                tokio::time::sleep(PAUSE).await;
            }
            started => return started,
        }
    }
}

/// Starts the service at the port of the last time, so that addresses stay valid. With `anywhere`, uses
/// another port if that one is taken.
async fn start(options: Options, anywhere: bool) -> Result<Server, StartError> {
    let usual = child_service::usual_port(&options.data);
    if anywhere && usual != 0 {
        let mut there = options.clone();
        there.listen.set_port(usual);
        match service::start(there).await {
            Err(StartError::Listen { .. }) => {}
            started => return started,
        }
    }
    service::start(options).await
}

/// Prints the addresses of the service. Prints the key only on request, because a terminal or a log would
/// keep it.
fn announce(addresses: &Addresses, data: &Path, args: &Serve, output: &Output) {
    let Addresses { rest, graphql, queue, key, .. } = addresses;
    if args.print_env {
        output.data(&format!(
            "{REST_URL}={rest}\n{GRAPHQL_URL}={graphql}\n{QUEUE_URL}={queue}\n{API_KEY}={key}\n{V2_URL}={queue}\n"
        ));
    } else if !args.until_idle {
        let file = data.join("serve.json");
        output.talk(&format!(
            "REST {rest}, GraphQL {graphql}, jobs {queue}\n\
             the key is in {}; --print-env prints it\n",
            render::safe::text(&file.display().to_string())
        ));
    }
}
