//! Workers and pods in containers: the command line that runs a template's image with its command.
//!
//! The service starts the client of a container engine in the place of the command. The client
//! passes output, signals and the exit status on. A container has the network of this machine, so
//! the addresses of the service are valid in it. The guard removes the container after the client
//! has ended in any way. If the guard was killed, the service removes it; if the service was killed
//! too, its next start does.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::environment::{Environment, INHERITED};
use super::guard::AFTER;
use super::limits::WorkerLimits;
use super::mounts::Mount;
use crate::resources::template::Template;

/// The time for an engine to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The label that contains the path of the container's data folder.
const LABEL: &str = "plumb.data";

/// The prefixes of the variables that configure the clients of engines.
const CLIENT_VARIABLES: &[&str] = &["DOCKER_", "CONTAINER", "BUILDKIT_", "PODMAN_"];

/// The variables that programs read by themselves, by the starts of their names. The client must not have them, so
/// their values stand in its arguments, which other users of the machine may see.
const PROGRAM_VARIABLES: &[&str] = &[
    "LD_",
    "GLIBC_",
    "GCONV_PATH",
    "LOCPATH",
    "MALLOC_",
    "XDG_",
    "DBUS_",
    "REGISTRY_AUTH_FILE",
    "STORAGE_",
    "_CONTAINERS_",
    "TMPDIR",
    "SSL_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GODEBUG",
    "GOTRACEBACK",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOGC",
    "NOTIFY_SOCKET",
    "LISTEN_",
    "PYTHON",
    "BASH_ENV",
    "ENV",
    "IFS",
    "SSH_",
    "GNUPGHOME",
];

/// The reason for which containers cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program is not on `PATH`.
    #[error("{name} is not on PATH: install it, or leave --runtime away")]
    Missing {
        /// The program.
        name: String,
    },
    /// The program is on `PATH`, but its engine does not answer.
    #[error("{name} is on PATH but its engine does not answer: {answer}")]
    NoAnswer {
        /// The program.
        name: String,
        /// The last line that the program printed.
        answer: String,
    },
}

/// A container engine that answers.
pub(crate) struct Engine {
    /// The path of the engine's client.
    client: PathBuf,
    label: OsString,
}

/// A container to run.
pub(crate) struct Container<'a> {
    /// The id of the worker or the pod.
    pub(crate) id: &'a str,
    /// The template with the image. Its entrypoint and command replace those of the image if they
    /// are not empty.
    pub(crate) template: &'a Template,
    pub(crate) mounts: Vec<Mount>,
    /// The number of processors that the container may use; `None` means all.
    pub(crate) processors: Option<i64>,
    pub(crate) limits: WorkerLimits,
}

impl Engine {
    /// Finds the client of an engine, and checks that the engine answers.
    pub(crate) async fn connect(name: &OsStr, data: &Path) -> Result<Engine, EngineError> {
        let shown = || name.display().to_string();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let client = find(name, &path).ok_or_else(|| EngineError::Missing { name: shown() })?;
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        let mut label = OsString::from(format!("{LABEL}="));
        label.push(data);
        let engine = Engine { client, label };
        engine
            .ask(&["info".as_ref()])
            .await
            .map_err(|answer| EngineError::NoAnswer { name: shown(), answer })?;
        Ok(engine)
    }

    /// Removes the containers of this data folder that were left when a service and their guards
    /// were killed. Returns their number.
    pub(crate) async fn remove_leftovers(&self) -> Result<usize, String> {
        let mut filter = OsString::from("label=");
        filter.push(&self.label);
        let list = ["ps".as_ref(), "--all".as_ref(), "--quiet".as_ref(), "--filter".as_ref()];
        let found = self.ask(&[&list[..], &[filter.as_os_str()]].concat()).await?;
        let ids: Vec<&OsStr> = found.split_whitespace().map(OsStr::new).collect();
        if !ids.is_empty() {
            self.ask(&[&["rm".as_ref(), "--force".as_ref()][..], &ids].concat()).await?;
        }
        Ok(ids.len())
    }

    /// Returns the command that runs a container until it ends. Adds the command that removes the
    /// container to the environment of the guard. The values of variables are only in the
    /// environment of the client, where no list of processes shows them.
    pub(crate) fn run(
        &self,
        container: &Container<'_>,
        environment: &mut Environment,
    ) -> std::io::Result<Vec<OsString>> {
        let mut line: Vec<OsString> = vec![self.client.clone().into()];
        // A container is removed only after it was asked to end, so no further time is needed.
        let fixed = ["run", "--rm", "--init", "--network", "host", "--stop-timeout", "0", "--name"];
        line.extend(fixed.map(OsString::from));
        line.extend([name(container.id).into(), "--label".into(), self.label.clone()]);
        if let Some(processors) = container.processors {
            line.extend(["--cpus".into(), processors.to_string().into()]);
        }
        line.extend(limits(&container.limits));
        for variable in variables(environment)? {
            line.extend(["--env".into(), variable.clone()]);
        }
        for (name, value) in taken_from_client(environment) {
            let mut variable = name;
            variable.push("=");
            variable.push(value);
            line.extend(["--env".into(), variable]);
        }
        for mount in &container.mounts {
            line.extend(["--mount".into(), bind(mount)?]);
        }
        let template = container.template;
        let mut words = template.docker_entrypoint.iter();
        if let Some(entrypoint) = words.next() {
            line.extend(["--entrypoint".into(), entrypoint.into()]);
        }
        if template.image_name.starts_with('-') {
            let message = format!("`{}` is no name of an image", template.image_name);
            return Err(std::io::Error::other(message));
        }
        line.push((&template.image_name).into());
        line.extend(words.chain(&template.docker_start_cmd).map(OsString::from));
        let removal = [&self.client.to_string_lossy(), "rm", "--force", &name(container.id)];
        environment.push((AFTER.into(), serde_json::to_string(&removal)?.into()));
        Ok(line)
    }

    /// Removes the container of a worker or a pod whose guard was killed. The error is the answer
    /// of the engine.
    pub(crate) async fn remove_left(
        &self,
        id: &str,
        ended: Option<ExitStatus>,
    ) -> Result<(), String> {
        let is_guard_killed = ended.is_some_and(|status| status.code().is_none());
        if !is_guard_killed {
            return Ok(());
        }
        self.ask(&["rm".as_ref(), "--force".as_ref(), name(id).as_ref()]).await.map(drop)
    }

    /// Runs the client, and returns its output. The error is the last line of the client's error
    /// output.
    async fn ask(&self, arguments: &[&OsStr]) -> Result<String, String> {
        let mut command = Command::new(&self.client);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(ANSWER_TIMEOUT, command.output()).await {
            Err(_) => return Err(format!("nothing within {} s", ANSWER_TIMEOUT.as_secs())),
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
    }
}

/// Returns the options that limit a container.
fn limits(limits: &WorkerLimits) -> Vec<OsString> {
    let memory = limits.memory.map(|bytes| ["--memory".to_owned(), bytes.to_string()]);
    let files = limits.files.map(|most| ["--ulimit".to_owned(), format!("nofile={most}:{most}")]);
    let time = limits.cpu_seconds;
    let time = time.map(|seconds| ["--ulimit".to_owned(), format!("cpu={seconds}:{seconds}")]);
    [memory, files, time].into_iter().flatten().flatten().map(OsString::from).collect()
}

/// Returns the name of the container of a worker or a pod.
fn name(id: &str) -> String {
    format!("plumb-{id}")
}

/// Returns the path of a program: the given one, or one in a folder of `path`; `None` if there is
/// no such file.
fn find(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 {
        return given.is_file().then(|| given.to_owned());
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns the names of the variables of a container: all except those that the client inherits
/// from the service.
fn variables(environment: &[(OsString, OsString)]) -> std::io::Result<BTreeSet<&OsString>> {
    let is_of_client = |name: &OsString, value: &OsString| {
        let is_inherited = INHERITED.iter().any(|inherited| name == inherited);
        is_inherited && std::env::var_os(name).as_ref() == Some(value)
    };
    let given = environment.iter().filter(|(name, value)| !is_of_client(name, value));
    let given = given.filter(|(name, _)| !is_read_by_programs(name));
    let names: BTreeSet<&OsString> = given.map(|(name, _)| name).collect();
    let tells_client = |name: &&&OsString| {
        let name = name.to_string_lossy();
        CLIENT_VARIABLES.iter().any(|start| name.starts_with(start))
    };
    match names.iter().find(tells_client) {
        None => Ok(names),
        Some(name) => Err(std::io::Error::other(format!(
            "the variable {} tells the client of the container engine what to do; \
             a container cannot have it",
            name.display()
        ))),
    }
}

/// Returns true if programs read a variable of this name by themselves.
fn is_read_by_programs(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    INHERITED.iter().any(|inherited| *inherited == text)
        || PROGRAM_VARIABLES.iter().any(|start| text.starts_with(start))
}

/// Takes the variables of a container that programs read by themselves out of the environment of the client, which
/// keeps those that it inherits from the service. Returns the last value of each.
fn taken_from_client(environment: &mut Environment) -> BTreeMap<OsString, OsString> {
    let mut taken = BTreeMap::new();
    environment.retain(|(name, value)| {
        let is_inherited = INHERITED.iter().any(|inherited| name == inherited)
            && std::env::var_os(name).as_ref() == Some(value);
        if is_inherited || !is_read_by_programs(name) {
            return true;
        }
        taken.insert(name.clone(), value.clone());
        false
    });
    taken
}

fn bind(mount: &Mount) -> std::io::Result<OsString> {
    let mut text = OsString::from("type=bind,source=");
    text.push(&mount.source);
    text.push(",target=");
    text.push(&mount.target);
    if text.to_string_lossy().matches(',').count() > 2 {
        let message = format!("{}: a path with a comma cannot be mounted", mount.source.display());
        return Err(std::io::Error::other(message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(environment: &[(&str, &str)], mounts: Vec<Mount>) -> std::io::Result<String> {
        let engine = Engine { client: "/bin/docker".into(), label: "plumb.data=/d".into() };
        let mut environment: Environment =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let template = Template {
            image_name: "me/chat:2".to_owned(),
            docker_entrypoint: vec!["python".to_owned(), "-u".to_owned()],
            docker_start_cmd: vec!["main.py".to_owned()],
            ..Template::unset()
        };
        let limits =
            WorkerLimits { memory: Some(1 << 20), files: Some(99), ..WorkerLimits::default() };
        let container =
            Container { id: "w1", template: &template, mounts, processors: Some(2), limits };
        let line = engine.run(&container, &mut environment)?;
        let (name, removal) = environment.pop().unwrap();
        assert_eq!(name, AFTER);
        assert_eq!(removal, r#"["/bin/docker","rm","--force","plumb-w1"]"#);
        Ok(line.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn the_line_has_what_a_worker_needs_and_no_value() {
        let mount = Mount { source: "/d/volumes/v".into(), target: "/runpod-volume".into() };
        assert_eq!(
            line(&[("TOKEN", "secret"), ("GREETING", "a\nb"), ("TOKEN", "later")], vec![mount])
                .unwrap(),
            "/bin/docker run --rm --init --network host --stop-timeout 0 --name plumb-w1 \
             --label plumb.data=/d --cpus 2 --memory 1048576 --ulimit nofile=99:99 \
             --env GREETING --env TOKEN --mount type=bind,source=/d/volumes/v,target=/runpod-volume \
             --entrypoint python me/chat:2 -u main.py"
        );
    }

    #[test]
    fn what_would_steer_the_client_is_refused() {
        let refused = line(&[("DOCKER_HOST", "tcp://x")], Vec::new()).unwrap_err().to_string();
        assert!(refused.contains("DOCKER_HOST"), "{refused}");
        let mount = Mount { source: "/a,b".into(), target: "/c".into() };
        assert!(line(&[], vec![mount]).unwrap_err().to_string().contains("comma"));
    }

    #[test]
    fn an_image_is_no_option_of_the_client() {
        let image_name = "--privileged".to_owned();
        let template = Template { image_name, ..Template::unset() };
        let engine = Engine { client: "/bin/docker".into(), label: "plumb.data=/d".into() };
        let limits = WorkerLimits::default();
        let container =
            Container { id: "w1", template: &template, mounts: vec![], processors: None, limits };
        let refused = engine.run(&container, &mut Environment::new()).unwrap_err().to_string();
        assert_eq!(refused, "`--privileged` is no name of an image");
    }

    #[test]
    fn the_client_has_no_variable_that_programs_read() {
        let given = [("HOME", "/evil"), ("LD_PRELOAD", "/evil.so"), ("TOKEN", "secret")];
        let mut environment: Environment =
            given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let taken = taken_from_client(&mut environment);
        assert_eq!(environment, [("TOKEN".into(), "secret".into())]);
        assert_eq!(taken.len(), 2);
        let line = line(&given, Vec::new()).unwrap();
        let variables = "--env TOKEN --env HOME=/evil --env LD_PRELOAD=/evil.so ";
        assert!(line.contains(variables), "{line}");
    }

    #[test]
    fn programs_are_found_on_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("engine");
        std::fs::write(&program, "").unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();
        assert_eq!(find("engine".as_ref(), &path), Some(program.clone()));
        assert_eq!(find(program.as_os_str(), OsStr::new("")), Some(program));
        assert_eq!(find("other".as_ref(), &path), None);
    }
}
