//! `plumb show`: shows the state, or a saved plan.

use std::path::Path;

use engine::diagnostics::Sources;
use render::diagnostics::DiagnosticView;
use render::state::StateView;

use super::{plan, saved_plan};
use crate::args::{PlanFormat, Show};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &Show, output: &Output) -> Result<Status, CommandError> {
    if let Some(file) = &args.plan {
        let (saved, sources) = (saved_plan::read(&base.join(file))?, Sources::default());
        let view = saved_plan::view(&saved, &sources);
        let steps = args.form.steps;
        if args.form.format() != PlanFormat::Json {
            let told = view.diagnostics.iter().map(DiagnosticView::without_text);
            output.diagnostics(&told.collect(), &sources);
        }
        plan::data(&view, args.form.format(), steps, output);
        return Ok(Status::Done);
    }
    let folder = Folder::new(base, None)?;
    if args.form.format() == PlanFormat::Markdown {
        return Err(CommandError::new("a state has no markdown form")
            .help("name a saved plan, or take `--format text` or `--format json`"));
    }
    let view = match stored_state::read_here(&folder)?.snapshot {
        Some(snapshot) => {
            StateView::new(&snapshot).map_err(|error| stored_state::damaged(&error))?
        }
        None => StateView::empty(),
    };
    let text = match args.form.format() {
        PlanFormat::Json => render::json::pretty(&view),
        _ => render::state::text(&view, output.colour()),
    };
    output.data(&text);
    Ok(Status::Done)
}
