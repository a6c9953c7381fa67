//! What can be typed after `plumb serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// `plumb serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1, and the port of the last time or a free one]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// The folder of its data [default: .plumb/service]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
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
    /// Requests a second that the management APIs take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// The limit on the sum of the endpoints' `workers_max`
    #[arg(long, value_name = "N")]
    pub(crate) worker_quota: Option<u32>,
    /// Seconds for running jobs to finish after a stop request
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) drain: u64,
    /// Treatment of new jobs of an endpoint whose network volume holds more than its size
    #[arg(long, value_name = "WHAT", default_value = "report", value_parser = ["report", "refuse"])]
    pub(crate) full_volumes: String,
    /// Keep no access log
    #[arg(long)]
    pub(crate) no_access_log: bool,
    /// End when nobody needs it any more
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
}
