//! `plumb output`: the outputs of the last apply.

use std::path::Path;

use engine::diagnostics::nearest;
use render::shown::Shown;
use render::state::NotRaw;

use crate::args::OutputArgs;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &OutputArgs, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    let outputs = match stored_state::read_here(&folder)?.snapshot {
        Some(state) => {
            render::state::outputs(&state).map_err(|error| stored_state::damaged(&error))?
        }
        None => std::collections::BTreeMap::new(),
    };
    let Some(name) = &args.name else {
        output.data(&if args.json {
            render::json::pretty(&outputs)
        } else {
            render::state::outputs_text(&outputs)
        });
        return Ok(Status::Done);
    };
    let Some(value) = outputs.get(name) else {
        let error = CommandError::new(format!("there is no output `{name}` in the state"));
        return Err(match nearest(name, outputs.keys().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("`plumb output` lists them; an apply computes them"),
        });
    };
    if matches!(value, Shown::Sensitive(_)) {
        return Err(not_raw(name, &NotRaw::Sensitive));
    }
    let text = if args.raw {
        render::state::raw(value).map_err(|why| not_raw(name, &why))?
    } else if args.json {
        render::json::pretty(value)
    } else {
        render::state::output_text(value)
    };
    output.data(&text);
    Ok(Status::Done)
}

fn not_raw(name: &str, why: &NotRaw) -> CommandError {
    match why {
        NotRaw::Sensitive => CommandError::new(format!("output `{name}` is sensitive"))
            .help("the state keeps only its fingerprint, so it cannot be printed"),
        NotRaw::NotScalar => {
            CommandError::new(format!("output `{name}` is no text, number or boolean"))
                .help("print it with `--json`")
        }
    }
}
