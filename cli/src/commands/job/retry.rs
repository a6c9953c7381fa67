//! `plumb job retry`: puts a job that failed or timed out into the queue again.

use std::path::Path;
use std::sync::Arc;

use super::reference;
use crate::args::job::One;
use crate::error::{CommandError, Status};
use crate::jobs;
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &One,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let connected = jobs::connect(base, &args.target, output).await?;
    let progress = jobs::teller(output);
    let job = connected.endpoint(&progress)?.retry(&args.job).await.map_err(jobs::failed)?;
    output.data(&reference(&job, args.json));
    Ok(Status::Done)
}
