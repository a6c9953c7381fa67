//! `plumb job submit`: puts a job into the queue and prints its id.

use std::path::Path;
use std::sync::Arc;

use super::{input, leading, reference};
use crate::args::job::Submit;
use crate::error::{CommandError, Status};
use crate::jobs;
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &Submit,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let submission = input::submission(base, &args.input, false)?;
    let connected = jobs::connect(base, &args.target, output).await?;
    let progress = jobs::teller(output);
    let job =
        connected.endpoint(&progress)?.run(&submission).await.map_err(jobs::endpoint_failed)?;
    if args.json {
        output.data(&reference(&job, true));
    } else {
        // The id alone, so that scripts can keep it.
        let id = render::safe::text(&job.id);
        output.data(&format!("{}\n", leading(&job.id)));
        output.talk(&format!("job {id} waits in the queue; {}\n", connected.afterwards(&id)));
    }
    Ok(Status::Done)
}
