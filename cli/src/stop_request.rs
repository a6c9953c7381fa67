//! The handling of requests to stop, for commands that plan and apply: before they began anything, while they
//! run, and at the second request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::signals;

/// The time in which a command that began nothing may end by itself and release its lock. A command that
/// computes, or writes to a full stream, does not notice the request.
const GRACE: Duration = Duration::from_secs(1);

/// The longest time for the last message, because its stream may be full.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The state of a request to stop.
///
/// As long as the command has begun nothing, there is nothing to finish, so a request ends the process soon,
/// whatever it does. After [`Stopping::begin`], the process ends when the calls under way have ended. A
/// second request ends it at once; the next run then looks the calls up from the journal.
#[derive(Clone)]
pub(crate) struct Stopping {
    token: CancellationToken,
    begun: Arc<Mutex<bool>>,
    output: Arc<Output>,
}

impl Stopping {
    /// Starts to listen for requests to stop.
    pub(crate) fn listen(output: &Arc<Output>) -> Result<Self, CommandError> {
        let (token, output) = (CancellationToken::new(), Arc::clone(output));
        let stopping = Self { token, begun: Arc::default(), output };
        let listening = stopping.clone();
        signals::listen(move || listening.asked())?;
        Ok(stopping)
    }

    /// Returns the token that fires when the command is asked to stop.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Marks that the command begins something that has to be finished. Fails if it was asked to stop before.
    pub(crate) fn begin(&self) -> Result<(), CommandError> {
        let mut begun = self.begun();
        if self.token.is_cancelled() {
            return Err(stopped());
        }
        *begun = true;
        Ok(())
    }

    /// Waits for `work`. Fails if the command is asked to stop.
    pub(crate) async fn unless<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            done = work => done,
            () = self.token.cancelled() => Err(stopped()),
        }
    }

    fn begun(&self) -> MutexGuard<'_, bool> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a request to stop the process.
    fn asked(&self) {
        let begun = self.begun();
        if self.token.is_cancelled() {
            self.end_at_once(*begun);
        }
        self.token.cancel();
        if !*begun {
            let this = self.clone();
            // If there is no such thread, only a second request ends the process.
            drop(std::thread::Builder::new().spawn(move || {
                std::thread::sleep(GRACE);
                this.end_at_once(false);
            }));
        }
    }

    fn end_at_once(&self, begun: bool) -> ! {
        let (said, saying) = mpsc::channel::<()>();
        let output = Arc::clone(&self.output);
        let speaker = std::thread::Builder::new().spawn(move || {
            if begun {
                output
                    .talk("stopped at once; the next `plumb apply` looks up what was under way\n");
            } else {
                output.error(&stopped());
            }
            drop(said);
        });
        if speaker.is_ok() {
            // The speaker sends nothing. This call returns when the speaker has finished and dropped its
            // sender.
            saying.recv_timeout(LAST_WORDS).ok();
        }
        // Calls that were under way are in doubt.
        let is_idle = self.output.under_way().is_empty();
        signals::end(if is_idle { Status::Cancelled } else { Status::InDoubt })
    }
}

fn stopped() -> CommandError {
    CommandError::new("stopped before anything was begun").status(Status::Cancelled)
}
