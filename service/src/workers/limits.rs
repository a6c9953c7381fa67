//! Limits on what a worker may use of this machine: the system holds its processes to them.
//!
//! The guard of a worker sets them before it becomes the worker's command; what the worker starts inherits
//! them. Each process counts for itself.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The variable in which the service hands the limits to the guard.
pub(super) const LIMITS: &str = "PLUMB_WORKER_LIMITS";

/// The exit status of a process that has used up its CPU time: 128 and the number of SIGXCPU.
const CPU_TIME_IS_UP: i32 = 128 + 24;
/// The exit statuses of processes that could not go on for want of memory: SIGABRT, SIGKILL, SIGSEGV.
const ABORTED: i32 = 128 + 6;
const KILLED: i32 = 128 + 9;
const FAULTED: i32 = 128 + 11;

/// The time between the two signals of a process that has used up its CPU time, in seconds.
const CPU_GRACE: u64 = 5;

/// Limits on each process of a worker. `None` is the limit that the service itself has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLimits {
    /// The most bytes of memory that the process may ask for. Files that it maps do not count.
    pub memory: Option<u64>,
    /// The most files and connections that it may have open.
    pub files: Option<u64>,
    /// The most seconds of CPU time.
    pub cpu_seconds: Option<u64>,
}

impl WorkerLimits {
    /// Returns true if there is no limit.
    pub(super) fn is_empty(&self) -> bool {
        *self == WorkerLimits::default()
    }

    /// Returns the limit that a process may have ended of, for people. The system does not say it.
    pub(super) fn likely_cause(&self, ended: ExitStatus) -> Option<String> {
        // The guard says of a signal what shells say: 128 and its number.
        match (ended.code()?, self.cpu_seconds, self.memory) {
            (CPU_TIME_IS_UP, Some(seconds), _) => {
                Some(format!("it has used up its {seconds} s of CPU time"))
            }
            (ABORTED | KILLED | FAULTED, _, Some(bytes)) => {
                Some(format!("its memory is limited to {} MiB", bytes >> 20))
            }
            _ => None,
        }
    }
}

/// Holds this process to the limits that the service handed over.
pub(super) fn enter(text: &OsStr) -> io::Result<()> {
    let limits: WorkerLimits = serde_json::from_slice(text.as_encoded_bytes())?;
    if let Some(bytes) = limits.memory {
        lower(Resource::Data, bytes, bytes)?;
    }
    if let Some(files) = limits.files {
        lower(Resource::Nofile, files, files)?;
    }
    if let Some(seconds) = limits.cpu_seconds {
        lower(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE))?;
    }
    Ok(())
}

/// Sets a limit, but none above the one that there is.
fn lower(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let bound = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(current.min(bound)), maximum: Some(maximum.min(bound)) };
    Ok(setrlimit(resource, limit)?)
}
