//! Plan files, as `apply` and `show` read them.

use std::path::Path;

use engine::diagnostics::{Diagnostics, Sources};
use engine::plan::file::{self, SavedPlan};
use render::view::PlanView;

use crate::environment;
use crate::error::{CommandError, Status, chain};

/// The largest plan file that is read, in bytes.
const BYTES_MAX: u64 = 2 << 30;

/// What a sealed plan file is bound to.
pub(super) const CONTEXT: &[u8] = b"plan";

/// Reads a plan file.
pub(super) fn read(path: &Path) -> Result<SavedPlan, CommandError> {
    let shown = path.display();
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read the plan file {shown}"), &error)
    };
    let found = std::fs::metadata(path).map_err(fail)?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(CommandError::new(format!("{shown} is not a file of at most 2 GiB")));
    }
    let text = std::fs::read(path).map_err(fail)?;
    let opened = environment::cipher()?.open(CONTEXT, &text).map_err(|error| {
        CommandError::new(format!("{shown} cannot be read: {error}"))
            .status(Status::Suspicious)
            .help("nothing was called; a plan is read with the key that it was written with")
    })?;
    let text = String::from_utf8(opened.into_owned()).map_err(|_| {
        CommandError::new(format!("{shown} is not a plan file: it is not UTF-8 text"))
    })?;
    file::read(&text).map_err(|error| {
        CommandError::new(format!("{shown}: {}", chain(&error)))
            .help("`plumb plan --out FILE` writes plan files")
    })
}

/// Says whether a saved plan was made for the service on this machine.
pub(super) fn is_local(saved: &SavedPlan) -> bool {
    let locations = saved.view.get("locations").and_then(serde_json::Value::as_array);
    let mut services = locations.into_iter().flatten().filter_map(|it| it.get("service"));
    services.any(|service| service == engine::state::LOCAL_SERVICE)
}

/// What to show of a saved plan: computed from the plan itself, so that nothing is shown that is
/// not run; only the places in the spec and the units come from the view beside it. `sources` are
/// none: a plan at rest refers to no text.
pub(super) fn view<'a>(saved: &'a SavedPlan, sources: &'a Sources) -> PlanView<'a> {
    let digest = file::digest(&saved.plan);
    let mut view = PlanView::new(&saved.plan, sources, &Diagnostics::new(), Some(&digest));
    view.restore(&saved.view);
    view
}
