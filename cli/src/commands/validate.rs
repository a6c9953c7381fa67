//! `plumb validate`: everything that can be said about a spec without a call.

use std::path::Path;

use render::diagnostics::DiagnosticView;

use crate::args::Validate;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::resolved::{self, Resolved};
use crate::runtime;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &Validate, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let resolved = resolved::read(&folder, base, &args.spec, &stored_state::no_state())?;
    let found = runtime::wait_for(resolved::check_rules(&resolved))?;
    let Resolved { sources, mut diagnostics, config, .. } = resolved;
    diagnostics.extend(found);
    diagnostics.sort();
    let valid = !diagnostics.has_errors();
    if args.json {
        let all = DiagnosticView::all(&diagnostics, &sources);
        output.answer(&render::json::pretty(
            &serde_json::json!({"valid": valid, "diagnostics": all}),
        ));
    } else {
        output.diagnostics(&diagnostics, &sources);
        if valid {
            let count = config.resources.len();
            let blocks = if count == 1 { "resource" } else { "resources" };
            output.data(&format!("The spec is valid: {count} {blocks}.\n"));
        }
    }
    Ok(if valid { Status::Done } else { Status::Failed })
}
