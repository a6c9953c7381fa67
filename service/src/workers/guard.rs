//! The guard between the service and a worker: no worker outlives the service.
//!
//! The service starts each worker through a guard and holds a pipe to it. When the service ends,
//! however it ends, the system closes the pipe, and the guard kills the worker with everything
//! that it started. When the guard itself is killed, the system kills the worker (on Linux).
//!
//! ```text
//! service ──pipe──> guard (own group) ──> worker (own group) ──> whatever it starts
//! ```
//!
//! Over the pipe comes `t` to ask the worker to end (SIGTERM); the end of the pipe means: now.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{limits, mounts};

/// What the service writes to ask the worker to end.
pub(crate) const TERMINATE: &[u8] = b"t";

/// Marks the second of the two processes: the one that becomes the worker.
const EXEC: &str = "--exec";

/// Asks whether workers can have mounts of their own.
pub(crate) const CAN_MOUNT: &str = "--can-mount";

/// The variable by which the guard learns of a command to run after its worker. The worker does not
/// see it.
pub(crate) const AFTER: &str = "PLUMB_AFTER";

/// The number of tries of that command, and the pause after each.
const AFTER_TRIES: u32 = 5;
const AFTER_PAUSE: Duration = Duration::from_millis(100);

/// What a shell says of a command that it cannot start.
const CANNOT_START: u8 = 127;

/// The whole life of a guard process. `arguments` are the worker's command, as they stand after
/// the command line in [`crate::Options::worker_guard`].
pub fn worker_guard_main(arguments: Vec<OsString>) -> ExitCode {
    if arguments.first().is_some_and(|first| first == EXEC) {
        return become_worker(arguments);
    }
    if arguments.first().is_some_and(|first| first == CAN_MOUNT) {
        return if mounts::is_allowed() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    subreap();
    let Ok(child) = start(&arguments) else { return ExitCode::from(CANNOT_START) };
    let group = Pid::from_child(&child);
    std::thread::spawn(move || obey(group));
    let code = wait(child);
    // What the worker left behind goes with it. An engine may need a process of these to remove a container.
    let _gone = kill_process_group(group, Signal::KILL);
    if let Some(after) = std::env::var_os(AFTER) {
        run_after(&after);
    }
    kill_strays();
    ExitCode::from(code)
}

/// Runs a command, a JSON list of its words, and waits for its end. It is tried again where it fails: an engine
/// refuses to remove a container that is just ending.
fn run_after(command: &OsString) {
    let words: Vec<String> = serde_json::from_slice(command.as_encoded_bytes()).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else { return };
    let mut command = Command::new(program);
    command.args(arguments).env_remove(AFTER).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for _ in 0..AFTER_TRIES {
        if command.status().is_ok_and(|ended| ended.success()) {
            return;
        }
        std::thread::sleep(AFTER_PAUSE);
    }
}

/// Starts this program again as the process that becomes the worker.
fn start(arguments: &[OsString]) -> std::io::Result<Child> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let own = all.len().saturating_sub(arguments.len()).max(1);
    let program =
        if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    Command::new(program)
        .args(&all[1..own])
        .arg(EXEC)
        .arg(std::process::id().to_string())
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Asks the system to kill this process with its guard, then becomes the worker's command.
fn become_worker(mut arguments: Vec<OsString>) -> ExitCode {
    if arguments.len() < 3 {
        return ExitCode::from(CANNOT_START);
    }
    let command = arguments.split_off(2);
    if !die_with_parent(&arguments[1]) {
        return ExitCode::from(CANNOT_START);
    }
    if let Some(mounts) = std::env::var_os(mounts::MOUNTS)
        && let Err(error) = mounts::enter(&mounts)
    {
        drop(writeln!(std::io::stderr(), "the volumes cannot be mounted: {error}"));
    }
    if let Some(limits) = std::env::var_os(limits::LIMITS)
        && let Err(error) = limits::enter(&limits)
    {
        drop(writeln!(std::io::stderr(), "the limits of the worker cannot be set: {error}"));
        return ExitCode::from(CANNOT_START);
    }
    // A namespace of its own may have taken this back.
    if !die_with_parent(&arguments[1]) {
        return ExitCode::from(CANNOT_START);
    }
    let mut program = Command::new(&command[0]);
    let program = program.args(&command[1..]);
    let own = [mounts::MOUNTS, limits::LIMITS, AFTER];
    let error = own.iter().fold(program, |program, name| program.env_remove(name)).exec();
    // The output of a worker goes into its log: that is where people look for it.
    drop(writeln!(std::io::stderr(), "cannot start {}: {error}", command[0].display()));
    ExitCode::from(CANNOT_START)
}

/// Follows the pipe from the service until it ends.
fn obey(group: Pid) {
    let mut stdin = std::io::stdin().lock();
    let mut order = [0u8; 1];
    loop {
        match stdin.read(&mut order) {
            Ok(1) => {
                let _gone = kill_process_group(group, Signal::TERM);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => {
                let _gone = kill_process_group(group, Signal::KILL);
                kill_strays();
                return;
            }
        }
    }
}

/// The worker's exit code; 128 and the number of the signal that killed it, as shells say it.
fn wait(mut child: Child) -> u8 {
    let code = |status: ExitStatus| {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        u8::try_from(code.unwrap_or(1)).unwrap_or(1)
    };
    child.wait().map_or(1, code)
}

#[cfg(target_os = "linux")]
fn subreap() {
    // Processes that a worker detaches come to the guard instead of running on for ever.
    let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn subreap() {}

#[cfg(target_os = "linux")]
fn die_with_parent(guard: &OsString) -> bool {
    use rustix::process::{getppid, set_parent_process_death_signal};
    let set = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // The guard may have died before the system was asked.
    let parent = getppid().map(|parent| parent.as_raw_pid().to_string());
    set && parent.is_some_and(|parent| guard == parent.as_str())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_guard: &OsString) -> bool {
    true
}

/// Kills what the worker had detached: it has become a child of this process.
fn kill_strays() {
    for _ in 0..50 {
        let strays = children();
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            let _gone = rustix::process::kill_process(stray, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The living children of this process.
fn children() -> Vec<Pid> {
    let me = std::process::id().to_string();
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name of the command stands in brackets and may hold anything.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if parent == Some(me.as_str()) && state != Some("Z") {
            children.extend(Pid::from_raw(pid));
        }
    }
    children
}
