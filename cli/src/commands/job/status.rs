//! `plumb job status`: shows the status of a job.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use provider_serverless::jobs::Job;

use super::run::Waiting;
use super::{named, status_of};
use crate::args::job;
use crate::error::{CommandError, Status};
use crate::jobs::{self, Bounds};
use crate::output::Output;

pub(super) async fn run(
    base: &Path,
    args: &job::Status,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let one = &args.one;
    let bounds = Bounds::new(args.timeout)?;
    let asking = |early| jobs::not_looked_at(early, &one.job);
    let connected = bounds.within(jobs::connect(base, &one.target, output), asking).await?;
    let progress = jobs::teller(output);
    let endpoint = connected.endpoint(&progress)?;
    let looking = async { endpoint.status(&one.job).await.map_err(jobs::failed) };
    let job = bounds.within(looking, asking).await?;
    if args.wait {
        let waiting = Waiting { connected: &connected, bounds, json: one.json };
        return waiting.finish(&endpoint, job, output).await;
    }
    output.data(&if one.json { render::json::line(&job) } else { text(&job) });
    Ok(status_of(&job.status))
}

fn text(job: &Job) -> String {
    let mut text = named(job);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<9} {value}");
        }
    };
    let ms = |time: Option<i64>| time.map(|ms| format!("{ms} ms"));
    line("waited", ms(job.delay_time));
    line("ran", ms(job.execution_time));
    line("worker", job.worker_id.as_deref().map(render::safe::text));
    line("retries", job.retries.filter(|count| *count > 0).map(|count| count.to_string()));
    line("error", job.error_text().map(|why| render::safe::capped(&why, 4_000)));
    let output = job.output.as_ref().map(render::json::line);
    line("output", output.map(|output| output.trim_end().to_owned()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_shown_and_nothing_of_it_acts() {
        let job: Job = serde_json::from_str(
            r#"{"id":"a","status":"FAILED","delayTime":12,"executionTime":3,"retries":0,
                "workerId":"w","error":"no\u001b[31m luck","output":{"x":[1,	2]}}"#,
        )
        .unwrap();
        insta::assert_snapshot!(text(&job), @r#"
        a FAILED
          waited    12 ms
          ran       3 ms
          worker    w
          error     no\u{1b}[31m luck
          output    {"x":[1, 2]}
        "#);
    }
}
