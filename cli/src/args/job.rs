//! The arguments of `plumb job`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::shared::{SpecArgs, duration};

/// `plumb job`.
#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Submit a job, wait for it, and print its output
    #[command(
        after_help = "Examples:\n  plumb job run endpoint.chat '{\"prompt\": \"hi\"}'\n  plumb job run 'endpoint.chat[eu]' --input-file job.json --timeout 5m\n  plumb job run jpnw0v75y3qoql - < job.json\n\nExit status 0 when the job completed, 1 when it failed, timed out or was cancelled. Ctrl-C leaves the job running, prints its id, and exits with 130. If Ctrl-C or --timeout comes while the job is being submitted, the command waits two more seconds for the answer; exit status 4 says that none came, so the job may exist or not."
    )]
    Run(Run),
    /// Submit a job and print its id
    #[command(
        after_help = "Examples:\n  plumb job submit endpoint.chat '{\"prompt\": \"hi\"}'\n  plumb job submit endpoint.chat --input-file job.json --ttl 1h --low-priority\n\nThe job is stored before its id is printed. The service on this machine ends with the last command that needs it, and continues with the job when it runs again: `plumb job status --wait` waits for the job, `plumb serve` keeps the service running."
    )]
    Submit(Submit),
    /// Show how a job is
    #[command(
        after_help = "Examples:\n  plumb job status endpoint.chat 724907fe-0b3d-4f3c-u1\n  plumb job status endpoint.chat 724907fe-0b3d-4f3c-u1 --wait --json\n\nExit status 1 when the job failed, timed out or was cancelled."
    )]
    Status(Status),
    /// Print what a job streams, as it comes
    #[command(
        after_help = "Examples:\n  plumb job stream endpoint.chat 724907fe-0b3d-4f3c-u1\n\nOne part a line, as JSON. The service gives each part only once."
    )]
    Stream(One),
    /// Stop a job, or take it out of the queue
    #[command(after_help = "Examples:\n  plumb job cancel endpoint.chat 724907fe-0b3d-4f3c-u1")]
    Cancel(One),
    /// Put a job that failed or timed out into the queue again
    #[command(
        after_help = "Examples:\n  plumb job retry endpoint.chat 724907fe-0b3d-4f3c-u1\n\nIt keeps its id and its input; what it answered before is dropped."
    )]
    Retry(One),
    /// Take all waiting jobs out of the queue
    #[command(
        after_help = "Examples:\n  plumb job purge endpoint.chat\n\nJobs in progress keep running."
    )]
    Purge(All),
    /// Show how many jobs and workers there are, by what they do
    #[command(
        after_help = "Examples:\n  plumb job health endpoint.chat\n  plumb job health endpoint.chat --json"
    )]
    Health(All),
    /// Print what workers said, for the service on this machine
    #[command(
        after_help = "Examples:\n  plumb job logs endpoint.chat\n  plumb job logs endpoint.chat --worker xedezhzb9la3ye\n  plumb job logs endpoint.chat --data /tmp/service"
    )]
    Logs(Logs),
}

/// The endpoint of a command about jobs.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The address of an endpoint in the state, such as endpoint.chat, or an endpoint's id
    #[arg(value_name = "ENDPOINT")]
    pub(crate) endpoint: String,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// `plumb job purge` and `plumb job health`.
#[derive(Debug, Args)]
pub(crate) struct All {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of the commands about one job.
#[derive(Debug, Args)]
pub(crate) struct One {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The id of the job
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `plumb job status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) one: One,
    /// Wait for its end
    #[arg(long)]
    pub(crate) wait: bool,
    /// The longest time to wait, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
}

/// The job to submit, and its options.
#[derive(Debug, Args)]
pub(crate) struct Input {
    /// The input, as JSON; - reads it from stdin
    #[arg(value_name = "INPUT", conflicts_with = "file")]
    pub(crate) text: Option<String>,
    /// Read the input from a file
    #[arg(long = "input-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// An address that the service tells when the job has ended
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Option<String>,
    /// The longest time that the job may run once a worker has it: 5s to 7 days
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) execution_timeout: Option<Duration>,
    /// The time after which the job is deleted, even while it runs: 10s to 7 days
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
    /// Object storage for the worker: a file with a JSON object of accessId, accessSecret,
    /// bucketName and endpointUrl
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) s3_config: Option<PathBuf>,
    /// Start no worker for it
    #[arg(long)]
    pub(crate) low_priority: bool,
}

/// `plumb job submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `plumb job run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) submit: Submit,
    /// The longest time to wait for the job's end, such as 30s or 5m; the job itself goes on
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Submit with /runsync: takes up to 20 MB, and its result is kept for a minute only
    #[arg(long)]
    pub(crate) sync: bool,
}

/// `plumb job logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Only this worker's
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
    /// The data folder of `plumb serve` [default: .plumb/service]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
}
