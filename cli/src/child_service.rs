//! The service on this machine as a child process. A command uses the one that runs or starts one, and keeps
//! it alive while it needs it.
//!
//! `serve.json` in the data folder has the addresses of the folder's service, no matter if a command or a
//! person runs it. The file is believed only while some process holds the folder's lock: the file also stays
//! behind when a service is killed, and is copied along with a folder, and then another program may listen on
//! its addresses. A command keeps one connection open as its lease. The service ends when the last lease
//! closes, so a service that was found may be about to end. It then refuses the lease, and the next try finds
//! or starts another service. If two commands start a service at once, the one that does not get the folder's
//! lock ends by itself.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use state::disk::{self, Disk as _, RealDisk};

use crate::environment;
use crate::error::{CommandError, chain};

/// The longest time to find or start a service.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(25);
/// The largest `serve.json` that is read, in bytes: two addresses and a port need less.
const ADDRESSES_MAX: u64 = 64 * 1024;
const PORT_MAX: u64 = 16;
/// The part of the log that an error shows, in bytes and in lines.
const TAIL_BYTES: u64 = 4_096;
const TAIL_LINES: usize = 5;

/// A service that runs, and the lease that keeps it running until this value is dropped.
pub(crate) struct ChildService {
    addresses: Addresses,
    /// True if this command started it.
    started: bool,
    /// The task that reads the lease's connection. The connection closes when the task is dropped.
    lease: tokio::task::JoinHandle<()>,
}

/// The content of `serve.json`.
#[derive(Deserialize)]
struct Addresses {
    rest_url: String,
    graphql_url: String,
    queue_url: String,
    lease_url: String,
    key: String,
    pid: u32,
}

impl ChildService {
    /// Returns the value of an environment variable that has an address or the key of the service.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = match name {
            environment::REST_URL => &self.addresses.rest_url,
            environment::GRAPHQL_URL => &self.addresses.graphql_url,
            // The management paths of version 2 and the job API share a prefix.
            environment::QUEUE_URL | environment::V2_URL => &self.addresses.queue_url,
            environment::API_KEY => &self.addresses.key,
            _ => return None,
        };
        Some(value.clone())
    }

    /// Returns a description of the service for people.
    pub(crate) fn describe(&self) -> String {
        let how = if self.started { "started" } else { "found running" };
        let Addresses { rest_url, pid, .. } = &self.addresses;
        format!("using the service on this machine: {rest_url} (process {pid}, {how})")
    }
}

impl Drop for ChildService {
    fn drop(&mut self) {
        self.lease.abort();
    }
}

/// Finds or starts the service of the data folder `data`.
pub(crate) async fn connect(data: &Path) -> Result<ChildService, CommandError> {
    let program = std::env::current_exe()
        .map_err(|error| CommandError::caused("cannot find this program to start it", &error))?;
    connect_with(data, &program, PATIENCE).await
}

async fn connect_with(
    data: &Path,
    program: &Path,
    patience: Duration,
) -> Result<ChildService, CommandError> {
    service::refuse_strange(data)?;
    let client = client()?;
    let until = Instant::now() + patience;
    let mut child: Option<Child> = None;
    let mut started = false;
    loop {
        let found = if is_held(data) { read_addresses(data)? } else { None };
        let refused = match found {
            Some(addresses) => match take_lease(&client, &addresses).await {
                Ok(lease) => {
                    return Ok(ChildService { addresses, started, lease });
                }
                Err(reason) => reason,
            },
            None => "it did not say where it listens".to_owned(),
        };
        // Only one child is started at a time. A child that still runs is about to be ready: it does not wait
        // for the folder's lock, but ends without it.
        let ended = match &mut child {
            None => true,
            Some(child) => child.try_wait().is_ok_and(|status| status.is_some()),
        };
        if Instant::now() >= until {
            return Err(failure(data, &refused));
        }
        if ended {
            child = Some(start(data, program)?);
            started = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns a client for loopback addresses only: without proxies, without redirects, and without a limit on
/// the time of a lease.
fn client() -> Result<reqwest::Client, CommandError> {
    // A client needs a TLS implementation, even for loopback. An error here says that one was chosen before,
    // so it is ignored.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(2))
        .build()
        .map_err(|error| CommandError::caused("cannot make a client for the service", &error))
}

/// Returns true if a service holds the data folder.
fn is_held(data: &Path) -> bool {
    let path = data.join("lock");
    let is_there = matches!(disk::look(&path), Ok(Some(_)));
    let file = is_there.then(|| disk::nofollow().read(true).open(path).ok()).flatten();
    // The lock is shared, so that two commands that check at once do not take each other for a service.
    file.is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn read_addresses(data: &Path) -> Result<Option<Addresses>, CommandError> {
    let path = data.join("serve.json");
    // The file is always replaced as a whole. One that cannot be read belongs to no service, and a start
    // replaces it.
    let addresses = |bytes: Vec<u8>| serde_json::from_slice(&bytes).ok().filter(on_loopback);
    match RealDisk.read(&path, ADDRESSES_MAX) {
        Ok(found) => Ok(found.and_then(addresses)),
        Err(error) => {
            Err(CommandError::caused(format_args!("cannot read {}", path.display()), &error)
                .help("remove it: the service writes it anew"))
        }
    }
}

/// Returns true if all addresses are on this machine: the key in the file is sent nowhere else, whoever wrote
/// the file.
fn on_loopback(addresses: &Addresses) -> bool {
    let Addresses { rest_url, graphql_url, queue_url, lease_url, .. } = addresses;
    [rest_url, graphql_url, queue_url, lease_url].into_iter().all(|text| {
        reqwest::Url::parse(text)
            .is_ok_and(|url| url.host_str().is_some_and(engine::hosts::is_loopback))
    })
}

/// Takes a lease and keeps its connection open in the background.
async fn take_lease(
    client: &reqwest::Client,
    addresses: &Addresses,
) -> Result<tokio::task::JoinHandle<()>, String> {
    let ask = client.get(&addresses.lease_url).bearer_auth(&addresses.key).send();
    let answer = tokio::time::timeout(Duration::from_secs(3), ask).await;
    let mut answer = match answer {
        Ok(Ok(answer)) if answer.status().is_success() => answer,
        Ok(Ok(answer)) => {
            return Err(format!("it refused a lease with status {}", answer.status()));
        }
        Ok(Err(error)) => return Err(chain(&error.without_url())),
        Err(_) => return Err("it did not answer in time".to_owned()),
    };
    Ok(tokio::spawn(async move { while let Ok(Some(_)) = answer.chunk().await {} }))
}

/// Starts the service in its own process group, so that Ctrl-C reaches only this command and calls under way
/// are still answered. The stdout of the service would show the key, so it is discarded.
fn start(data: &Path, program: &Path) -> Result<Child, CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot start the service in {}", data.display()), &error)
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(cannot)?;
    let log = open_log(&log_file(data))?;
    Command::new(program)
        .env_clear()
        .envs(inherited())
        .args(["serve", "--until-idle", "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(cannot)
}

/// Returns the variables that the service inherits. The service outlives the command, and other commands use
/// it: no other variable of this user, and no secret, is passed on.
fn inherited() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    let names = service::INHERITED.iter().chain(&[environment::SERVICE_KEY]);
    names.filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

/// Opens the log file to append to it.
fn open_log(log: &Path) -> Result<File, CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write {}", log.display()), &error)
            .help("remove it: the service writes it anew")
    };
    disk::look(log).map_err(cannot)?;
    disk::nofollow().create(true).append(true).mode(0o600).open(log).map_err(cannot)
}

/// Returns the port that the service had the last time, or 0 if there was none. It is used again, so that
/// addresses in outputs and other programs stay valid.
pub(crate) fn usual_port(data: &Path) -> u16 {
    let kept = RealDisk.read(&port_file(data), PORT_MAX).ok().flatten().unwrap_or_default();
    String::from_utf8(kept).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Keeps the port of a service for the next time.
pub(crate) fn remember_port(data: &Path, rest_url: &str) {
    let port = reqwest::Url::parse(rest_url).ok().and_then(|url| url.port());
    if let Some(port) = port.filter(|port| *port != usual_port(data)) {
        // Without the file, the next service uses another port. That is no reason to fail.
        drop(write_port(&port_file(data), port));
    }
}

/// Writes the port file, in place of the one that is there.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let unfinished = path.with_extension("new");
    let file = RealDisk.create(&unfinished)?;
    RealDisk.write(&file, port.to_string().as_bytes())?;
    RealDisk.rename(&unfinished, path)
}

fn port_file(data: &Path) -> PathBuf {
    data.join("port")
}

fn log_file(data: &Path) -> PathBuf {
    data.join("service.log")
}

fn failure(data: &Path, reason: &str) -> CommandError {
    let log = log_file(data);
    let mut message = format!("the service on this machine could not be reached: {reason}");
    let tail = each_once(tail(&log));
    if !tail.is_empty() {
        message.push_str("; its log ends with: ");
        message.push_str(&tail.join(" | "));
    }
    CommandError::new(message).help(format!(
        "see {}, or run `plumb serve --data {}` to watch it start",
        log.display(),
        data.display()
    ))
}

/// Keeps only the last of equal lines: every attempt to start ends with the same lines.
fn each_once(lines: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut last: Vec<_> =
        lines.into_iter().rev().filter(|line| seen.insert(line.clone())).collect();
    last.reverse();
    last
}

/// Returns the last lines of the log.
fn tail(log: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let length = disk::look(log)?.map_or(0, |found| found.len());
        let mut file = disk::nofollow().read(true).open(log)?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    lines[skipped..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_service_that_does_not_start_shows_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("fails");
        std::fs::write(&program, "#!/bin/sh\necho 'no room on disk' >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("service");
        let error = connect_with(&data, &program, Duration::from_millis(300)).await.err().unwrap();
        assert_eq!(error.message.matches("no room on disk").count(), 1, "{}", error.message);
        assert!(error.help.unwrap().contains("plumb serve --data"));
    }

    #[test]
    fn what_each_try_says_is_said_once() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(each_once(lines("help error help error help")), ["error", "help"]);
    }

    #[tokio::test]
    async fn a_log_that_is_a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(log_file(dir.path())).status().unwrap().success());
        let error =
            connect_with(dir.path(), Path::new("/bin/false"), PATIENCE).await.err().unwrap();
        assert!(error.message.contains("not a regular file"), "{}", error.message);
    }

    #[tokio::test]
    async fn what_lies_elsewhere_is_neither_read_nor_written() {
        let outside = tempfile::tempdir().unwrap();
        let (precious, new) = (outside.path().join("precious"), outside.path().join("new"));
        std::fs::write(&precious, "hunter2\n").unwrap();
        for name in ["serve.json", "port", "service.log", "lock", "access.log", "key", "logs"] {
            for to in [&precious, &new] {
                let dir = tempfile::tempdir().unwrap();
                std::os::unix::fs::symlink(to, dir.path().join(name)).unwrap();
                let found = connect_with(dir.path(), Path::new("/bin/false"), PATIENCE).await;
                let message = found.err().unwrap().message;
                assert!(message.contains(&format!("{name} is a link to /")), "{message}");
                // `plumb serve` does not check for links, and a link may appear after the check. No call may
                // follow it then either.
                remember_port(dir.path(), "http://127.0.0.1:4711/v1");
                assert!(tail(&log_file(dir.path())).is_empty());
                assert!(!is_held(dir.path()));
            }
        }
        assert_eq!(std::fs::read_to_string(precious).unwrap(), "hunter2\n");
        assert!(!new.exists());
    }

    /// This happens in a copy of a folder whose service runs, and after a service was killed.
    #[tokio::test]
    async fn a_service_of_another_folder_is_not_taken_for_this_ones() {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = service::start(service::Options::new(dir.path().to_owned())).await.unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        let running = tokio::spawn(server.run(stop.clone()));
        for name in ["serve.json", "lock", "key"] {
            std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
        }
        let find = |data: PathBuf| async move {
            connect_with(&data, Path::new("/bin/false"), Duration::from_millis(200)).await
        };
        assert!(find(dir.path().to_owned()).await.is_ok());
        assert!(find(copy.path().to_owned()).await.is_err());
        stop.cancel();
        running.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_key_is_never_sent_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let url = "http://example.com/x";
        let text = serde_json::json!({
            "rest_url": url, "graphql_url": url, "queue_url": url, "lease_url": url,
            "key": "k", "pid": 1,
        });
        std::fs::write(dir.path().join("serve.json"), text.to_string()).unwrap();
        assert!(read_addresses(dir.path()).unwrap().is_none());
        std::fs::write(dir.path().join("serve.json"), "{ torn").unwrap();
        assert!(read_addresses(dir.path()).unwrap().is_none());
    }

    #[tokio::test]
    async fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["serve.json", "port"] {
            let made = Command::new("mkfifo").arg(dir.path().join(name)).status().unwrap();
            assert!(made.success());
        }
        let error = read_addresses(dir.path()).err().unwrap();
        assert!(error.message.contains("not a regular file"), "{}", error.message);
        assert_eq!(usual_port(dir.path()), 0);
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("serve.json")).unwrap();
        assert!(read_addresses(dir.path()).is_err());
    }

    #[tokio::test]
    async fn a_running_service_is_found_and_leased() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = service::Options::new(dir.path().to_owned());
        options.until_idle = true;
        let server = service::start(options).await.unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        let running = tokio::spawn(server.run(stop));
        let program = Path::new("/bin/false");
        let found = connect_with(dir.path(), program, Duration::from_secs(5)).await.unwrap();
        assert!(found.describe().contains("found running"), "{}", found.describe());
        assert!(found.variable("PLUMB_SERVERLESS_REST_URL").unwrap().ends_with("/v1"));
        drop(found);
        // The last lease is closed, so the service ends by itself.
        tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
    }
}
