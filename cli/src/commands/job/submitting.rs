//! A submission, from before it is sent to its answer; and what to say when it is given up between.

use std::pin::pin;
use std::time::Duration;

use provider_port::{Error, Kind};
use provider_serverless::jobs::{Job, Sending};

use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds, Early};
use crate::output::Output;

/// How long the answer to a submission that is on its way is waited for after the command should have
/// ended: a job whose id nobody knows helps nobody.
const GRACE: Duration = Duration::from_secs(2);

/// Makes the `call` that submits, within the bounds of its command.
pub(super) async fn answer(
    call: impl Future<Output = Result<Job, Error>>,
    sending: &Sending,
    bounds: &Bounds,
    output: &Output,
) -> Result<Job, CommandError> {
    let mut call = pin!(call);
    let early = tokio::select! {
        biased;
        answered = &mut call => return answered.map_err(failed),
        early = bounds.reached() => early,
    };
    sending.close();
    if !sending.is_out() {
        return Err(not_submitted(early));
    }
    let most = jobs::seconds(GRACE);
    output.talk(&format!("the job is being submitted: waiting for the answer, {most} at most\n"));
    match tokio::time::timeout(GRACE, call).await {
        Ok(Ok(job)) => Ok(job),
        Ok(Err(error)) if sending.is_out() => Err(failed(error)),
        Err(_) if sending.is_out() => Err(in_doubt(early)),
        Ok(Err(_)) | Err(_) => Err(not_submitted(early)),
    }
}

/// A command that ended before the service could have a job of it.
pub(super) fn not_submitted(early: Early) -> CommandError {
    match early {
        Early::Stopped => {
            CommandError::new("stopped before the job was submitted").status(Status::Cancelled)
        }
        Early::TimeUp => CommandError::new("the time was up before the job was submitted").help(
            "nothing was submitted; a longer --timeout gives the service more time to take it",
        ),
    }
}

fn in_doubt(early: Early) -> CommandError {
    let why = match early {
        Early::Stopped => "stopped",
        Early::TimeUp => "the time was up",
    };
    let message =
        format!("{why} while the job was being submitted, so nobody knows whether there is one");
    CommandError::new(message).status(Status::InDoubt).help(
        "look before you submit it again: `plumb job health` shows how many jobs there are, by \
         what they do",
    )
}

fn failed(error: Error) -> CommandError {
    let in_doubt = error.kind == Kind::InDoubt;
    let failed = jobs::endpoint_failed(error);
    if in_doubt { failed.status(Status::InDoubt) } else { failed }
}
