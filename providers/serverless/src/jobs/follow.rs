//! Following a job until it ends: one status call after the other, each held back by the service.

use std::time::{Duration, Instant};

use provider_port::{Error, Kind};

use super::{Endpoint, Job, Wait};

/// The longest time for which a status call is held back, and so the longest time between two reports of
/// progress.
const LOOK_MAX: Duration = Duration::from_secs(8);
/// The pause between status calls that the service does not hold back.
const PAUSE: Duration = Duration::from_millis(500);
/// The number of status calls at the start that are held back only for a second.
const QUICK_LOOKS: u32 = 8;

/// A job that is followed.
pub struct Follow<'a> {
    endpoint: &'a Endpoint<'a>,
    job: Job,
    looks: u32,
    /// True if the service has the operation that waits, which its documents do not mention.
    waits: bool,
}

impl<'a> Follow<'a> {
    /// Returns a follower of a job, with its known state.
    pub fn new(endpoint: &'a Endpoint<'a>, job: Job) -> Self {
        Self { endpoint, job, looks: 0, waits: true }
    }

    /// Returns the job as it was last seen.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Asks for the status again: returns when the job has ended, or after some seconds.
    pub async fn look(&mut self) -> Result<&Job, Error> {
        let began = Instant::now();
        let wait = self.wait();
        let found = if self.waits {
            self.endpoint.status_sync(&self.job.id, wait).await
        } else {
            self.endpoint.status(&self.job.id).await
        };
        self.looks = self.looks.saturating_add(1);
        self.job = match found {
            Err(error) if self.waits && is_no_operation(&error) => {
                // A job that is gone is not found by the other call either.
                self.waits = false;
                self.endpoint.status(&self.job.id).await?
            }
            found => found?,
        };
        if !self.job.status.is_final() && began.elapsed() < wait.duration() / 2 {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(&self.job)
    }

    fn wait(&self) -> Wait {
        let doublings = (self.looks / QUICK_LOOKS).min(8);
        Wait::nearest(Duration::from_secs(1 << doublings).min(LOOK_MAX))
    }
}

fn is_no_operation(error: &Error) -> bool {
    matches!(error.kind, Kind::NotFound | Kind::Rejected)
}
