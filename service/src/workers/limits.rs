//! The limits on a worker's use of this machine. The system enforces them.
//!
//! The guard sets the limits before it becomes the worker's command, and processes that the worker
//! starts inherit them. Each process is limited by itself.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The variable with the limits, which the service sets for the guard.
pub(super) const LIMITS: &str = "PLUMB_WORKER_LIMITS";

/// The exit status of a process that has used up its CPU time: 128 and the number of SIGXCPU.
const CPU_TIME_IS_UP: i32 = 128 + 24;
/// The exit statuses of processes that had too little memory: SIGABRT, SIGKILL, SIGSEGV.
const ABORTED: i32 = 128 + 6;
const KILLED: i32 = 128 + 9;
const FAULTED: i32 = 128 + 11;

/// The seconds between the two signals to a process that has used up its CPU time.
const CPU_GRACE: u64 = 5;

/// The limits on each process of a worker. `None` leaves the limit that the service itself has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLimits {
    /// The most bytes of memory that a process may ask for. Mapped files do not count.
    pub memory: Option<u64>,
    /// The most open files and connections of a process.
    pub files: Option<u64>,
    /// The most seconds of CPU time of a process.
    pub cpu_seconds: Option<u64>,
}

impl WorkerLimits {
    /// Returns true if there is no limit.
    pub(super) fn is_empty(&self) -> bool {
        *self == WorkerLimits::default()
    }

    /// Returns the limit that a process may have reached, as a text for people; `None` if there is
    /// no such limit. The system does not report the limit, so it is inferred from the exit status.
    pub(super) fn likely_cause(&self, ended: ExitStatus) -> Option<String> {
        // For a signal, the guard's exit status is 128 plus its number, as that of shells.
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

/// Sets the limits that the service handed over for this process.
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

/// Sets a limit, but none above the present one.
fn lower(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let bound = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(current.min(bound)), maximum: Some(maximum.min(bound)) };
    Ok(setrlimit(resource, limit)?)
}
