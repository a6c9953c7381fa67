//! `plumb job submit`: puts a job into the queue and prints its id.

use std::path::Path;
use std::sync::Arc;

use provider_serverless::jobs::Sending;

use super::request::SUBMIT;
use super::{input, leading, reference};
use crate::args::job::Submit;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds};
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &Submit,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let submission = input::submission(base, &args.input, false)?;
    let bounds = Bounds::new(None)?;
    let connecting = jobs::connect(base, &args.target, output);
    let connected = bounds.within(connecting, |early| SUBMIT.not_sent(early)).await?;
    let (progress, sending) = (jobs::teller(output), Sending::default());
    let endpoint = connected.endpoint(&progress)?.sending(&sending);
    let job = SUBMIT.answer(endpoint.run(&submission), &sending, (&bounds, output)).await?;
    if args.json {
        output.data(&reference(&job, true));
    } else {
        // Only the id is printed, so that scripts can store it.
        let id = render::safe::text(&job.id);
        output.data(&format!("{}\n", leading(&job.id)));
        output.talk(&format!("job {id} waits in the queue; {}\n", connected.afterwards(&id)));
    }
    Ok(Status::Done)
}
