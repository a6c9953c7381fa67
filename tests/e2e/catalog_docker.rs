//! The descriptor of Docker, against a container engine with the same API, installed in the folder of test
//! servers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::catalog::{example, expect_no_change, free_port, installed};
use crate::examples::compare;
use crate::harness::{Project, wait_for};

/// A container engine for a test. The names of its objects have a word of the test.
pub(crate) struct Engine {
    service: Child,
    podman: PathBuf,
    word: &'static str,
    pub(crate) url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _killed = self.service.kill();
        let _reaped = self.service.wait();
        self.clear();
    }
}

impl Engine {
    /// Starts an engine at a port or at a socket. Returns `None` if none is installed.
    pub(crate) fn start(word: &'static str, at_port: bool) -> Option<Self> {
        let servers = std::env::var_os("PLUMB_TEST_SERVERS").map(PathBuf::from);
        let servers =
            servers.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers"));
        let podman = servers.join("podman/podman");
        let podman = installed("podman", &[podman.to_str().expect("a path of text")])?;
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("engine.sock");
        let (listen, url) = if at_port {
            let address = format!("127.0.0.1:{}", free_port());
            (format!("tcp:{address}"), format!("http://{address}/v1.41"))
        } else {
            let socket = socket.display();
            (format!("unix://{socket}"), format!("unix:{socket}:/v1.41"))
        };
        let service = Command::new(&podman)
            .args(["system", "service", "--time=0", &listen])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the engine starts");
        let engine = Self { service, podman, word, url, _folder: folder };
        let address = engine.url.trim_start_matches("http://").trim_end_matches("/v1.41");
        wait_for("the engine", || {
            if at_port {
                std::net::TcpStream::connect(address).is_ok()
            } else {
                std::os::unix::net::UnixStream::connect(&socket).is_ok()
            }
        });
        engine.clear();
        Some(engine)
    }

    /// Removes objects that a failed test left behind.
    fn clear(&self) {
        for kind in ["container", "volume", "network"] {
            for name in self.names(kind) {
                self.podman(&[kind, "rm", "--force", &name]);
            }
        }
    }

    /// Returns a project of the example, with names that have the engine's word.
    pub(crate) fn project(&self) -> Project {
        let mut project = example("docker");
        let spec = std::fs::read_to_string(project.path("plumb.toml")).expect("the spec");
        let subnet = match self.word {
            "loop" => "10.89.43.",
            "wrong" => "10.89.45.",
            _ => "10.89.42.",
        };
        let spec = spec.replace("shop", self.word).replace("10.89.42.", subnet);
        project.write("plumb.toml", spec);
        project.set("DOCKER_URL", &self.url);
        project.set("PLUMB_VAR_GREETING", "canary-greeting");
        project
    }

    /// Runs the engine's own command line, and returns its output.
    fn podman(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.podman).args(arguments).output().expect("podman runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the names of the objects of a kind that have the word.
    fn names(&self, kind: &str) -> Vec<String> {
        let (list, format): (&[&str], _) = match kind {
            "container" => (&["ps", "--all"], "{{.Names}}"),
            kind => (&[kind, "ls"], "{{.Name}}"),
        };
        let listed = self.podman(&[list, &["--format", format]].concat());
        listed.lines().filter(|name| name.contains(self.word)).map(str::to_owned).collect()
    }

    /// Returns the names of all objects that have the word, sorted.
    pub(crate) fn live(&self) -> Vec<String> {
        let of_kind = |kind: &str| {
            let names = self.names(kind).into_iter();
            names.map(|name| format!("{kind} {name}")).collect::<Vec<_>>()
        };
        let mut all: Vec<_> =
            ["container", "volume", "network"].into_iter().flat_map(of_kind).collect();
        all.sort();
        all
    }
}

fn edit(project: &Project, from: &str, to: &str) {
    let spec = std::fs::read_to_string(project.path("plumb.toml")).expect("the spec");
    assert!(spec.contains(from), "{from} is not in {spec}");
    project.write("plumb.toml", spec.replace(from, to));
}

/// Objects of all types are created, stopped, started, imported, replaced and destroyed, with drift; after
/// each step, a plan is empty.
#[test]
fn docker_is_managed() {
    let Some(engine) = Engine::start("shop", false) else { return };
    let project = engine.project();
    let plan = project.run(&["plan"]).expect(0).stdout;
    let of_example = plan.split_inclusive('\n').filter(|line| !line.starts_with("Acts on"));
    compare("docker", "plan.txt", &of_example.collect::<String>());
    let said = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(!said.contains("canary-greeting"), "{said}");
    expect_no_change(&project);
    assert_eq!(
        engine.live(),
        ["container shop-worker", "network shop", "volume shop-data"],
        "all of them, once"
    );
    let word = || engine.podman(&["exec", "shop-worker", "cat", "/data/log"]);
    wait_for("the program", || word() == "canary-greeting\n");

    // The container is stopped and started in place, also outside Plumb.
    let state = || engine.podman(&["inspect", "--format", "{{.State.Status}}", "shop-worker"]);
    edit(&project, "network = \"host\"", "network = \"host\"\nrunning = false");
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    assert_eq!(state(), "exited\n");
    edit(&project, "\nrunning = false", "");
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    engine.podman(&["stop", "--time", "0", "shop-worker"]);
    let drift = project.run(&["drift"]).expect(2).said();
    assert!(drift.contains("running"), "{drift}");
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(state(), "running\n");

    // Any other change replaces the object. A volume is deleted only if the spec allows that.
    edit(&project, "[\"${volume.data.name}:/data\"]", "[\"${volume.data.name}:/data:rw\"]");
    edit(
        &project,
        "subnet = \"10.89.42.0/24\"",
        "subnet = \"10.89.44.0/24\"\nlabels = { a = \"b\" }",
    );
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    assert_eq!(engine.live().len(), 3);
    wait_for("the program again", || word() == "canary-greeting\n".repeat(4));
    edit(&project, "name = \"shop-data\"", "name = \"shop-disk\"");
    let refused = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(refused.contains("would lose its data"), "{refused}");
    edit(&project, "name = \"shop-disk\"", "name = \"shop-data\"");

    // Existing objects are taken over, by name and by id.
    engine.podman(&["volume", "create", "shop-old"]);
    let found = engine.podman(&[
        "create",
        "--network",
        "host",
        "--name",
        "shop-found",
        "localhost/busybox:1",
        "true",
    ]);
    edit(
        &project,
        "[resource.network.inside]",
        &format!(
            "[resource.volume.old]\nname = \"shop-old\"\n\n[resource.container.found]\nname = \"shop-found\"\n\
             image = \"localhost/busybox:1\"\nrunning = false\n\n[[import]]\nto = \"volume.old\"\nid = \"shop-old\"\n\n\
             [[import]]\nto = \"container.found\"\nid = \"{}\"\n\n[resource.network.inside]",
            found.trim()
        ),
    );
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);

    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(engine.live(), [""; 0]);
}

/// An image that does not exist and a name that is taken are reported.
#[test]
fn docker_says_what_is_wrong() {
    let Some(engine) = Engine::start("wrong", false) else { return };
    let project = engine.project();
    edit(&project, "localhost/busybox:1", "localhost/nothing:1");
    let refused = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(refused.contains("docker pull IMAGE"), "{refused}");
    engine.podman(&["volume", "create", "wrong-other"]);
    edit(
        &project,
        "name = \"wrong-data\"",
        "name = \"wrong-other\"\nlifecycle = { allow_data_loss = true }",
    );
    let refused = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(refused.contains("wrong-other"), "{refused}");
}
