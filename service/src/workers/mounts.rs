//! The folders of a worker: a mount namespace of its own, in which each folder has the path that
//! programs of the real service expect.
//!
//! The process that becomes the worker enters the namespace just before that. If the system allows
//! no namespace, the service uses links and variables instead.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The variable with the mounts for the process that becomes a worker. The worker does not see it.
pub(crate) const MOUNTS: &str = "PLUMB_MOUNTS";

/// A folder of this machine, and the path at which a worker finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

/// Enters a namespace with the mounts in the variable. Their order ensures that no mount covers
/// another one.
pub(super) fn enter(mounts: &OsStr) -> io::Result<()> {
    let mounts: Vec<Mount> = serde_json::from_slice(mounts.as_encoded_bytes())?;
    let here = std::env::current_dir();
    system::leave_shared_mounts()?;
    let is_missing = |mount: &Mount| {
        let top: PathBuf = mount.target.components().take(2).collect();
        !top.exists()
    };
    if mounts.iter().any(is_missing) {
        system::change_root()?;
    }
    for mount in &mounts {
        system::bind(mount)?;
    }
    here.and_then(std::env::set_current_dir)
}

/// Returns true if this system lets a process enter such a namespace. This process has then entered
/// one.
pub(super) fn is_allowed() -> bool {
    system::leave_shared_mounts().and_then(|()| system::change_root()).is_ok()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::io;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
    use rustix::mount::{mount, mount_bind_recursive, mount_change, unmount};
    use rustix::process::{getegid, geteuid, pivot_root};
    use rustix::thread::UnshareFlags;

    use super::Mount;

    /// The path of the new root until it becomes the root.
    const BASE: &str = "/tmp";
    /// The temporary path of the old root inside of the new one.
    const OLD: &str = ".plumb-old-root";

    /// Separates the mounts of this process from those of all others. If this process may not do
    /// that, it first enters a user namespace, in which it may.
    #[expect(deprecated, reason = "this process has one thread, which shares nothing")]
    pub(super) fn leave_shared_mounts() -> io::Result<()> {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        if rustix::thread::unshare(UnshareFlags::NEWNS).is_err() {
            rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        Ok(mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?)
    }

    /// Makes a new root with the content of the old one, to which folders can be added.
    pub(super) fn change_root() -> io::Result<()> {
        mount("plumb", BASE, "tmpfs", MountFlags::empty(), Some(c"mode=755"))?;
        let old = Path::new("/").join(OLD);
        let old_below_base = Path::new(BASE).join(OLD);
        fs::create_dir(&old_below_base)?;
        pivot_root(BASE, &old_below_base)?;
        std::env::set_current_dir("/")?;
        for entry in fs::read_dir(&old)? {
            let entry = entry?;
            let (from, to) = (entry.path(), Path::new("/").join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
                continue;
            }
            if kind.is_dir() {
                fs::create_dir(&to)?;
            } else {
                fs::write(&to, "")?;
            }
            mount_bind_recursive(&from, &to)?;
        }
        unmount(&old, UnmountFlags::DETACH)?;
        fs::remove_dir(&old)
    }

    pub(super) fn bind(mount: &Mount) -> io::Result<()> {
        fs::create_dir_all(&mount.target)?;
        Ok(mount_bind_recursive(&mount.source, &mount.target)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use super::Mount;

    pub(super) fn leave_shared_mounts() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn change_root() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn bind(_mount: &Mount) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns true if a folder can be mounted at a path from a template.
pub(crate) fn is_usable(path: &Path) -> bool {
    use std::path::Component::{Normal, RootDir};
    let mut components = path.components();
    components.next() == Some(RootDir)
        && path.components().count() > 1
        && components.all(|component| matches!(component, Normal(_)))
}
