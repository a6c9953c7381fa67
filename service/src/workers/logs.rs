//! The output of workers: one file per worker, with a bounded size, so that no handler can fill the
//! disk.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tokio::fs::OpenOptions;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::ids;
use crate::own_files::itself;

/// The most bytes of output that are kept for one worker.
const LOG_MAX: usize = 64 << 20;

/// The most logs of earlier runs of the service that are kept.
const LOGS_MAX: usize = 500;

/// The word that stands for the endpoint in the name of a pod's log.
pub(crate) const POD: &str = "pod";

/// Returns the path of the log of a worker. Its name contains both ids, so that people find the
/// logs of an endpoint without asking the service.
pub(crate) fn path(data: &Path, endpoint: &str, worker: &str) -> PathBuf {
    data.join("logs").join(format!("{endpoint}.{worker}.log"))
}

/// Returns true if a file of this name is the log of a worker or a pod. The folder may contain
/// files of other people, which must not be removed.
fn is_log(name: &str) -> bool {
    let ids = name.strip_suffix(".log").and_then(|ids| ids.split_once('.'));
    ids.is_some_and(|(of, id)| (of == POD || ids::is_long(of)) && ids::is_long(id))
}

/// The log of a worker, as the file system shows it.
pub(crate) struct LogFile {
    pub(crate) worker: String,
    pub(crate) bytes: u64,
    /// The time when the worker last printed something, in milliseconds since 1970.
    pub(crate) written_at: i64,
}

/// Reads the folder, and returns the logs of an endpoint's workers, the one with the newest output
/// first.
pub(crate) fn of_endpoint(data: &Path, endpoint: &str) -> Vec<LogFile> {
    let entries = std::fs::read_dir(data.join("logs")).into_iter().flatten().flatten();
    let mut logs: Vec<LogFile> = entries
        .filter_map(|entry| {
            let (name, about) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
            let (of, worker) = name.strip_suffix(".log")?.split_once('.')?;
            let written = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            (is_log(&name) && of == endpoint && about.is_file()).then(|| LogFile {
                worker: worker.to_owned(),
                bytes: about.len(),
                written_at: i64::try_from(written.as_millis()).unwrap_or(i64::MAX),
            })
        })
        .collect();
    logs.sort_by_key(|log| std::cmp::Reverse(log.written_at));
    logs
}

/// Removes the log of a worker.
pub(crate) fn remove(data: &Path, endpoint: &str, worker: &str) {
    let path = path(data, endpoint, worker);
    if path.strip_prefix(data.join("logs")).is_ok_and(|name| name.to_str().is_some_and(is_log)) {
        // A worker that never started has no log.
        drop(std::fs::remove_file(path));
    }
}

/// Removes the oldest logs of earlier runs of the service above [`LOGS_MAX`].
pub(crate) fn prune(data: &Path) {
    let entries = std::fs::read_dir(data.join("logs")).into_iter().flatten().flatten();
    let logs = entries.filter(|entry| {
        let is_file = entry.file_type().is_ok_and(|it| it.is_file());
        is_file && entry.file_name().to_str().is_some_and(is_log)
    });
    let mut logs: Vec<_> = logs
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    logs.sort();
    let surplus = logs.len().saturating_sub(LOGS_MAX);
    for (_, path) in logs.into_iter().take(surplus) {
        drop(std::fs::remove_file(path));
    }
}

/// Removes a log that is full, so that the next process begins a new one.
pub(crate) fn begin(path: &Path) {
    let is_full = path.metadata().is_ok_and(|found| found.len() >= LOG_MAX as u64);
    if is_full {
        // If this fails, the old log is continued.
        drop(std::fs::remove_file(path));
    }
}

/// Writes the output of a worker into its log until the worker is gone. Output above the limit is
/// read and dropped, so that a worker does not block when it prints.
pub(crate) async fn keep(output: impl AsyncRead + Unpin, path: PathBuf) {
    keep_at_most(output, path, LOG_MAX).await;
}

async fn keep_at_most(mut output: impl AsyncRead + Unpin, path: PathBuf, most: usize) {
    let options = OpenOptions::from(itself().create(true).append(true).clone());
    let mut file = options.open(&path).await.ok();
    let mut buffer = vec![0u8; 16 << 10];
    let mut room = most;
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let Some(open) = &mut file else { continue };
        let kept = count.min(room);
        room -= kept;
        let written = open.write_all(&buffer[..kept]).await.is_ok() && open.flush().await.is_ok();
        if written && room == 0 {
            let note = b"\n[the log is full; what follows is not kept]\n";
            drop(open.write_all(note).await);
            drop(open.flush().await);
        }
        if !written || room == 0 {
            file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Returns the path of the log of a worker with this number.
    fn log(folder: &Path, number: usize) -> PathBuf {
        path(folder, "endpoint000001", &format!("w{number:013}"))
    }

    #[test]
    fn the_newest_logs_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        for number in 0..LOGS_MAX + 3 {
            std::fs::write(log(folder.path(), number), "x").unwrap();
        }
        let old = std::fs::File::open(log(folder.path(), 7)).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        prune(folder.path());
        let left = std::fs::read_dir(folder.path().join("logs")).unwrap().count();
        assert_eq!(left, LOGS_MAX);
        assert!(!log(folder.path(), 7).exists());
    }

    #[test]
    fn what_is_no_workers_log_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        let others = |number| match number % 4 {
            0 => format!("img{number}.jpg"),
            1 => format!("access-{number}.log"),
            2 => format!("server.{number:014}.log"),
            _ => format!("endpoint000001.w{number:013}.log.gz"),
        };
        let others: Vec<_> = (0..LOGS_MAX + 100).map(|number| logs.join(others(number))).collect();
        for path in &others {
            std::fs::write(path, "of somebody").unwrap();
            let file = std::fs::File::open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        std::fs::write(log(folder.path(), 1), "x").unwrap();
        prune(folder.path());
        assert!(others.iter().all(|path| path.exists()) && log(folder.path(), 1).exists());
        // A path from an id that is not valid is not removed either.
        std::fs::write(folder.path().join("mine.w.log"), "of somebody").unwrap();
        remove(folder.path(), "../mine", "w");
        remove(folder.path(), "endpoint000001", "w0000000000001");
        assert!(folder.path().join("mine.w.log").exists() && !log(folder.path(), 1).exists());
    }

    #[tokio::test]
    async fn a_log_is_bounded_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.log");
        let talk = vec![b'x'; 100_000];
        keep_at_most(&talk[..], path.clone(), 40_000).await;
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(kept.starts_with("xxx") && kept.ends_with("not kept]\n"));
        assert_eq!(kept.matches('x').count(), 40_000);
    }
}
