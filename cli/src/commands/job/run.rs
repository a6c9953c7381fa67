//! `plumb job run`: submits a job, waits for it, and prints its output.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provider_serverless::jobs::{Endpoint, Job, Sending, Wait};

use super::request::SUBMIT;
use super::{failure, input, status_of};
use crate::args::job::Run;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds, Connected, Ended, Telling};
use crate::output::Output;

/// The time that the service is asked to hold back the answer of `/runsync`.
const SYNC_WAIT: Duration = Duration::from_secs(5);

pub(super) async fn run(
    base: &Path,
    args: &Run,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let submission = input::submission(base, &args.submit.input, args.sync)?;
    let bounds = Bounds::new(args.timeout)?;
    let connecting = jobs::connect(base, &args.submit.target, output);
    let connected = bounds.within(connecting, |early| SUBMIT.not_sent(early)).await?;
    let (progress, sending) = (jobs::teller(output), Sending::default());
    let endpoint = connected.endpoint(&progress)?.sending(&sending);
    let call = async {
        if args.sync {
            endpoint.run_sync(&submission, held(&bounds)).await
        } else {
            endpoint.run(&submission).await
        }
    };
    let job = SUBMIT.answer(call, &sending, (&bounds, output)).await?;
    let waiting = Waiting { connected: &connected, bounds, json: args.submit.json };
    waiting.finish(&endpoint, job, output).await
}

/// Returns the time for which the service holds back the answer of `/runsync`: no longer than the command
/// waits for it.
fn held(bounds: &Bounds) -> Wait {
    let left = bounds.until.map(|until| until.saturating_duration_since(Instant::now()));
    Wait::nearest(left.map_or(SYNC_WAIT, |left| left.min(SYNC_WAIT)))
}

/// The inputs of the wait for a job.
pub(super) struct Waiting<'a> {
    pub(super) connected: &'a Connected,
    pub(super) bounds: Bounds,
    pub(super) json: bool,
}

impl Waiting<'_> {
    /// Waits for a job's end and prints its output; with JSON, all that is known of the job.
    pub(super) async fn finish(
        &self,
        endpoint: &Endpoint<'_>,
        job: Job,
        output: &Output,
    ) -> Result<Status, CommandError> {
        let mut telling = Telling::new(output, String::new(), true);
        let id = job.id.clone();
        let ended = jobs::wait(endpoint, job, &self.bounds, &mut telling).await;
        let lost_sight = |error| jobs::lost_sight(self.connected, &id, error);
        let job = match ended.map_err(lost_sight)? {
            Ended::Job(job) => job,
            Ended::Stopped(job) => return Err(jobs::stopped(self.connected, &job.id)),
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
