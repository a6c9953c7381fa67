//! The fetch of repositories with the `git` of this machine. Only `plumb init` does it.

use std::path::Path;
use std::process::Command;

use engine::config::modules::source::Repository;

use super::lock::{Locked, digest};
use crate::error::CommandError;

/// The protocols that git may use. With others, an address could run a command.
const PROTOCOLS: &str = "https:http:ssh:git:file";

/// The letters that no tag, branch or hash has; git takes a text with them for more than one revision.
const OF_NO_REVISION: [char; 8] = [':', '^', '~', '*', '?', '[', '\\', ' '];

/// Fetches a repository at its revision into a new folder, without its history.
pub(super) fn fetch(repository: &Repository, folder: &Path) -> Result<Locked, CommandError> {
    let Repository { url, revision } = repository;
    if revision.starts_with(['-', '+']) || revision.contains(OF_NO_REVISION) || url.starts_with('-')
    {
        return Err(CommandError::new(format!("{revision} is not a revision"))
            .help("write a tag, a branch or the hash of a commit"));
    }
    let git = Git { folder, repository };
    std::fs::create_dir_all(folder).map_err(|error| {
        CommandError::caused(format_args!("cannot make {}", folder.display()), &error)
    })?;
    git.run(&["init", "--quiet"])?;
    // A server need not offer a single commit by its hash. Then everything is fetched.
    let single = git.run(&["fetch", "--quiet", "--depth", "1", url, revision]);
    let checked_out = if single.is_ok() {
        "FETCH_HEAD"
    } else {
        git.run(&["fetch", "--quiet", "--tags", url, "+refs/heads/*:refs/remotes/all/*"])?;
        revision
    };
    git.run(&["checkout", "--quiet", "--detach", checked_out, "--"])?;
    let commit = git.run(&["rev-parse", "HEAD"])?.trim().to_owned();
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", folder.display()), &error)
    };
    std::fs::remove_dir_all(folder.join(".git")).map_err(fail)?;
    Ok(Locked { commit, digest: digest(folder).map_err(fail)? })
}

/// The variables in which a hook of git has its own repository.
const OF_A_HOOK: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

struct Git<'a> {
    folder: &'a Path,
    repository: &'a Repository,
}

impl Git<'_> {
    /// Runs git in the folder, and returns its output.
    fn run(&self, arguments: &[&str]) -> Result<String, CommandError> {
        let Repository { url, revision } = self.repository;
        let mut git = Command::new("git");
        for variable in OF_A_HOOK {
            git.env_remove(variable);
        }
        let output = git
            .args(["-c", "core.autocrlf=false", "-c", "advice.detachedHead=false"])
            .args(arguments)
            .current_dir(self.folder)
            .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .env("GIT_TERMINAL_PROMPT", "0")
            .output()
            .map_err(|error| {
                CommandError::caused("cannot run `git`, which fetches repositories", &error)
                    .help("install git, or give a path as `source` in place of a repository")
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Err(CommandError::new(format!("cannot fetch {url} at {revision}: {}", said.join("; "))).help(
            "check the address and the revision; git must be able to read it without asking for a password",
        ))
    }
}
