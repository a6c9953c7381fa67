//! The harness of the tests: a folder with a spec, a service for it, and the `plumb` binary.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The key of every service in these tests. It is searched for in all output.
pub(crate) const KEY: &str = "canary-key-7f3a9";

/// A running `plumb serve`, which is killed when dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) data: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    key: String,
}

impl Service {
    pub(crate) fn start(data: &Path, extra: &[&str]) -> Self {
        let extra = [&["--listen", "127.0.0.1:0"], extra].concat();
        Self::run(data, &extra, KEY, Stdio::null())
    }

    /// Starts a service that logs as much as it can, into `service.stderr` beside its data.
    pub(crate) fn logged(data: &Path, key: &str) -> Self {
        let log = std::fs::File::create(data.with_file_name("service.stderr")).expect("a log");
        Self::run(data, &["-v", "--listen", "127.0.0.1:0"], key, log.into())
    }

    /// Starts a service that listens at this address.
    pub(crate) fn at(data: &Path, listen: &str, key: &str) -> Self {
        Self::run(data, &["--listen", listen], key, Stdio::null())
    }

    fn run(data: &Path, extra: &[&str], key: &str, stderr: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["serve", "--print-env", "--key", key, "--data"])
            .arg(data)
            .args(extra)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let mut environment = BTreeMap::new();
        for line in lines {
            let line = line.expect("the service prints its addresses");
            if let Some((name, value)) = line.split_once('=') {
                environment.insert(name.to_owned(), value.to_owned());
            }
            if environment.len() == 5 {
                break;
            }
        }
        assert_eq!(environment.len(), 5, "the service said: {environment:?}");
        Self { child, data: data.to_owned(), environment, key: key.to_owned() }
    }

    /// Returns the operations of all mutating requests so far, in order.
    pub(crate) fn mutations(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.data.join("access.log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|entry| entry["mutating"] == true)
            .map(|entry| entry["operation"].as_str().unwrap_or("").to_owned())
            .collect()
    }

    /// Sends one request without Plumb, in the way of `curl`. Returns the status and the body.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> (u16, String) {
        let rest = &self.environment["PLUMB_SERVERLESS_REST_URL"];
        http_as(&self.key, method, &format!("{rest}{path}"), body)
    }

    /// Returns all objects of a REST collection.
    pub(crate) fn list(&self, collection: &str) -> Vec<serde_json::Value> {
        let (status, body) = self.request("GET", collection, None);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("a list")
    }

    /// Returns the names of all objects of a REST collection, sorted.
    pub(crate) fn names(&self, collection: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .list(collection)
            .iter()
            .map(|object| object["name"].as_str().unwrap_or("").to_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Sends one HTTP/1.1 request over a plain socket, so that the tests need no HTTP client.
pub(crate) fn http(method: &str, url: &str, body: Option<&serde_json::Value>) -> (u16, String) {
    http_as(KEY, method, url, body)
}

fn http_as(key: &str, method: &str, url: &str, body: Option<&serde_json::Value>) -> (u16, String) {
    try_http_as(key, method, url, body).expect("the service answers")
}

/// Sends one HTTP/1.1 request. Returns `None` if the answer gets lost.
pub(crate) fn try_http(
    method: &str,
    url: &str,
    body: Option<&serde_json::Value>,
) -> Option<(u16, String)> {
    try_http_as(KEY, method, url, body)
}

fn try_http_as(
    key: &str,
    method: &str,
    url: &str,
    body: Option<&serde_json::Value>,
) -> Option<(u16, String)> {
    use std::io::{Read as _, Write as _};
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut socket = std::net::TcpStream::connect(host).expect("the service listens");
    let body = body.map(ToString::to_string).unwrap_or_default();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok())?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Some((status, if chunked { unchunk(body) } else { body.to_owned() }))
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// A folder with a spec, and the environment of the commands that run there.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

/// A generator of numbers that look random and follow from a seed (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }
}

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Returns everything that the command printed.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        assert!(!self.said().contains(KEY), "the key was printed:\n{}", self.said());
        self
    }

    /// Returns the standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }
}

impl Project {
    pub(crate) fn new(spec: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let project = Self { folder, environment: BTreeMap::new() };
        project.write("plumb.toml", spec);
        project
    }

    /// Returns a project whose spec asks for the service on this machine.
    pub(crate) fn local(spec: &str) -> Self {
        Self::new(&format!("[provider.serverless]\nlocal = true\n{spec}"))
    }

    /// Returns a project whose commands use this service.
    pub(crate) fn with(spec: &str, service: &Service) -> Self {
        let mut project = Self::new(spec);
        project.environment = service.environment.clone();
        project
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder in the test's folder");
        }
        std::fs::write(path, text).expect("a file in the test's folder");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(&self.environment)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(&self.command(arguments).output().expect("the binary runs"))
    }

    /// Starts a command without waiting for it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs")
    }

    /// Returns all bytes that commands wrote below `.plumb`, without the service's own folder.
    pub(crate) fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut open = vec![self.path(".plumb")];
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if path.is_dir() {
                    if path.file_name().is_none_or(|name| name != "service") {
                        open.push(path);
                    }
                } else {
                    bytes.extend(std::fs::read(path).unwrap_or_default());
                }
            }
        }
        bytes
    }
}

pub(crate) fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits until something comes true, for at most ten seconds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(10), "still waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a new folder for a service's data.
pub(crate) fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the service")
}
