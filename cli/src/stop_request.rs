//! The way to stop a command that plans and applies: before it began anything, while it runs, and at the second
//! request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::signals;

/// The time that a command that began nothing has to end by itself, and to release its lock. A busy command, or
/// one that writes to a full stream, does not notice the request.
const GRACE: Duration = Duration::from_secs(1);

/// The longest time for the last message. Its stream may be full.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The state of a request to stop.
///
/// Before anything was begun there is nothing to bring to an end, so the process ends soon, whatever
/// it is at. From [`Stopping::begin`] on it ends when what is under way has ended; asked again, at
/// once, which the journal is made for.
#[derive(Clone)]
pub(crate) struct Stopping {
    token: CancellationToken,
    begun: Arc<Mutex<bool>>,
    output: Arc<Output>,
}

impl Stopping {
    /// Listens from here on.
    pub(crate) fn listen(output: &Arc<Output>) -> Result<Self, CommandError> {
        let (token, output) = (CancellationToken::new(), Arc::clone(output));
        let stopping = Self { token, begun: Arc::default(), output };
        let listening = stopping.clone();
        signals::listen(move || listening.asked())?;
        Ok(stopping)
    }

    /// Fires when the command is asked to stop.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Says that something is begun which has to come to its end; unless it was asked to stop.
    pub(crate) fn begin(&self) -> Result<(), CommandError> {
        let mut begun = self.begun();
        if self.token.is_cancelled() {
            return Err(stopped());
        }
        *begun = true;
        Ok(())
    }

    /// Waits for `work`, unless it is asked to stop.
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
            // Without the thread it ends when it is asked again.
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
            // It ends when everything was said: nothing is ever sent.
            saying.recv_timeout(LAST_WORDS).ok();
        }
        // What was under way is in doubt.
        let is_idle = self.output.under_way().is_empty();
        signals::end(if is_idle { Status::Cancelled } else { Status::InDoubt })
    }
}

fn stopped() -> CommandError {
    CommandError::new("stopped before anything was begun").status(Status::Cancelled)
}
