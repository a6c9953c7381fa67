//! The options of the service, which the caller sets before it starts.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::log::Log;
use crate::{Fault, Origin, Quirk, RateLimits, TlsFiles, WorkerLimits};

/// The options of a service.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Options {
    /// The address to listen at. The default is loopback; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The data folder: store, key, logs, volumes. One service at a time holds it.
    pub data: PathBuf,
    /// The key of the account. With `None` the service makes a key once and keeps it in the data
    /// folder.
    pub key: Option<String>,
    /// True if the service ends when the last lease closes, or when none arrives within
    /// [`Timing::first_lease`].
    pub until_idle: bool,
    /// The departures from the documents that the service reproduces.
    pub quirks: Vec<Quirk>,
    /// The mishaps that the service makes.
    pub faults: Vec<Fault>,
    /// The form of the answer of `/stream`.
    pub stream_format: StreamFormat,
    /// True if the live log gets a line per request.
    pub verbose: bool,
    /// The function that takes the live log. The service itself never prints.
    pub log: Log,
    /// The most requests that the management APIs take within each window; more are answered 429.
    pub rate: RateLimits,
    /// True if the service keeps `access.log` in the data folder.
    pub access_log: bool,
    /// The origins whose pages may call the service from a browser.
    pub cors: Vec<Origin>,
    /// The certificate of the service; `None` means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Limits on each process of a worker.
    pub worker_limits: WorkerLimits,
    /// The account's limit on the sum of `workersMax`; a change above it is refused as the real
    /// service does. `None` means no limit.
    pub worker_quota: Option<u32>,
    /// The command that runs [`crate::echo_worker_main`], for templates without a command.
    pub echo_worker: Vec<OsString>,
    /// The command that runs [`crate::worker_guard_main`]; the worker's own command is appended.
    pub worker_guard: Vec<OsString>,
    /// The means by which workers run.
    pub runtime: Runtime,
    /// True if the service refuses new jobs of endpoints with a network volume whose files take
    /// more than its size.
    pub refuse_full_volumes: bool,
    /// Every waiting time of the service.
    pub timing: Timing,
    /// True if the job API enforces the documented rates per endpoint and operation.
    pub job_rates: bool,
}

impl Options {
    /// Returns options with the documented defaults, over this data folder.
    pub fn new(data: PathBuf) -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data,
            key: None,
            until_idle: false,
            quirks: Vec::new(),
            faults: Vec::new(),
            stream_format: StreamFormat::Auto,
            verbose: false,
            log: Arc::new(|_| {}),
            rate: RateLimits::default(),
            access_log: true,
            cors: Vec::new(),
            tls: None,
            worker_limits: WorkerLimits::default(),
            worker_quota: None,
            refuse_full_volumes: false,
            echo_worker: Vec::new(),
            worker_guard: Vec::new(),
            runtime: Runtime::Process,
            timing: Timing::default(),
            job_rates: true,
        }
    }
}

impl fmt::Debug for Options {
    /// Writes the options without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("data", &self.data)
            .field("until_idle", &self.until_idle)
            .field("quirks", &self.quirks)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// The means by which workers run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Runtime {
    /// The command of the template, as a process of this machine.
    #[default]
    Process,
    /// A container of the template's image. The value is the client that runs it, which takes the
    /// arguments of `docker`: its name on `PATH`, or its path.
    Container(OsString),
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Runtime, String> {
        match text {
            "process" => Ok(Runtime::Process),
            "docker" | "podman" => Ok(Runtime::Container(text.into())),
            _ => Err(format!("`{text}` is no runtime; there are process, docker and podman")),
        }
    }
}

/// The form of the answer of `/stream`. The interface document shows an array, but clients of the
/// real service expect an object with the job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFormat {
    /// The object for clients whose user agent is one of the real service's; the array for all
    /// others.
    #[default]
    Auto,
    /// `[{"output": …}, …]`
    Array,
    /// `{"status": "IN_PROGRESS", "stream": [{"output": …}, …]}`
    Object,
}

impl FromStr for StreamFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<StreamFormat, String> {
        match text {
            "auto" => Ok(StreamFormat::Auto),
            "array" => Ok(StreamFormat::Array),
            "object" => Ok(StreamFormat::Object),
            _ => Err(format!("`{text}` is not a stream format; there are auto, array and object")),
        }
    }
}

/// Every waiting time of the service. Tests set shorter ones.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The time for the first lease to arrive, with `until_idle`.
    pub first_lease: Duration,
    /// The time for running jobs to finish once the service is told to stop.
    pub finish: Duration,
    /// The time for running requests to finish once the service drains.
    pub drain: Duration,
    /// The time after which a client that reads nothing is cut off.
    pub stall: Duration,
    /// The time between two pings of a worker.
    pub ping_interval: Duration,
    /// The time after which a silent worker counts as lost.
    pub silence: Duration,
    /// The time for a worker from its start to its first call.
    pub worker_start: Duration,
    /// The time between two health checks of a worker that serves HTTP.
    pub health_interval: Duration,
    /// The time after which a worker is replaced whose health checks answer neither 200 nor 204.
    pub unhealthy: Duration,
    /// The time that a request waits for a healthy worker.
    pub worker_wait: Duration,
    /// The time that a request waits for the one worker that it names.
    pub affinity_wait: Duration,
    /// The time for a worker to answer a request, to the end of the answer.
    pub request: Duration,
    /// The time for a worker to finish its jobs when it is asked to stop.
    pub worker_stop: Duration,
    /// The time that results of `/run` are kept.
    pub retention: Duration,
    /// The time that results of `/runsync` are kept, unless the request asks for more with `wait`.
    pub retention_sync: Duration,
    /// The time between two tries of a webhook.
    pub webhook_delay: Duration,
    /// The time limit of one try of a webhook.
    pub webhook_timeout: Duration,
    /// The time that a worker's request for a job is held open.
    pub take_hold: Duration,
    /// The longest time that `/stream` waits for a chunk before its answer is empty.
    pub stream_hold: Duration,
    /// The time between two counts of the bytes in the network volumes.
    pub volume_count: Duration,
    /// The time between two runs of the autoscaler, and of the sweeper.
    pub tick: Duration,
    /// The first pause after a worker crashed; it doubles up to 60 times this value.
    pub crash_pause: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            first_lease: Duration::from_secs(15),
            finish: Duration::from_secs(10),
            drain: Duration::from_secs(3),
            stall: Duration::from_secs(30),
            ping_interval: Duration::from_secs(4),
            silence: Duration::from_secs(20),
            worker_start: Duration::from_mins(10),
            health_interval: Duration::from_secs(1),
            unhealthy: Duration::from_mins(8),
            worker_wait: Duration::from_mins(2),
            affinity_wait: Duration::from_mins(5),
            request: Duration::from_secs(330),
            worker_stop: Duration::from_secs(30),
            retention: Duration::from_mins(30),
            retention_sync: Duration::from_mins(1),
            webhook_delay: Duration::from_secs(10),
            webhook_timeout: Duration::from_secs(10),
            take_hold: Duration::from_mins(1),
            stream_hold: Duration::from_secs(10),
            volume_count: Duration::from_secs(10),
            tick: Duration::from_millis(100),
            crash_pause: Duration::from_secs(1),
        }
    }
}
