//! `plumb job run`: submits a job, waits for it, and prints its output.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provider_serverless::jobs::{Endpoint, Job, Submission, Wait};
use tokio_util::sync::CancellationToken;

use super::{failure, input, status_of};
use crate::args::job::Run;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Connected, Ended, Telling};
use crate::output::Output;
use crate::signals::stop_or_end;

/// How long the service is asked to hold back the answer of `/runsync`.
const SYNC_WAIT: Duration = Duration::from_secs(5);

pub(super) async fn run(
    base: &Path,
    args: &Run,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let submission = input::submission(base, &args.submit.input, args.sync)?;
    let until = args.timeout.map(|timeout| Instant::now() + timeout);
    let stop = stop_or_end()?;
    let connected = tokio::select! {
        connected = jobs::connect(base, &args.submit.target, output) => connected?,
        () = stop.cancelled() => return Err(nothing_sent()),
    };
    let progress = jobs::teller(output);
    let endpoint = connected.endpoint(&progress)?;
    let job = submit(&endpoint, &submission, args.sync).await?;
    let waiting = Waiting { connected: &connected, until, stop, json: args.submit.json };
    waiting.finish(&endpoint, job, output).await
}

fn nothing_sent() -> CommandError {
    CommandError::new("stopped before anything was sent").status(Status::Cancelled)
}

/// Submits to the end, whatever happens meanwhile: a submission that is cut off may have made a
/// job whose id nobody knows.
async fn submit(
    endpoint: &Endpoint<'_>,
    submission: &Submission,
    sync: bool,
) -> Result<Job, CommandError> {
    let submitted = if sync {
        endpoint.run_sync(submission, Wait::nearest(SYNC_WAIT)).await
    } else {
        endpoint.run(submission).await
    };
    submitted.map_err(jobs::endpoint_failed)
}

/// How a job is waited for.
pub(super) struct Waiting<'a> {
    pub(super) connected: &'a Connected,
    pub(super) until: Option<Instant>,
    pub(super) stop: CancellationToken,
    pub(super) json: bool,
}

impl Waiting<'_> {
    /// Waits for a job's end and prints its output; with JSON, everything about it.
    pub(super) async fn finish(
        &self,
        endpoint: &Endpoint<'_>,
        job: Job,
        output: &Output,
    ) -> Result<Status, CommandError> {
        let mut telling = Telling::new(output, String::new(), true);
        let ended = jobs::wait(endpoint, job, self.until, &self.stop, &mut telling).await;
        let job = match ended.map_err(jobs::failed)? {
            Ended::Job(job) => job,
            Ended::Stopped(job) => return Err(jobs::stopped(self.connected, &job)),
            Ended::TimedOut(job) => {
                let id = render::safe::text(&job.id);
                return Err(CommandError::new(format!(
                    "job {id} did not end in time: it is {}",
                    job.status
                ))
                .help(self.connected.afterwards(&id)));
            }
        };
        if self.json {
            output.data(&render::json::line(&job));
            return Ok(status_of(&job.status));
        }
        match (failure(&job), &job.output) {
            (Some(failure), _) => Err(failure),
            (None, Some(answer)) => {
                output.data(&render::json::line(answer));
                Ok(Status::Done)
            }
            (None, None) => {
                output.data("null\n");
                Ok(Status::Done)
            }
        }
    }
}
