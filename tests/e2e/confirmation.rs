//! The question on a terminal: a plan that a user confirms runs only if it is still the one that was shown.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::harness::{Project, Service, data, wait_for};

const SPEC: &str = r#"
[resource.template.t]
name = "t"
image_name = "registry.example/worker:1"
is_serverless = true

[resource.endpoint.e]
name = "eee"
template_id = "${template.t.id}"
gpu_ids = "ADA_24"
idle_timeout = 5
"#;

/// An apply that waits for its confirmation on a terminal.
struct Asked {
    child: Child,
    /// The other end of the terminal.
    keys: File,
}

impl Asked {
    /// Starts the apply, and waits until it asks.
    fn start(project: &Project) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        let mut command = project.command(&["apply"]);
        let said = File::create(project.path("said.txt")).unwrap();
        command.stdin(terminal).stdout(Stdio::null()).stderr(said);
        let child = command.spawn().unwrap();
        wait_for("the question", || told(project).contains("Type yes to confirm"));
        Self { child, keys: keys.into() }
    }

    /// Answers yes, and returns the exit status.
    fn yes(mut self) -> Option<i32> {
        self.keys.write_all(b"yes\n").unwrap();
        self.child.wait().unwrap().code()
    }
}

fn told(project: &Project) -> String {
    std::fs::read_to_string(project.path("said.txt")).unwrap()
}

#[test]
fn what_changed_while_the_question_stood_there_is_not_taken_back() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "--yes"]).expect(0);
    project.write("plumb.toml", SPEC.replace("idle_timeout = 5", "idle_timeout = 6"));
    let id = service.list("/endpoints")[0]["id"].as_str().unwrap().to_owned();

    let asked = Asked::start(&project);
    let calls = service.mutations().len();
    service.request("PATCH", &format!("/endpoints/{id}"), Some(&json!({ "scalerValue": 9 })));
    assert_eq!(asked.yes(), Some(3));
    for why in [
        "- endpoint.e: update scaler_value is 4",
        "+ endpoint.e: update scaler_value is 9",
        "stale plan",
    ] {
        assert!(told(&project).contains(why), "{}", told(&project));
    }
    assert_eq!(service.mutations().len(), calls + 1, "only the change by hand");

    assert_eq!(Asked::start(&project).yes(), Some(0));
    let endpoint = &service.list("/endpoints")[0];
    assert_eq!((&endpoint["scalerValue"], &endpoint["idleTimeout"]), (&json!(9), &json!(6)));
}
