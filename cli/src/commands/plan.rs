//! `plumb plan`: what would be done, and why.

use std::path::Path;
use std::sync::Arc;

use engine::diagnostics::{Diagnostic, Diagnostics, Sources};
use engine::plan::{Plan as EnginePlan, saved};
use render::view::PlanView;
use state::disk::{Disk as _, RealDisk};

use super::saved_plan;
use crate::args::{Plan, PlanFormat};
use crate::environment;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::planning::{self, Made};
use crate::running::{stop_on_signal, unless_stopped};
use crate::runtime;

pub(crate) fn run(base: &Path, args: &Plan, output: &Arc<Output>) -> Result<Status, CommandError> {
    let made = make(base, args, output).and_then(|made| keep(base, args, made));
    if let (Err(error), PlanFormat::Json) = (&made, args.format()) {
        let diagnostics = planning::as_diagnostics(error);
        output.data(&render::json::pretty(&PlanView::refused(&Sources::default(), &diagnostics)));
    }
    let made = made?;
    print(&made, args.format(), args.steps || output.verbose(), output);
    let status = status(&made, args.detailed_exitcode);
    // The process ends here: taking a large plan apart would only take time.
    std::mem::forget(made);
    Ok(status)
}

fn make(base: &Path, args: &Plan, output: &Arc<Output>) -> Result<Made, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    runtime::wait_for(async {
        let stop = stop_on_signal(output)?;
        unless_stopped(&stop, planning::plan(&folder, base, &args.planning, output)).await
    })
}

/// Saves a plan where that was asked for.
fn keep(base: &Path, args: &Plan, mut made: Made) -> Result<Made, CommandError> {
    if args.format() != PlanFormat::Text || args.out.is_some() {
        made = made.with_digest();
    }
    if let (Some(path), Some(plan)) = (&args.out, &made.plan) {
        let folder = saved_plan::folder_of(base, args.folder.folder.as_deref())?;
        save(&base.join(path), plan, &made.view(), folder.as_deref())?;
    }
    Ok(made)
}

/// Prints a plan in a format; what is wrong goes to stderr where the format is for people.
pub(super) fn print(made: &Made, format: PlanFormat, steps: bool, output: &Output) {
    if format != PlanFormat::Json {
        output.diagnostics(&made.diagnostics, &made.sources);
    }
    if made.plan.is_none() && format == PlanFormat::Text {
        return;
    }
    data(&made.view(), format, steps, output);
}

/// Writes a plan's view to stdout in a format.
pub(super) fn data(view: &PlanView<'_>, format: PlanFormat, steps: bool, output: &Output) {
    match format {
        PlanFormat::Json => output.data(&render::json::pretty(view)),
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
    let changes = if detailed && !plan.is_empty() { Status::Changes } else { Status::Done };
    doubt.or(changes)
}

/// Writes a plan file: all of it or nothing, and for its owner only.
fn save(
    path: &Path,
    plan: &EnginePlan,
    view: &PlanView<'_>,
    folder: Option<&str>,
) -> Result<(), CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write the plan to {}", path.display()), &error)
    };
    refuse_exposed(plan)?;
    let view = serde_json::to_value(view)
        .map_err(|error| CommandError::caused("cannot write the plan", &error))?;
    let text = saved::write_of(plan, &view, folder);
    let bytes = environment::cipher()?
        .seal(saved_plan::CONTEXT, text.as_bytes())
        .map_err(|error| CommandError::caused("cannot write the plan", &error))?;
    write_private(path, &bytes).map_err(fail)
}

/// Writes a file that only its owner can read, all of it or nothing.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let unfinished = path.with_file_name(name);
    let disk = RealDisk;
    // It is made anew: a left-over, or a link, of that name has a mode and a place of its own.
    let file = disk.create(&unfinished)?;
    disk.write(&file, bytes)?;
    disk.sync(&file)?;
    disk.rename(&unfinished, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    disk.sync_folder(folder.unwrap_or(Path::new(".")))
}

/// A plan file in clear holds no secret: one that would is not written.
fn refuse_exposed(plan: &EnginePlan) -> Result<(), CommandError> {
    if environment::cipher()?.is_on() {
        return Ok(());
    }
    let places = engine::plan::exposed(plan);
    let Some(first) = places.first() else { return Ok(()) };
    let more = match places.len() {
        1 => String::new(),
        more => format!(", and {} more", more - 1),
    };
    Err(CommandError::new(format!(
        "the plan is not saved: the file would hold a secret in clear, {first}{more}"
    ))
    .help(format!(
        "give the secret as a variable with `sensitive = true`, or set {}, with which plan files \
         are encrypted",
        state::cipher::VARIABLE
    )))
}

/// Prints the object that stands for a plan that could not be made.
pub(crate) fn print_refusal(output: &Output, why: String) {
    let diagnostics = Diagnostics::from_iter([Diagnostic::error(why)]);
    output.data(&render::json::pretty(&PlanView::refused(&Sources::default(), &diagnostics)));
}
