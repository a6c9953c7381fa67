//! `plumb check`: runs the checks of the spec against the live objects.

use std::path::Path;
use std::sync::Arc;

use engine::diagnostics::{Diagnostics, Sources};
use serde_json::json;

use crate::args::Check;
use crate::checks::{self, Outcome, Turns, World};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::json_answer::Answer;
use crate::output::Output;
use crate::resolved;
use crate::runtime;
use crate::stop_request::Stopping;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &Check, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    runtime::wait_for(check(&folder, base, args, output))
}

async fn check(
    folder: &Folder,
    base: &Path,
    args: &Check,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let stop = Stopping::listen(output)?;
    let folded = stop.unless(stored_state::load(folder)).await?;
    let mut resolved = resolved::read(folder, base, &args.spec, &folded.snapshot)?;
    if resolved.diagnostics.has_errors() {
        return Ok(refuse(&resolved.diagnostics, &resolved.sources, args.json, output));
    }
    if resolved.config.checks.is_empty() {
        output.talk("the spec has no checks\n");
        if args.json {
            show(&[], true, output);
        }
        return Ok(Status::Done);
    }
    let configured = stop.unless(resolved.connect(folder, output)).await?;
    configured.locations.refuse_elsewhere(&folded.snapshot)?;
    if configured.missing.has_errors() {
        return Ok(refuse(&configured.missing, &resolved.sources, args.json, output));
    }
    let world = World {
        config: &resolved.config,
        sources: &resolved.sources,
        configured: &configured,
        output,
        stop: stop.token(),
        turns: Turns::default(),
    };
    let mut told = |outcome: &Outcome| {
        if !args.json {
            output.data(&checks::text(outcome));
        }
    };
    stop.begin()?;
    let outcomes = world.run(folded.snapshot, &mut told).await?;
    show(&outcomes, args.json, output);
    Ok(checks::status(&outcomes))
}

/// Reports why no check can be made.
fn refuse(why: &Diagnostics, sources: &Sources, json: bool, output: &Output) -> Status {
    output.diagnostics(why, sources);
    if json {
        output.refuse(Answer::Checks, why, sources);
    }
    Status::Failed
}

/// Shows the results of all checks.
fn show(outcomes: &[Outcome], json: bool, output: &Output) {
    if !json {
        return output.talk(&checks::summary(outcomes));
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed).count();
    output.answer(&render::json::pretty(&json!({
        "format": "plumb-checks/1",
        "passed": passed,
        "failed": outcomes.len() - passed,
        "checks": outcomes,
        "diagnostics": [],
    })));
}
