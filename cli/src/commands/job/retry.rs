//! `plumb job retry`: puts a job that failed or timed out into the queue again.

use std::path::Path;
use std::sync::Arc;

use provider_serverless::jobs::Sending;

use super::reference;
use super::request::RETRY;
use crate::args::job::One;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds};
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &One,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let bounds = Bounds::new(None)?;
    let connecting = jobs::connect(base, &args.target, output);
    let connected = bounds.within(connecting, |early| RETRY.not_sent(early)).await?;
    let (progress, sending) = (jobs::teller(output), Sending::default());
    let endpoint = connected.endpoint(&progress)?.sending(&sending);
    let job = RETRY.answer(endpoint.retry(&args.job), &sending, (&bounds, output)).await?;
    output.data(&reference(&job, args.json));
    Ok(Status::Done)
}
