//! Which folder a saved plan is of, and whether the current one is it.
//!
//! A plan of another folder would leave its state in this one, and the folder that it is of would know
//! nothing of it. Once there is a state, its lineage tells. The plan of a first run goes by where it
//! was made and by the spec that it was made from: in its own folder the spec may have been edited
//! since, or be gone; a copy of the folder, as CI systems check it out, has the same spec.

use std::path::{Component, Path, PathBuf};

use engine::diagnostics::Sources;
use engine::digest::Digest;
use engine::plan::Plan;
use engine::plan::file::{Origin, SavedPlan};
use engine::shell;

use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::spec_text;

/// What a plan file says of the folder that the plan is of: `given`, as seen from `base`.
pub(super) fn of(
    plan: &Plan,
    sources: &Sources,
    base: &Path,
    given: Option<&Path>,
) -> Result<Origin, CommandError> {
    let folder = folder_of(base, given)?;
    if plan.base.first_key.is_none() {
        return Ok(Origin { folder, ..Origin::default() });
    }
    let place = place_of(&given.map_or_else(|| base.to_owned(), |given| base.join(given)))?;
    Ok(Origin { folder, place: Some(place), spec: Some(spec_text::digest(sources)) })
}

/// Where a folder is. Paths tell about machines and people, so only their digest is kept.
fn place_of(folder: &Path) -> Result<Digest, CommandError> {
    let real = folder.canonicalize().map_err(|error| {
        CommandError::caused(format_args!("cannot look at the folder {}", folder.display()), &error)
    })?;
    Ok(Digest::of(real.as_os_str().as_encoded_bytes()))
}

/// Refuses a plan in a folder that has no state, unless it is the plan of that folder's first run.
pub(super) fn refuse_without_state(saved: &SavedPlan, folder: &Folder) -> Result<(), CommandError> {
    if saved.plan.base.first_key.is_none() {
        return Err(stale("the plan was made for a state, and there is none here")
            .help("apply it in the folder that has the state, or plan again"));
    }
    let Origin { place: Some(place), spec: Some(spec), .. } = &saved.origin else { return Ok(()) };
    if place_of(folder.path())? == *place {
        return Ok(());
    }
    let message = match folder.spec_if_any()? {
        Some(text) if spec_text::digest(&text.sources) == *spec => return Ok(()),
        Some(_) => "this is a plan of another folder: it was not made from the spec that is here",
        None => "this is a plan of another folder: there is no spec here",
    };
    Err(stale(message).help(
        "apply it where it was made, or where the same spec is: `plumb -C DIR apply FILE`; \
         or plan again here",
    ))
}

fn stale(message: impl Into<String>) -> CommandError {
    CommandError::new(message).status(Status::Stale)
}

/// What a plan file says of the folder that the plan is of, as seen from `base`, unless it is
/// `base` itself: the end of its path. Where it is may differ from machine to machine.
fn folder_of(base: &Path, given: Option<&Path>) -> Result<Option<String>, CommandError> {
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
        CommandError::new("the plan is not saved: the name of its folder is not UTF-8 text")
            .help("make it in the folder: `plumb -C DIR plan --out FILE`")
    })?;
    Ok(Some(end.to_owned()))
}

/// A plan of another folder would leave its state in this one, and the folder would know nothing
/// of it. `file` is where the plan is, as seen from `base`.
pub(super) fn refuse_elsewhere(
    saved: &SavedPlan,
    base: &Path,
    file: &Path,
) -> Result<(), CommandError> {
    let Some(folder) = &saved.origin.folder else { return Ok(()) };
    let names = || Path::new(folder).components().filter(|part| *part != Component::CurDir);
    let here = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    if here.ends_with(names().collect::<PathBuf>()) {
        return Ok(());
    }
    let place = base.join(names().collect::<PathBuf>());
    let help = if place.is_dir() {
        let place = place.strip_prefix(".").unwrap_or(&place).display().to_string();
        // Seen from there, what is relative to here is so many folders up; what is not stays.
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
