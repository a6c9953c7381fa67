//! `plumb drift`: what changed outside.

use std::path::Path;
use std::sync::Arc;

use render::diagnostics::DiagnosticView;
use render::drift::DriftReport;

use super::plan;
use crate::args::Drift;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::json_answer::Answer;
use crate::output::Output;
use crate::planning;
use crate::runtime;
use crate::stop_request::Stopping;

pub(crate) fn run(base: &Path, args: &Drift, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let planning = args.planning();
    let stop = Stopping::listen(output)?;
    let (made, question) = runtime::wait_for(async {
        stop.unless(planning::plan_anyway(&folder, base, &planning, output)).await
    })?;
    output.diagnostics(&made.diagnostics, &made.sources);
    if made.plan.is_none() {
        if args.form.is_json() {
            output.refuse(Answer::Drift, &made.diagnostics, &made.sources);
        }
        return Ok(Status::Failed);
    }
    let view = made.view();
    let mut found = view.diagnostics.clone();
    if let Some(question) = &question {
        found.extend(DiagnosticView::all(&planning::as_diagnostics(question), &made.sources));
    }
    let report = DriftReport::new(&view, found);
    let text = if args.form.is_json() { report.json() } else { report.text(output.colour()) };
    output.answer(&text);
    if let Some(question) = question {
        return Err(question);
    }
    let drifted = if view.drift.is_empty() { Status::Done } else { Status::Changes };
    // What is in doubt was compared with nothing.
    Ok(plan::status(&made, false).or(drifted))
}
