//! The signals that ask the process to stop: Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is
//! closed.
//!
//! A separate thread listens, so that a signal is noticed even while the process computes a large plan or
//! writes to a pipe that nobody reads. The caller of [`listen`] decides what follows; [`crate::stop_request`]
//! does so for commands that plan and apply.

use std::sync::mpsc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, Status};

/// SIGXFSZ. It comes when a file may not grow (`ulimit -f`), and ends a process that does not listen for it.
/// Linux on common machines, macOS and the BSDs use this number for it.
const FILE_MAY_NOT_GROW: i32 = 25;

/// The signals that ask a process to stop.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Stops {
    /// Starts to listen. From then on, these signals no longer end the process by themselves.
    fn listen() -> std::io::Result<Self> {
        // A process that was started with `nohup` is to outlive its terminal.
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        // No task waits for this signal: the write fails instead, as on a full disk, and that error is
        // reported.
        drop(signal(SignalKind::from_raw(FILE_MAY_NOT_GROW))?);
        let (interrupt, terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {},
            _ = self.terminate.recv() => {},
            _ = hangup => {},
        }
    }
}

/// Returns true if the process was started with SIGHUP ignored. Also true if the system does not say so: then
/// the signal keeps its effect.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, SignalKind::hangup().as_raw_value()).unwrap_or(true)
}

/// Returns true if a signal is ignored, according to the status of a process.
fn is_ignored(status: &str, number: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some((mask >> (u32::try_from(number).ok()?.checked_sub(1)?)) & 1 == 1)
}

/// Calls `asked` each time that the process is asked to stop, from a thread of its own.
pub(crate) fn listen(asked: impl FnMut() + Send + 'static) -> Result<(), CommandError> {
    let cannot = |error: &std::io::Error| CommandError::caused("cannot listen for signals", error);
    let (ready, listening) = mpsc::channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || listener(&ready, asked))
        .map_err(|error| cannot(&error))?;
    match listening.recv() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(cannot(&error)),
        Err(_) => Err(CommandError::new("cannot listen for signals")),
    }
}

fn listener(ready: &mpsc::Sender<Option<std::io::Error>>, mut asked: impl FnMut()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let listened = runtime.and_then(|runtime| {
        let stops = runtime.block_on(async { Stops::listen() })?;
        Ok((runtime, stops))
    });
    match listened {
        Ok((runtime, mut stops)) => {
            // If nobody receives this, the caller has gone.
            ready.send(None).ok();
            loop {
                runtime.block_on(stops.next());
                asked();
            }
        }
        Err(error) => drop(ready.send(Some(error))),
    }
}

/// Returns a token that fires when the process is asked to stop. A second request ends the process at once.
pub(crate) fn stop_or_end() -> Result<CancellationToken, CommandError> {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    listen(move || {
        if fired.is_cancelled() {
            end(Status::Cancelled);
        }
        fired.cancel();
    })?;
    Ok(stop)
}

/// Ends the process at once.
#[expect(clippy::exit, reason = "it was asked to, and whoever is busy cannot be told")]
pub(crate) fn end(status: Status) -> ! {
    std::process::exit(i32::from(status.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_known() {
        let status = "Name:\tplumb\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(is_ignored(status, 1), Some(true));
        assert_eq!(is_ignored(status, 2), Some(false));
        assert_eq!(is_ignored(status, 13), Some(true));
        assert_eq!(is_ignored("Name:\tplumb\n", 1), None);
    }
}
