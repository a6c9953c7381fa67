//! The arguments of `plumb serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `plumb serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// The address to listen on [default: 127.0.0.1, and the port of the last time or a free one]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) folder: ServiceFolder,
    /// The key of the account; else one is made once and kept in the data folder
    #[arg(long, value_name = "KEY", env = crate::environment::SERVICE_KEY, hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// Print the addresses and the key as environment variables
    #[arg(long)]
    pub(crate) print_env: bool,
    /// The form of the answers of /stream; auto: the object for the clients of the real service, the array
    /// of its documents for all others
    #[arg(long, value_name = "FORM", default_value = "auto", value_parser = ["auto", "array", "object"])]
    pub(crate) stream_format: String,
    /// The documented rates of the job API
    #[arg(long, value_name = "SWITCH", default_value = "on", value_parser = ["on", "off"])]
    pub(crate) rates: String,
    /// Departures of the real service from its documents to show, separated by commas: see
    /// docs/service.md
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) quirks: String,
    /// A mishap to make, such as op=saveEndpoint,nth=2,kind=lost: see docs/service.md
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,
    /// Requests that the management APIs take: N a second, or within windows such as
    /// `60/minute,3000/hour,50000/day`
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<service::RateLimits>,
    /// The limit on the sum of the endpoints' `workers_max`
    #[arg(long, value_name = "N")]
    pub(crate) worker_quota: Option<u32>,
    /// Seconds for running jobs to finish after a stop request
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) drain: u64,
    /// Treatment of new jobs of an endpoint whose network volume holds more than its size
    #[arg(long, value_name = "WHAT", default_value = "report", value_parser = ["report", "refuse"])]
    pub(crate) full_volumes: String,
    /// The means by which workers run: processes of this machine, or containers of their images
    #[arg(long, value_name = "RUNTIME", default_value = "process", value_parser = ["process", "docker", "podman"])]
    pub(crate) runtime: String,
    /// An origin whose pages may call the service from a browser, such as `https://app.example.com`, or `*`;
    /// may be given often
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// The certificate that the service shows, in PEM, with those between it and a trusted one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The most memory that each process of a worker may ask for, or a container of one may use, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) worker_memory: Option<u64>,
    /// The most files and connections that each process of a worker may have open
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..))]
    pub(crate) worker_files: Option<u64>,
    /// The CPU time after which a process of a worker is ended
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) worker_cpu: Option<u64>,
    /// Keep no access log
    #[arg(long)]
    pub(crate) no_access_log: bool,
    /// End when nobody needs it any more
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
}

/// The commands below `plumb serve`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Make, list and revoke keys with fewer rights than the key of the account
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb serve key create ci --only jobs\n  plumb serve key list\n  plumb serve key revoke ci"
    )]
    Key(KeyCommand),
}

/// `plumb serve key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and print it
    #[command(
        after_help = "Examples:\n  plumb serve key create dashboard --read-only\n  plumb serve key create ci --only jobs\n  plumb serve key create app --endpoint jpnw0v75y3qoql\n\nThe key is printed once: only its digest is stored. A running service takes it at once."
    )]
    Create(KeyCreate),
    /// List the keys and their rights
    #[command(after_help = "Examples:\n  plumb serve key list\n  plumb serve key list --json")]
    List(KeyList),
    /// Revoke a key
    #[command(
        after_help = "Examples:\n  plumb serve key revoke ci\n\nA running service refuses the key at once. Jobs that were submitted with it go on."
    )]
    Revoke(KeyRevoke),
}

/// `plumb serve key create`.
#[derive(Debug, Args)]
pub(crate) struct KeyCreate {
    /// The name of the key: lowercase letters, digits and hyphens
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Allow only requests that change and take nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Allow one interface only
    #[arg(long, value_name = "INTERFACE", value_parser = ["rest", "graphql", "jobs"])]
    pub(crate) only: Option<String>,
    /// Allow the jobs of this endpoint only
    #[arg(long, value_name = "ID")]
    pub(crate) endpoint: Option<String>,
    #[command(flatten)]
    pub(crate) service: ServiceFolder,
}

/// `plumb serve key list`.
#[derive(Debug, Args)]
pub(crate) struct KeyList {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) service: ServiceFolder,
}

/// `plumb serve key revoke`.
#[derive(Debug, Args)]
pub(crate) struct KeyRevoke {
    /// The name of the key
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) service: ServiceFolder,
}

/// The service that a command is about.
#[derive(Debug, Args)]
pub(crate) struct ServiceFolder {
    /// The data folder of the service [default: .plumb/service]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
}
