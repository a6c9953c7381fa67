//! What the process does when it is asked to stop, by Ctrl-C or by SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CommandError;

/// The signals that ask a process to stop.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    /// From here on they no longer end the process by themselves.
    fn listen() -> Result<Self, CommandError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CommandError::caused("cannot listen for signals", &error))
        };
        let (interrupt, terminate) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! { _ = self.interrupt.recv() => {}, _ = self.terminate.recv() => {} }
    }
}

/// A token that fires at the first of them.
pub(crate) fn stop_on_signal() -> Result<CancellationToken, CommandError> {
    stop_or_end(|| {})
}

/// The same; at the second of them `end` is called, which may end the process.
pub(crate) fn stop_or_end(
    end: impl FnOnce() + Send + 'static,
) -> Result<CancellationToken, CommandError> {
    let mut stops = Stops::listen()?;
    let stop = CancellationToken::new();
    let fired = stop.clone();
    tokio::spawn(async move {
        stops.next().await;
        fired.cancel();
        stops.next().await;
        end();
    });
    Ok(stop)
}
