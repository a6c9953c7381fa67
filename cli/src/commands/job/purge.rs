//! `plumb job purge`: takes all waiting jobs out of the queue.

use std::path::Path;
use std::sync::Arc;

use provider_serverless::jobs::Sending;

use super::request::PURGE;
use crate::args::job::All;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds};
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &All,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let bounds = Bounds::new(None)?;
    let connecting = jobs::connect(base, &args.target, output);
    let connected = bounds.within(connecting, |early| PURGE.not_sent(early)).await?;
    let (progress, sending) = (jobs::teller(output), Sending::default());
    let endpoint = connected.endpoint(&progress)?.sending(&sending);
    let purged = PURGE.answer(endpoint.purge(), &sending, (&bounds, output)).await?;
    output.data(&if args.json {
        render::json::line(&purged)
    } else {
        let noun = if purged.removed == 1 { "job" } else { "jobs" };
        format!("{} {noun} removed\n", purged.removed)
    });
    Ok(Status::Done)
}
