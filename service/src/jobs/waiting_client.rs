//! A client that waits for the answer of a job that it submitted.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;

use crate::app::App;

/// A client that waits for the answer of a job. If this is dropped before the answer is there, the
/// client has hung up. Then the job is cancelled if it is still in the queue, because its result
/// would reach no client.
pub(super) struct WaitingClient {
    app: Arc<App>,
    endpoint: String,
    stage: Arc<Mutex<Stage>>,
}

/// The stage that the call has reached.
enum Stage {
    /// The job is not in the store yet.
    Submitting,
    /// The job with this id is waited for.
    Waiting(String),
    /// The client has hung up.
    Left,
    /// The client gets its answer.
    Answered,
}

impl WaitingClient {
    pub(super) fn new(app: &Arc<App>, endpoint: &str) -> WaitingClient {
        let stage = Arc::new(Mutex::new(Stage::Submitting));
        WaitingClient { app: Arc::clone(app), endpoint: endpoint.to_owned(), stage }
    }

    /// Returns the function to call with the id of the job once it is in the store. If the client
    /// has left by then, the function cancels the job.
    pub(super) fn submitted(&self) -> impl FnOnce(String) + Send + 'static {
        let (app, endpoint, stage) =
            (Arc::clone(&self.app), self.endpoint.clone(), Arc::clone(&self.stage));
        let runtime = Handle::current();
        move |id| {
            let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*stage, Stage::Left) {
                runtime.spawn(cancel(app, endpoint, id));
            } else {
                *stage = Stage::Waiting(id);
            }
        }
    }

    /// Notes that the client gets its answer, so that the job goes on.
    pub(super) fn was_answered(&self) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Answered;
    }
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stopping = self.app.draining.is_cancelled();
        match std::mem::replace(&mut *stage, Stage::Left) {
            Stage::Answered => *stage = Stage::Answered,
            // The service ends the connection, not the client. The job goes on after the next
            // start.
            _ if is_stopping => *stage = Stage::Answered,
            Stage::Waiting(id) => {
                tokio::spawn(cancel(Arc::clone(&self.app), self.endpoint.clone(), id));
            }
            Stage::Submitting | Stage::Left => {}
        }
    }
}

/// Cancels a job that still waits in the queue.
async fn cancel(app: Arc<App>, endpoint: String, id: String) {
    let (queue, job) = (app.queue.clone(), id.clone());
    let cancelled = app.store.write(move |tx| queue.cancel_queued(tx, &endpoint, &job)).await;
    if cancelled.is_ok_and(|cancelled| cancelled) {
        app.say(&format!("job {id} cancelled: its client has hung up"));
    }
}
