//! `plumb job logs`: shows the logs of workers of the service on this machine. It only reads files; nothing
//! is called or started.

use std::fs::DirEntry;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use state::disk;

use crate::args::job::Logs;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::jobs;
use crate::output::Output;

/// The longest line that is shown, in characters. Longer lines are shown in parts.
const LINE_MAX: usize = 4_000;

pub(super) async fn run(
    base: &Path,
    args: &Logs,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    let id = jobs::id(&folder, &args.target).await?;
    let data = match &args.data {
        Some(data) => base.join(data),
        None => folder.service_data()?,
    };
    service::refuse_strange(&data)?;
    let logs = logs(&data.join("logs"), &id)?;
    let wanted = |worker: &str| args.worker.as_deref().is_none_or(|wanted| wanted == worker);
    let logs: Vec<_> = logs.into_iter().filter(|(worker, _)| wanted(worker)).collect();
    if logs.is_empty() {
        return Err(CommandError::new(format!(
            "there is no worker's log of {} in {}",
            args.target.endpoint,
            data.display()
        ))
        .help("logs are kept by the service on this machine; --data names another data folder"));
    }
    let talked: Vec<_> = logs
        .iter()
        .filter(|(_, path)| path.metadata().is_ok_and(|found| found.len() > 0))
        .collect();
    if talked.is_empty() {
        output.talk("its workers said nothing\n");
    }
    for (worker, path) in &talked {
        if talked.len() > 1 {
            output.data(&format!("==> worker {} <==\n", render::safe::text(worker)));
        }
        print(path, output)?;
    }
    Ok(Status::Done)
}

/// Returns the logs of an endpoint's workers, the oldest first.
fn logs(folder: &Path, endpoint: &str) -> Result<Vec<(String, PathBuf)>, CommandError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let cannot = format_args!("cannot read {}", folder.display()).to_string();
            return Err(CommandError::caused(cannot, &error));
        }
    };
    let mut found = Vec::new();
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|it| it.is_file());
    for entry in entries.flatten().filter(is_file) {
        let name = entry.file_name();
        let worker = name
            .to_str()
            .and_then(|name| name.strip_prefix(endpoint)?.strip_prefix('.')?.strip_suffix(".log"));
        let since = entry.metadata().and_then(|found| found.modified()).ok();
        if let Some(worker) = worker {
            found.push((since, worker.to_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, worker, path)| (worker, path)).collect())
}

/// Prints a log line by line. Escapes all that could act on a terminal or a CI system, as workers may write
/// anything.
fn print(path: &Path, output: &Output) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", path.display()), &error)
    };
    let mut reader = BufReader::new(disk::nofollow().read(true).open(path).map_err(cannot)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A worker may write without line ends, so lines are read in parts.
        let part = u64::try_from(LINE_MAX).unwrap_or(u64::MAX);
        let mut bounded = std::io::Read::take(&mut reader, part);
        if bounded.read_until(b'\n', &mut line).map_err(cannot)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']).replace('\t', "    ");
        output.data(&(render::safe::line(&text).into_owned() + "\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_logs_of_the_endpoint_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["e1.w1.log", "e1.w2.log", "e12.w3.log", "e1.log", "other"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        // A link does not lead to the log of a worker of this endpoint.
        std::os::unix::fs::symlink("other", folder.path().join("e1.w4.log")).unwrap();
        let mut found: Vec<_> =
            logs(folder.path(), "e1").unwrap().into_iter().map(|(worker, _)| worker).collect();
        found.sort();
        assert_eq!(found, ["w1", "w2"]);
        assert!(logs(&folder.path().join("none"), "e1").unwrap().is_empty());
    }
}
