//! `plumb job purge`: takes all waiting jobs out of the queue.

use std::path::Path;
use std::sync::Arc;

use crate::args::job::All;
use crate::error::{CommandError, Status};
use crate::jobs;
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &All,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let connected = jobs::connect(base, &args.target, output).await?;
    let progress = jobs::teller(output);
    let purged = connected.endpoint(&progress)?.purge().await.map_err(jobs::endpoint_failed)?;
    output.data(&if args.json {
        render::json::line(&purged)
    } else {
        let noun = if purged.removed == 1 { "job" } else { "jobs" };
        format!("{} {noun} removed\n", purged.removed)
    });
    Ok(Status::Done)
}
