//! `plumb drift`: what changed outside.

use std::path::Path;
use std::sync::Arc;

use render::drift::DriftReport;

use crate::args::Drift;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::planning;
use crate::running::{stop_on_signal, unless_stopped};
use crate::runtime;

pub(crate) fn run(base: &Path, args: &Drift, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let planning = args.planning();
    let (made, question) = runtime::wait_for(async {
        let stop = stop_on_signal(output)?;
        unless_stopped(&stop, planning::plan_anyway(&folder, base, &planning, output)).await
    })?;
    output.diagnostics(&made.diagnostics, &made.sources);
    if made.plan.is_none() {
        return Ok(Status::Failed);
    }
    let view = made.view();
    let report = DriftReport::new(&view.drift);
    let text = if args.form.is_json() { report.json() } else { report.text(output.colour()) };
    output.data(&text);
    if let Some(question) = question {
        return Err(question);
    }
    Ok(if view.drift.is_empty() { Status::Done } else { Status::Changes })
}
