//! `plumb drift`: shows changes made outside Plumb, and writes them into the spec with `--write`.

use std::path::Path;
use std::sync::Arc;

use engine::config::Config;
use engine::diagnostics::Diagnostics;
use engine::write_back::{WriteBack, write_back};
use render::diagnostics::DiagnosticView;
use render::drift::{DriftReport, WrittenView};

use super::plan;
use crate::args::Drift;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::json_answer::Answer;
use crate::output::Output;
use crate::planning::{self, Made};
use crate::runtime;
use crate::spec_files;
use crate::stop_request::Stopping;

pub(crate) fn run(base: &Path, args: &Drift, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let planning = args.planning();
    let stop = Stopping::listen(output)?;
    let (made, config, question) = runtime::wait_for(async {
        stop.unless(planning::plan_with_config(&folder, base, &planning, output)).await
    })?;
    output.diagnostics(&made.diagnostics, &made.sources);
    if made.plan.is_none() {
        if args.form.is_json() {
            output.refuse(Answer::Drift, &made.diagnostics, &made.sources);
        }
        return Ok(Status::Failed);
    }
    // Drift is not written as long as a question is open, such as too many objects being gone.
    let config = config.filter(|_| args.write && question.is_none());
    let back = config.map(|config| write(&made, &config)).transpose()?;
    let mut view = made.view();
    let mut found = view.diagnostics.clone();
    if let Some(question) = &question {
        found.extend(DiagnosticView::all(&planning::as_diagnostics(question), &made.sources));
    }
    if let Some(back) = &back {
        output.diagnostics(&back.kept, &made.sources);
        found.extend(DiagnosticView::all(&back.kept, &made.sources));
        for drift in &mut view.drift {
            drift.proposal = None;
        }
    }
    let report = DriftReport::new(&view, found);
    let report = match &back {
        Some(back) => report.with_written(WrittenView::all(&back.written, &made.sources)),
        None => report,
    };
    let text = if args.form.is_json() { report.json() } else { report.text(output.colour()) };
    output.answer(&text);
    if let Some(question) = question {
        return Err(question);
    }
    let is_left = back.map_or(!view.drift.is_empty(), |back| !back.kept.is_empty());
    let drifted = if is_left { Status::Changes } else { Status::Done };
    // An object in doubt was not compared.
    Ok(plan::status(&made, false).or(drifted))
}

/// Writes the drift of a plan into the files of its spec.
fn write(made: &Made, config: &Config) -> Result<WriteBack, CommandError> {
    let Some(plan) = &made.plan else { return Ok(WriteBack::default()) };
    let mut back = write_back(config, &made.sources, plan);
    for (file, text) in &back.files {
        let Some(source) = made.sources.get(*file) else { continue };
        spec_files::replace(Path::new(&source.path), Some(&source.text), text)?;
    }
    let mut kept: Diagnostics = std::mem::take(&mut back.kept);
    kept.sort();
    Ok(WriteBack { kept, ..back })
}
