//! `plumb job stream`: prints the parts of a job as they come, until it ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provider_port::Error;
use provider_serverless::jobs::{Endpoint, Job, Part};

use super::failure;
use crate::args::job::One;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds};
use crate::output::Output;

/// The pause after an answer without parts. Some services hold such an answer back themselves.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn run(
    base: &Path,
    args: &One,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let bounds = Bounds::new(None)?;
    let asking = |early| jobs::not_looked_at(early, &args.job);
    let connected = bounds.within(jobs::connect(base, &args.target, output), asking).await?;
    let progress = jobs::teller(output);
    let endpoint = connected.endpoint(&progress)?;
    let looking = async { endpoint.status(&args.job).await.map_err(jobs::failed) };
    let job = bounds.within(looking, asking).await?;
    let mut show = |part: &Part| output.data(&line(part, args.json));
    let draining = async { drain(&endpoint, &args.job, &mut show).await.map_err(jobs::failed) };
    let ended = bounds.within(draining, |_| jobs::stopped(&connected, &job.id)).await?;
    match failure(&ended) {
        Some(failure) => Err(failure),
        None => Ok(Status::Done),
    }
}

/// Returns a part as one line: only the worker's output, or all of the part.
fn line(part: &Part, whole: bool) -> String {
    match &part.output {
        Some(answer) if !whole => render::json::line(answer),
        _ => render::json::line(part),
    }
}

/// Shows parts until the job has ended and no part is left.
async fn drain(
    endpoint: &Endpoint<'_>,
    job: &str,
    show: &mut impl FnMut(&Part),
) -> Result<Job, Error> {
    let mut ended = None;
    loop {
        let found = endpoint.stream(job).await?;
        found.parts.iter().for_each(&mut *show);
        if !found.parts.is_empty() {
            continue;
        }
        if ended.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
        // Parts may have come between the last answer and the end, so one more request follows.
        match ended {
            Some(job) => return Ok(job),
            None => ended = Some(endpoint.status(job).await?).filter(|job| job.status.is_final()),
        }
    }
}
