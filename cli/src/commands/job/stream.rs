//! `plumb job stream`: prints the parts of a job as they come, until it ends.

use std::path::Path;
use std::sync::Arc;

use provider_port::Error;
use provider_serverless::jobs::{Endpoint, Job, Part};

use super::failure;
use crate::args::job::One;
use crate::error::{CommandError, Status};
use crate::jobs;
use crate::output::Output;
use crate::signals::stop_or_end;

pub(super) async fn run(
    base: &Path,
    args: &One,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let stop = stop_or_end()?;
    let connected = jobs::connect(base, &args.target, output).await?;
    let progress = jobs::teller(output);
    let endpoint = connected.endpoint(&progress)?;
    let job = endpoint.status(&args.job).await.map_err(jobs::failed)?;
    let mut show = |part: &Part| output.data(&line(part, args.json));
    let ended = tokio::select! {
        ended = drain(&endpoint, &args.job, &mut show) => ended.map_err(jobs::failed)?,
        () = stop.cancelled() => return Err(jobs::stopped(&connected, &job)),
    };
    match failure(&ended) {
        Some(failure) => Err(failure),
        None => Ok(Status::Done),
    }
}

/// A part as one line: what the worker gave out, or all of it.
fn line(part: &Part, whole: bool) -> String {
    match &part.output {
        Some(answer) if !whole => render::json::line(answer),
        _ => render::json::line(part),
    }
}

/// Shows parts until the job has ended and nothing is left of them.
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
        // Parts may have come between the last answer and the end, so one more look after it.
        match ended {
            Some(job) => return Ok(job),
            None => ended = Some(endpoint.status(job).await?).filter(|job| job.status.is_final()),
        }
    }
}
