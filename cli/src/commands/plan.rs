//! `plumb plan`: shows what an apply would do, and why.

use std::path::Path;
use std::sync::Arc;

use engine::address::MoveRule;
use render::view::PlanView;

use super::plan_file;
use crate::args::{Plan, PlanFormat};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::move_blocks;
use crate::output::Output;
use crate::planning::{self, Made};
use crate::runtime;
use crate::stop_request::Stopping;

/// The maximum number of plans in a row, each with the moves that the one before proposed.
const WRITTEN_MAX: usize = 8;

pub(crate) fn run(base: &Path, args: &Plan, output: &Arc<Output>) -> Result<Status, CommandError> {
    let made = keep(base, args, make(base, args, output)?)?;
    print(&made, args.form.format(), args.form.steps, output);
    let status = status(&made, args.detailed_exitcode);
    // The process ends here. To free a large plan would only take time.
    std::mem::forget(made);
    Ok(status)
}

fn make(base: &Path, args: &Plan, output: &Arc<Output>) -> Result<Made, CommandError> {
    let stop = Stopping::listen(output)?;
    if let Some(path) = &args.out {
        // This check comes first: a plan that cannot be saved need not be made.
        plan_file::place(&base.join(path))?;
    }
    let folder = || Folder::new(base, args.folder.folder.as_deref());
    let mut here = folder()?;
    runtime::wait_for(async {
        let planning = &args.planning;
        for _ in 0..WRITTEN_MAX {
            let made = if args.out.is_some() {
                stop.unless(planning::plan_to_save(&here, base, planning, output)).await?
            } else {
                stop.unless(planning::plan(&here, base, planning, output)).await?
            };
            if !args.write_moves || made.proposed_moves.is_empty() {
                return Ok(made);
            }
            write_moves(&here, &made.proposed_moves, output)?;
            // The spec has changed.
            here = folder()?;
        }
        Err(CommandError::new("the plan goes on proposing moves: look at moves.plumb.toml"))
    })
}

fn write_moves(folder: &Folder, rules: &[MoveRule], output: &Output) -> Result<(), CommandError> {
    let path = move_blocks::append(folder, rules)?;
    let count = match rules.len() {
        1 => "1 move".to_owned(),
        count => format!("{count} moves"),
    };
    let path = render::safe::text(&path.display().to_string());
    output.talk(&format!("wrote {count} to {path}\n"));
    Ok(())
}

/// Saves a plan if the user asked for that.
fn keep(base: &Path, args: &Plan, mut made: Made) -> Result<Made, CommandError> {
    if args.form.format() != PlanFormat::Text || args.out.is_some() {
        made = made.with_digest();
    }
    if let (Some(path), Some(plan)) = (&args.out, &made.plan) {
        let given = args.folder.folder.as_deref();
        plan_file::save(&base.join(path), plan, &made, (base, given))?;
    }
    Ok(made)
}

/// Prints a plan in a format. If the format is for people, errors go to stderr.
pub(super) fn print(made: &Made, format: PlanFormat, steps: bool, output: &Output) {
    if format != PlanFormat::Json {
        output.diagnostics(&made.diagnostics, &made.sources);
    }
    if made.plan.is_none() && made.denied.is_none() && format == PlanFormat::Text {
        return;
    }
    data(&made.view(), format, steps, output);
}

/// Writes a plan's view to stdout in a format.
pub(super) fn data(view: &PlanView<'_>, format: PlanFormat, steps: bool, output: &Output) {
    match format {
        PlanFormat::Json => output.answer(&render::json::pretty(view)),
        PlanFormat::Markdown => output.data(&render::markdown::plan(view)),
        PlanFormat::Text => {
            let options = render::terminal::Options { colour: output.colour(), steps };
            for part in render::terminal::plan_in_parts(view, options) {
                output.data(&part);
            }
        }
    }
}

pub(super) fn status(made: &Made, detailed: bool) -> Status {
    let Some(plan) = &made.plan else { return Status::Failed };
    let doubt = plan.doubts.iter().any(|doubt| !doubt.running);
    let doubt = if doubt { Status::InDoubt } else { Status::Done };
    // The changes of a run that is under way are not done yet, so they count as changes.
    let is_running = plan.doubts.iter().any(|doubt| doubt.running);
    let changes = detailed && (is_running || !plan.is_empty() || made.accepts_drift());
    let changes = if changes { Status::Changes } else { Status::Done };
    doubt.or(changes)
}
