//! `plumb job health`: shows the numbers of jobs and workers, by their status.

use std::path::Path;
use std::sync::Arc;

use crate::args::job::All;
use crate::error::{CommandError, Status};
use crate::jobs::{self, counts};
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &All,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let connected = jobs::connect(base, &args.target, output).await?;
    let progress = jobs::teller(output);
    let health = connected.endpoint(&progress)?.health().await.map_err(jobs::endpoint_failed)?;
    output.data(&if args.json {
        render::json::line(&health)
    } else {
        format!("jobs     {}\nworkers  {}\n", counts(&health.jobs), counts(&health.workers))
    });
    Ok(Status::Done)
}
