//! Plan files, as `apply` and `show` read them, and the folder that a plan belongs to.

use std::path::{Component, Path, PathBuf};

use engine::diagnostics::{Diagnostics, Sources};
use engine::digest::Digest;
use engine::plan::file::{self, SavedPlan};
use engine::shell;
use render::view::{LocationView, PlanView};

use crate::environment;
use crate::error::{CommandError, Status, chain};
use crate::folder::Folder;
use crate::spec_text;

/// The largest plan file that is read, in bytes.
const BYTES_MAX: u64 = 2 << 30;

/// The context that a sealed plan file is bound to.
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

/// Returns true if a saved plan was made for the service on this machine.
pub(super) fn is_local(saved: &SavedPlan) -> bool {
    let locations = saved.view.get("locations").and_then(serde_json::Value::as_array);
    let mut services = locations.into_iter().flatten().filter_map(|it| it.get("service"));
    services.any(|service| service == engine::state::LOCAL_SERVICE)
}

/// Returns the locations that a saved plan acts on.
pub(super) fn locations(saved: &SavedPlan) -> Vec<LocationView> {
    view(saved, &Sources::default()).locations
}

/// Returns the view of a saved plan. It is computed from the plan itself, so that exactly what will run is
/// shown. Only the places in the spec and the units come from the view in the file. `sources` is empty: a
/// saved plan refers to no texts.
pub(super) fn view<'a>(saved: &'a SavedPlan, sources: &'a Sources) -> PlanView<'a> {
    let digest = file::digest(&saved.plan);
    let mut view = PlanView::new(&saved.plan, sources, &Diagnostics::new(), Some(&digest));
    view.restore(&saved.view);
    view
}

/// Returns the folder of a plan as a plan file has it: the end of its path, because the beginning may differ
/// from machine to machine. Returns `None` if the folder is `base`.
pub(super) fn folder_of(base: &Path, given: Option<&Path>) -> Result<Option<String>, CommandError> {
    let Some(given) = given else { return Ok(None) };
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| CommandError::caused("cannot save the plan", &error))
    };
    let folder = real(&base.join(given))?;
    if real(base)? == folder {
        return Ok(None);
    }
    let is_below =
        given.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let end: Option<&str> =
        if is_below { given.to_str() } else { folder.file_name().and_then(|name| name.to_str()) };
    let end = end.ok_or_else(|| {
        CommandError::new("the plan is not saved: its folder has no name that can be written down")
            .help("make it in the folder: `plumb -C DIR plan --out FILE`")
    })?;
    Ok(Some(end.to_owned()))
}

/// Refuses a plan of another folder: it would create its state in this one, and the other folder would not
/// know of it. `file` is the path of the plan, relative to `base`.
pub(super) fn refuse_elsewhere(
    saved: &SavedPlan,
    base: &Path,
    file: &Path,
) -> Result<(), CommandError> {
    let Some(folder) = &saved.inputs.folder else { return Ok(()) };
    let names = || Path::new(folder).components().filter(|part| *part != Component::CurDir);
    let here = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    if here.ends_with(names().collect::<PathBuf>()) {
        return Ok(());
    }
    let place = base.join(names().collect::<PathBuf>());
    let help = if place.is_dir() {
        let place = place.strip_prefix(".").unwrap_or(&place).display().to_string();
        // From that folder, a path relative to this one begins that many folders up. An absolute path stays
        // as it is.
        let up: PathBuf = names().map(|_| Component::ParentDir).collect();
        let file = up.join(file).display().to_string();
        format!("plumb -C {} apply {}", shell::quoted(&place), shell::quoted(&file))
    } else {
        "plumb -C DIR apply FILE".to_owned()
    };
    let shown = render::safe::text(folder);
    let message = format!("this is a plan of the folder {shown}, and the current folder is not it");
    Err(stale(message).help(format!("apply it there: `{help}`")))
}

/// Refuses a plan in a folder without a state, unless the plan is that of the folder's first run. In its own
/// folder, the spec may have been edited or removed since. A copy of the folder, such as a checkout of a CI
/// system, has the same spec.
pub(super) fn refuse_without_state(saved: &SavedPlan, folder: &Folder) -> Result<(), CommandError> {
    if saved.plan.base.first_key.is_none() {
        return Err(stale("the plan was made for a state, and there is none here")
            .help("apply it in the folder that has the state, or plan again"));
    }
    if saved.inputs.place.as_ref() == Some(&place_of(folder.path())?) {
        return Ok(());
    }
    let message = match spec_text::read(folder.path())? {
        Some(text) if spec_text::files(folder.path(), &text.sources, &[]) == saved.inputs.spec => {
            return Ok(());
        }
        Some(_) => "this is a plan of another folder: it was not made from the spec that is here",
        None => "this is a plan of another folder: there is no spec here",
    };
    Err(stale(message).help(
        "apply it where it was made, or where the same spec is: `plumb -C DIR apply FILE`; or plan again here",
    ))
}

/// Returns the digest of a folder's path. A path says something about machines and people, so a plan file has
/// only this.
pub(super) fn place_of(folder: &Path) -> Result<Digest, CommandError> {
    let real = folder.canonicalize().map_err(|error| {
        CommandError::caused(format_args!("cannot look at the folder {}", folder.display()), &error)
    })?;
    Ok(Digest::of(real.as_os_str().as_encoded_bytes()))
}

fn stale(message: impl Into<String>) -> CommandError {
    CommandError::new(message).status(Status::Stale)
}
