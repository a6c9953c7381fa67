//! Requests to the job API that change something, and the errors of requests that end without an answer.

use provider_port::{Error, Kind};
use provider_serverless::jobs::Sending;

use crate::bounded_request::{self, GRACE, Sent};
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds, Early};
use crate::output::Output;

/// A request, with the words for messages about it.
pub(super) struct Request {
    /// The words for the request when it was made: `the job was submitted`.
    done: &'static str,
    /// The object of the request: `the job`.
    what: &'static str,
    /// The state of the object during the request: `being submitted`.
    doing: &'static str,
    /// The fact that is unknown without an answer: `there is one`.
    unknown: &'static str,
    /// The advice for finding that fact out.
    look: &'static str,
    /// Converts an error of the request into an error of the command.
    failed: fn(Error) -> CommandError,
}

/// `POST /run` and `POST /runsync`.
pub(super) const SUBMIT: Request = Request {
    done: "the job was submitted",
    what: "the job",
    doing: "being submitted",
    unknown: "there is one",
    look: "look before you submit it again: `plumb job health` shows how many jobs there are, by \
           what they do",
    failed: jobs::endpoint_failed,
};

/// `POST /retry`.
pub(super) const RETRY: Request = Request {
    done: "the job was put into the queue again",
    what: "the job",
    doing: "being put into the queue again",
    unknown: "it waits again",
    look: "`plumb job status` shows it",
    failed: jobs::failed,
};

/// `POST /purge-queue`.
pub(super) const PURGE: Request = Request {
    done: "the queue was emptied",
    what: "the queue",
    doing: "being emptied",
    unknown: "jobs still wait",
    look: "`plumb job health` shows how many do",
    failed: jobs::endpoint_failed,
};

impl Request {
    /// Makes the `call` within the bounds of its command.
    pub(super) async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
        sending: &Sending,
        (bounds, output): (&Bounds, &Output),
    ) -> Result<T, CommandError> {
        let Self { what, doing, .. } = self;
        let waits = || {
            let most = jobs::seconds(GRACE);
            output.talk(&format!("{what} is {doing}: waiting for the answer, {most} at most\n"));
        };
        match bounded_request::within(call, sending, bounds, waits).await {
            Sent::Answered(answer) => answer.map_err(|error| self.failed(error)),
            Sent::Not(early) => Err(self.not_sent(early)),
            Sent::Perhaps(early) => Err(self.in_doubt(early)),
        }
    }

    /// Returns the error of a command that ended before the request was sent.
    pub(super) fn not_sent(&self, early: Early) -> CommandError {
        let done = self.done;
        match early {
            Early::Stopped => {
                CommandError::new(format!("stopped before {done}")).status(Status::Cancelled)
            }
            Early::TimeUp => CommandError::new(format!("the time was up before {done}")).help(
                "nothing was sent; a longer --timeout gives the service more time to take it",
            ),
        }
    }

    fn in_doubt(&self, early: Early) -> CommandError {
        let why = match early {
            Early::Stopped => "stopped",
            Early::TimeUp => "the time was up",
        };
        let Self { what, doing, unknown, .. } = self;
        let message =
            format!("{why} while {what} was {doing}, so it is not known whether {unknown}");
        CommandError::new(message).status(Status::InDoubt).help(self.look)
    }

    fn failed(&self, error: Error) -> CommandError {
        let in_doubt = error.kind == Kind::InDoubt;
        let failed = (self.failed)(error);
        if in_doubt { failed.status(Status::InDoubt) } else { failed }
    }
}
