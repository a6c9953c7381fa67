//! The file to which `plumb plan --out` saves a plan: the check of the place, and the write.
//!
//! Only a plan file or an empty file is replaced. Links are followed. To a device, a pipe or a stream of the
//! process, the plan is written without replacing it. The files of the spec and all that is in `.plumb` are
//! refused, whatever their content. Plan files are read in `saved_plan`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use engine::config::variables::environment_name;
use engine::plan::file::{Inputs, SavedPlan};
use engine::plan::{Plan, WrittenSecret, file};
use render::view;
use state::disk::{Disk as _, RealDisk};

use super::saved_plan;
use crate::environment;
use crate::error::CommandError;
use crate::folder::STATE_FOLDER;
use crate::planning::Made;

/// The maximum number of secrets that are named of those that a file would hold.
const PLACES_MAX: usize = 20;

/// The number of bytes that are read of a file to recognise a plan file.
const HEAD: u64 = 64;

/// A place to which a plan may be saved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The path of a regular file, which may not exist yet.
    File(PathBuf),
    /// The path of a device, a pipe or an open stream.
    Stream(PathBuf),
}

/// Checks that a plan may be saved to `path`.
pub(super) fn place(path: &Path) -> Result<Place, CommandError> {
    let shown = path.display();
    let refuse = |why: &str| {
        Err(CommandError::new(format!("the plan is not saved: {shown} {why}"))
            .help("give the name of a file that is not there yet, or of a plan file"))
    };
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot save the plan to {shown}"), &error)
    };
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return refuse("is a link to what is not there");
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return new_file(path),
        Err(error) => return Err(fail(error)),
    };
    if found.is_dir() {
        return refuse("is a folder");
    }
    // An open stream is not replaced as a file: the process that opened it would not see the new one.
    let is_open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    if !found.is_file() || is_open.iter().any(|place| path.starts_with(place)) {
        return Ok(Place::Stream(path.to_owned()));
    }
    let real = path.canonicalize().map_err(fail)?;
    if let Some(why) = reason_against(&real) {
        return refuse(why);
    }
    if found.len() > 0 && !is_plan(&real).map_err(fail)? {
        return refuse("is there already, and is no plan file");
    }
    Ok(Place::File(real))
}

/// Checks the place of a file that does not exist yet, by its folder.
fn new_file(path: &Path) -> Result<Place, CommandError> {
    let fail = |error: &dyn std::error::Error| {
        CommandError::caused(format_args!("cannot save the plan to {}", path.display()), error)
    };
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(fail(&std::io::Error::from(ErrorKind::InvalidFilename)));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let real = folder.canonicalize().map_err(|error| fail(&error))?.join(name);
    match reason_against(&real) {
        None => Ok(Place::File(path.to_owned())),
        Some(why) => {
            let message = format!("the plan is not saved: {} {why}", path.display());
            Err(CommandError::new(message).help("give another name"))
        }
    }
}

/// Returns the reason why no plan may be saved to this path: it is one of Plumb's own files or a file of a
/// spec. Returns `None` for other paths.
fn reason_against(real: &Path) -> Option<&'static str> {
    if real.components().any(|part| part.as_os_str() == STATE_FOLDER) {
        return Some("lies in .plumb, which is Plumb's own");
    }
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    engine::config::is_spec_file(&name).then_some("would be a file of a spec")
}

fn is_plan(path: &Path) -> std::io::Result<bool> {
    let mut head = Vec::new();
    let mut file = File::open(path)?;
    (&mut file).take(HEAD).read_to_end(&mut head)?;
    if !state::cipher::is_sealed(&head) {
        return Ok(file::is_plan(&head));
    }
    file.read_to_end(&mut head)?;
    let cipher = environment::cipher().ok();
    Ok(cipher.is_some_and(|cipher| cipher.open(saved_plan::CONTEXT, &head).is_ok()))
}

/// Writes a plan file, completely or not at all, and readable by its owner only.
pub(super) fn save(
    path: &Path,
    plan: &Plan,
    made: &Made,
    (base, given): (&Path, Option<&Path>),
) -> Result<(), CommandError> {
    refuse_written_secrets(made)?;
    let view = serde_json::to_value(made.view())
        .map_err(|error| CommandError::caused("cannot write the plan", &error))?;
    let folder = saved_plan::folder_of(base, given)?;
    let made_at = match plan.base.first_key {
        Some(_) => Some(saved_plan::place_of(&given.map_or(base.to_owned(), |it| base.join(it)))?),
        None => None,
    };
    let inputs = Inputs { folder, place: made_at, ..made.inputs.clone().unwrap_or_default() };
    let text = file::write(&SavedPlan { inputs, plan: plan.clone(), view });
    let bytes = environment::cipher()?
        .seal(saved_plan::CONTEXT, text.as_bytes())
        .map_err(|error| CommandError::caused("cannot write the plan", &error))?;
    // The place is checked again, because planning takes time.
    let written = match place(path)? {
        Place::File(path) => write_private(&path, &bytes),
        Place::Stream(path) => write_into(&path, &bytes),
    };
    written.map_err(|error| {
        CommandError::caused(format_args!("cannot write the plan to {}", path.display()), &error)
    })
}

/// Writes a file that only its owner can read, completely or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    let disk = RealDisk;
    let write = || {
        // The file is made new: one that was left behind, or a link of that name, has another mode and place.
        let file = disk.create(&unfinished)?;
        disk.write(&file, bytes)?;
        disk.sync(&file)?;
        disk.rename(&unfinished, path)
    };
    if let Err(error) = write() {
        // If this fails for the same reason as the write, the next attempt removes the file.
        drop(std::fs::remove_file(&unfinished));
        return Err(error);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    disk.sync_folder(folder.unwrap_or(Path::new(".")))
}

/// Writes to an existing device, pipe or stream.
fn write_into(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut stream = OpenOptions::new().append(true).open(path)?;
    stream.write_all(bytes)?;
    stream.flush()
}

/// Refuses to write a plan file in clear that would hold a secret.
fn refuse_written_secrets(made: &Made) -> Result<(), CommandError> {
    if made.written_secrets.is_empty() || environment::cipher()?.is_on() {
        return Ok(());
    }
    // The line itself is not shown, because it has the secret.
    let said = |it: &WrittenSecret| match view::place(it.span, &made.sources) {
        view::Place { file: Some(file), line: Some(line), .. } => {
            format!("{} ({file}:{line})", it.what)
        }
        _ => it.what.clone(),
    };
    let (secrets, count) = (&made.written_secrets, made.written_secrets.len());
    let shown = &secrets[..count.min(PLACES_MAX)];
    let mut places: Vec<String> = shown.iter().map(said).collect();
    if count > PLACES_MAX {
        places.push(format!("and {} more", count - PLACES_MAX));
    }
    let whats = if places.len() == 1 { "a secret in clear" } else { "secrets in clear" };
    Err(CommandError::new(format!(
        "the plan is not saved: the file would hold {whats}, {}",
        places.join(", ")
    ))
    .help(ways_out(shown)))
}

/// Returns the help that keeps secrets out of a plan file in clear.
fn ways_out(secrets: &[WrittenSecret]) -> String {
    let defaults = secrets.iter().filter_map(|secret| secret.default_of.as_ref());
    let mut ways: Vec<String> = defaults
        .map(|name| format!("remove the default of `{name}` and give {}, ", environment_name(name)))
        .collect();
    if ways.len() < secrets.len() {
        let each = if ways.is_empty() { "each" } else { "each other one" };
        ways.push(format!(
            "give {each} as a variable with `sensitive = true`, show what is none in an output of its own, "
        ));
    }
    let variable = state::cipher::VARIABLE;
    format!("{}or set {variable}, with which plan files are encrypted", ways.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_default_is_removed_and_given_by_its_variable() {
        let secret = |default_of: Option<&str>| WrittenSecret {
            what: String::new(),
            span: None,
            default_of: default_of.map(Into::into),
        };
        let of_default = "remove the default of `token` and give PLUMB_VAR_TOKEN, ";
        let of_others = "as a variable with `sensitive = true`";
        let said = ways_out(&[secret(Some("token"))]);
        assert!(said.starts_with(of_default) && !said.contains(of_others), "{said}");
        let said = ways_out(&[secret(Some("token")), secret(None)]);
        assert!(said.contains(of_default), "{said}");
        assert!(said.contains(&format!("give each other one {of_others}")), "{said}");
        let said = ways_out(&[secret(None)]);
        assert!(said.starts_with(&format!("give each {of_others}")), "{said}");
    }

    fn said(path: &Path) -> String {
        place(path).unwrap_err().message
    }

    #[test]
    fn only_a_plan_or_an_empty_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let real = |name: &str| Place::File(path(name).canonicalize().unwrap());
        assert_eq!(place(&path("new")).unwrap(), Place::File(path("new")));
        std::fs::write(path("empty"), "").unwrap();
        assert_eq!(place(&path("empty")).unwrap(), real("empty"));
        std::fs::write(path("plan"), "{\n  \"format\": \"plumb-plan-file/1\",\n torn").unwrap();
        assert_eq!(place(&path("plan")).unwrap(), real("plan"));
        std::fs::write(path("notes"), "of somebody").unwrap();
        assert!(said(&path("notes")).ends_with("is there already, and is no plan file"));
        std::fs::write(path("other"), "{\n  \"format\": \"plumb-state/1\"").unwrap();
        assert!(said(&path("other")).ends_with("and is no plan file"));
        assert!(said(dir.path()).ends_with("is a folder"));
        assert!(place(&path("nowhere/plan")).is_err());
    }

    #[test]
    fn what_plumb_goes_by_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path(".plumb")).unwrap();
        for name in [".plumb/state.json", ".plumb/new"] {
            assert!(said(&path(name)).contains("lies in .plumb"), "{name}");
        }
        for name in ["plumb.toml", "more.plumb.toml"] {
            assert!(said(&path(name)).contains("a file of a spec"), "{name}");
            // An existing file there is refused, too, even an empty one or one that has a plan by mistake.
            std::fs::write(path(name), "").unwrap();
            assert!(said(&path(name)).contains("a file of a spec"), "{name}");
        }
        std::os::unix::fs::symlink(".plumb", path("link")).unwrap();
        assert!(said(&path("link/new")).contains("lies in .plumb"));
    }

    #[test]
    fn links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("empty"), "").unwrap();
        for (to, name) in [("empty", "a"), ("plumb.toml", "b"), ("nothing", "c")] {
            std::os::unix::fs::symlink(to, path(name)).unwrap();
        }
        let Place::File(file) = place(&path("a")).unwrap() else { panic!("no file") };
        write_private(&file, b"plan").unwrap();
        assert_eq!(std::fs::read(path("empty")).unwrap(), b"plan");
        assert!(path("a").is_symlink());
        assert!(said(&path("c")).ends_with("is a link to what is not there"));
        std::fs::write(path("plumb.toml"), "").unwrap();
        assert!(said(&path("b")).contains("a file of a spec"));
    }
}
