//! The folder of the state. It is made so that it never exists without content; it is refused if another
//! user, or every user, can write it; and it is tested before a run relies on it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::files::{Files, file_failed};
use crate::error::StoreError;

/// Makes the folder ready to be locked.
pub(super) fn prepare(files: &Files) -> Result<(), StoreError> {
    let Files { folder, disk, .. } = files;
    refuse_astray(folder)?;
    refuse_links(files)?;
    if folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        refuse_strange(folder, &staged(folder))?;
        make(folder).map_err(|error| file_failed("make the folder", folder, error))?;
    }
    disk.make_folder(folder).map_err(|error| file_failed("make the folder", folder, error))?;
    refuse_foreign(folder)?;
    let backups = files.backups();
    disk.make_folder(&backups).map_err(|error| file_failed("make the folder", &backups, error))
}

/// Keeps the folder, which contains the key of the fingerprints, out of git. Called under the lock, before
/// anything else is written. A `.gitignore` that a full disk or a power cut left empty hides nothing, and is
/// written again; one that a person wrote stays.
pub(super) fn hide(files: &Files) -> Result<(), StoreError> {
    let Files { folder, disk, .. } = files;
    let ignore = folder.join(".gitignore");
    if ignore.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let staged = ignore.with_added_extension("tmp");
    let write = || {
        let file = disk.create(&staged)?;
        disk.write(&file, b"*\n")?;
        disk.sync(&file)?;
        disk.rename(&staged, &ignore)
    };
    write().map_err(|error| file_failed("write", &ignore, error))
}

/// Returns the temporary name under which the folder is made.
fn staged(folder: &Path) -> PathBuf {
    folder.with_added_extension("tmp")
}

/// Refuses anything in the place where the folder is made first, unless a run that was cut short left it. It
/// would become the folder, and things that a repository put into it, especially links, would count as
/// Plumb's.
fn refuse_strange(folder: &Path, staged: &Path) -> Result<(), StoreError> {
    match is_left_over(staged) {
        Ok(true) => return Ok(()),
        // Another run was faster, and the folder has its final name by now.
        _ if folder.is_dir() => return Ok(()),
        Ok(false) => {}
        Err(error) => return Err(file_failed("look at", staged, error)),
    }
    let shown = staged.display();
    let what = if staged.is_symlink() {
        format!("{shown} is a link to {}", target(staged).display())
    } else {
        format!("{shown} was not left by Plumb: there is more in it than an empty `backups`")
    };
    let help = "nothing was changed; Plumb makes its folder there: find out who put it there, and \
                move it away or remove it; the target of a link stays";
    Err(StoreError::suspicious(what, help))
}

/// Returns true if there is nothing but the parts that [`make`] leaves when it is cut short.
fn is_left_over(staged: &Path) -> std::io::Result<bool> {
    let look = || -> std::io::Result<bool> {
        if !staged.symlink_metadata()?.is_dir() {
            return Ok(false);
        }
        for entry in staged.read_dir()? {
            let entry = entry?;
            let is_room = entry.file_name() == "backups" && entry.file_type()?.is_dir();
            if !is_room || entry.path().read_dir()?.next().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match look() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        looked => looked,
    }
}

/// Makes the folder together with the folder for backups, in one step. So an empty folder was never left by a
/// run, wherever that was cut short.
fn make(folder: &Path) -> std::io::Result<()> {
    let staged = staged(folder);
    let make = |path: &Path| match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    };
    let made = make(&staged)
        .and_then(|()| make(&staged.join("backups")))
        .and_then(|()| File::open(&staged)?.sync_all())
        .and_then(|()| std::fs::rename(&staged, folder));
    match made {
        // Another run was faster, and may have renamed the folder that both made.
        Err(_) if folder.is_dir() => {
            std::fs::remove_dir(staged.join("backups")).ok();
            std::fs::remove_dir(&staged).ok();
            Ok(())
        }
        made => made,
    }
}

/// Refuses an empty folder, and a link that leads to no state. Both remain if the place of a state is not
/// mounted, or was not copied; neither means a first run.
pub(super) fn refuse_hollow(files: &Files) -> Result<(), StoreError> {
    let folder = &files.folder;
    refuse_astray(folder)?;
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty {
        return Ok(());
    }
    let help = format!(
        "nothing was changed; restore its content (is a volume not mounted?), or put a copy of \
         the state in place with `plumb state push FILE`; if nothing was ever applied, remove the \
         folder or, if it cannot be removed, create {}",
        files.backups().display()
    );
    Err(StoreError::Missing { what: format!("{} exists and is empty", folder.display()), help })
}

/// Refuses links in place of the files that Plumb makes in the folder. Plumb makes no links, and through one
/// from a repository, files elsewhere would be read, overwritten and sealed.
pub(super) fn refuse_links(files: &Files) -> Result<(), StoreError> {
    let names = [files.lock(), files.state(), files.journal(), files.moved(), files.backups()];
    let Some(link) = names.into_iter().find(|path| path.is_symlink()) else { return Ok(()) };
    Err(StoreError::suspicious(
        format!("{} is a link to {}", link.display(), target(&link).display()),
        "nothing was changed; Plumb makes no links there: find out who put it there, and remove \
         it; its target stays",
    ))
}

/// Refuses a folder that is a link, unless it leads to a state, or to a place that a person prepared for one.
/// A link that leads nowhere remains if something is not mounted. A link from a repository may lead to any
/// folder, whose files would count as Plumb's.
pub fn refuse_astray(folder: &Path) -> Result<(), StoreError> {
    let is_plumbs = ["state.json", "backups"].iter().any(|name| folder.join(name).exists());
    if !folder.is_symlink() || is_plumbs {
        return Ok(());
    }
    let (shown, to) = (folder.display(), target(folder));
    let to = to.display();
    let (what, help) = if folder.exists() {
        let help = format!(
            "nothing was changed; restore what was there (is a volume not mounted?), or remove \
             the link; to start over where it leads, create {}",
            folder.join("backups").display()
        );
        (format!("{shown} is a link to {to}, where there is no state"), help)
    } else {
        let help = "nothing was changed; restore its target (is a volume not mounted?); if \
                    nothing was ever applied, or a copy of the state is to be put in place, \
                    remove the link";
        (format!("{shown} is a link to {to}, which does not exist"), help.to_owned())
    };
    Err(StoreError::Missing { what, help })
}

/// Returns the target of a link, for messages.
fn target(link: &Path) -> PathBuf {
    std::fs::read_link(link).unwrap_or_default()
}

/// Tests, under the lock, the operations of a save. So a run that could make objects and then not save that
/// it did is refused before it makes any.
pub(super) fn probe(files: &Files) -> Result<(), StoreError> {
    let probes = [files.state(), files.journal(), files.backups().join("probe")];
    for probe in probes.map(|path| path.with_added_extension("tmp")) {
        try_out(&probe).map_err(|error| file_failed("write", &probe, error))?;
    }
    Ok(())
}

/// Makes a file and removes it. A left-over file with that name is removed, too.
fn try_out(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    std::fs::remove_file(path)
}

/// Refuses a folder of another user, or one that everybody can write: its content makes Plumb delete objects.
fn refuse_foreign(folder: &Path) -> Result<(), StoreError> {
    let metadata =
        folder.metadata().map_err(|error| file_failed("look at the folder", folder, error))?;
    if metadata.mode() & 0o002 != 0 {
        return Err(StoreError::suspicious(
            format!("every user of this machine can write to {}", folder.display()),
            format!("check its content, then run `chmod 700 {}`", folder.display()),
        ));
    }
    let user = rustix::process::geteuid();
    if metadata.uid() != user.as_raw() && !user.is_root() {
        let owner = metadata.uid();
        return Err(StoreError::refused(format!(
            "{} belongs to another user (uid {owner}; Plumb runs as uid {})",
            folder.display(),
            user.as_raw()
        )));
    }
    Ok(())
}
