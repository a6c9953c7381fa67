//! The guard: a process between the service and a worker, which ensures that no worker outlives the
//! service.
//!
//! The service starts each worker through a guard and holds a pipe to the guard. When the service
//! ends in any way, the system closes the pipe, and the guard kills the worker with everything that
//! it started. When the guard itself is killed, the system kills the worker (on Linux).
//!
//! ```text
//! service ──pipe──> guard (own group) ──> worker (own group) ──> whatever it starts
//! ```
//!
//! The byte `t` in the pipe asks the worker to end (SIGTERM). The end of the pipe kills it.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{limits, mounts};

/// The byte that the service writes to ask the worker to end.
pub(crate) const TERMINATE: &[u8] = b"t";

/// The argument that marks the second of the two processes, which becomes the worker.
const EXEC: &str = "--exec";

/// The argument that makes the guard test whether workers can have mounts of their own.
pub(crate) const CAN_MOUNT: &str = "--can-mount";

/// The variable with a command that the guard runs after its worker. The worker does not see it.
pub(crate) const AFTER: &str = "PLUMB_AFTER";

/// The number of tries of that command, and the pause after each try.
const AFTER_TRIES: u32 = 5;
const AFTER_PAUSE: Duration = Duration::from_millis(100);

/// The exit status that shells have for a command that they cannot start.
const CANNOT_START: u8 = 127;

/// Runs a guard process to its end. `arguments` are the worker's command, which follows the command
/// line in [`crate::Options::worker_guard`].
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
    // Kills the processes that the worker has left in its group. Those that it has detached are
    // killed after the command below: an engine may need one of them to remove a container.
    let _gone = kill_process_group(group, Signal::KILL);
    if let Some(after) = std::env::var_os(AFTER) {
        run_after(&after);
    }
    kill_strays();
    ExitCode::from(code)
}

/// Runs a command, a JSON list of its words, and waits for its end. A failed command is tried
/// again, because an engine refuses to remove a container that is just ending.
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

/// Starts this program again, as the process that becomes the worker.
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

/// Asks the system to kill this process when its guard ends, then becomes the worker's command.
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
    // Entering a namespace may have undone the first call.
    if !die_with_parent(&arguments[1]) {
        return ExitCode::from(CANNOT_START);
    }
    let mut program = Command::new(&command[0]);
    let program = program.args(&command[1..]);
    let own = [mounts::MOUNTS, limits::LIMITS, AFTER];
    let error = own.iter().fold(program, |program, name| program.env_remove(name)).exec();
    // The message goes into the worker's log, where people look for it.
    drop(writeln!(std::io::stderr(), "cannot start {}: {error}", command[0].display()));
    ExitCode::from(CANNOT_START)
}

/// Carries out the orders in the pipe from the service until the pipe ends.
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

/// Returns the worker's exit code; 128 plus the number of the signal if one killed it, as shells
/// do.
fn wait(mut child: Child) -> u8 {
    let code = |status: ExitStatus| {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        u8::try_from(code.unwrap_or(1)).unwrap_or(1)
    };
    child.wait().map_or(1, code)
}

#[cfg(target_os = "linux")]
fn subreap() {
    // Processes that a worker detaches become children of the guard, which then can kill them.
    let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn subreap() {}

#[cfg(target_os = "linux")]
fn die_with_parent(guard: &OsString) -> bool {
    use rustix::process::{getppid, set_parent_process_death_signal};
    let set = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // The guard may have ended before the system was asked.
    let parent = getppid().map(|parent| parent.as_raw_pid().to_string());
    set && parent.is_some_and(|parent| guard == parent.as_str())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_guard: &OsString) -> bool {
    true
}

/// Kills the processes that the worker had detached. They have become children of this process.
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

/// Returns the live children of this process.
fn children() -> Vec<Pid> {
    let me = std::process::id().to_string();
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name of the command is in parentheses and may contain any character.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if parent == Some(me.as_str()) && state != Some("Z") {
            children.extend(Pid::from_raw(pid));
        }
    }
    children
}
