//! `plumb job`: the job API, for people and scripts. Each operation is a file.

mod cancel;
mod health;
mod input;
mod logs;
mod purge;
mod request;
mod retry;
mod run;
mod status;
mod stream;
mod submit;

use std::path::Path;
use std::sync::Arc;

use provider_serverless::jobs;

use crate::args::job::Job;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::runtime;

pub(crate) fn run(base: &Path, job: &Job, output: &Arc<Output>) -> Result<Status, CommandError> {
    runtime::wait_for(async {
        match job {
            Job::Run(args) => run::run(base, args, output).await,
            Job::Submit(args) => submit::run(base, args, output).await,
            Job::Status(args) => status::run(base, args, output).await,
            Job::Stream(args) => stream::run(base, args, output).await,
            Job::Cancel(args) => cancel::run(base, args, output).await,
            Job::Retry(args) => retry::run(base, args, output).await,
            Job::Purge(args) => purge::run(base, args, output).await,
            Job::Health(args) => health::run(base, args, output).await,
            Job::Logs(args) => logs::run(base, args, output).await,
        }
    })
}

/// Returns a job's id and state, as a line or as JSON.
fn reference(job: &jobs::Job, json: bool) -> String {
    if json {
        return render::json::line(job);
    }
    named(job)
}

/// Returns a job's id and state, as a line.
fn named(job: &jobs::Job) -> String {
    format!("{} {}\n", leading(&job.id), render::safe::text(job.status.name()))
}

/// Returns a foreign text that begins a line, made harmless.
fn leading(foreign: &str) -> String {
    render::safe::line(&render::safe::text(foreign)).into_owned()
}

/// Returns the exit status for the end of a job.
fn status_of(status: &jobs::Status) -> Status {
    match status {
        jobs::Status::Failed | jobs::Status::Cancelled | jobs::Status::TimedOut => Status::Failed,
        _ => Status::Done,
    }
}

/// Returns the reason why a job failed; `None` if it completed.
fn failure(job: &jobs::Job) -> Option<CommandError> {
    let words = match job.status {
        jobs::Status::Failed => "failed",
        jobs::Status::Cancelled => "was cancelled",
        jobs::Status::TimedOut => "ran out of time",
        _ => return None,
    };
    let id = render::safe::text(&job.id);
    Some(CommandError::new(match job.error_text() {
        Some(why) => format!("job {id} {words}: {why}"),
        None => format!("job {id} {words}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_names_a_job_acts() {
        let job: jobs::Job = serde_json::from_str(
            r#"{"id":"::error::a","status":"\u001b[31m\u202e\u009b\n::set-output name=a::b"}"#,
        )
        .unwrap();
        let safe = r"\u{3a}:error::a \u{1b}[31m\u{202e}\u{9b}\n::set-output name=a::b";
        assert_eq!(reference(&job, false), format!("{safe}\n"));
    }
}
