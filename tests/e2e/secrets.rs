//! A planted secret is searched in every byte that is written and printed.

use crate::harness::{KEY, Project, Service, data};

const SECRET: &str = "hunter2-canary-41c";

const SPEC: &str = r#"
[variable.password]
type = "string"
sensitive = true

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
env = { PASSWORD = "${var.password}", PLAIN = "seen" }

[resource.value.holder]
input = { password = "${var.password}" }

[output.password]
value = "${value.holder.output.password}"
sensitive = true
"#;

#[track_caller]
fn hidden(what: &str, bytes: &[u8]) {
    for secret in [SECRET, KEY] {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{what} holds {secret}:\n{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn no_secret_is_printed_or_written() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_VAR_password", SECRET);
    let commands: &[&[&str]] = &[
        &["validate"],
        &["plan", "-v"],
        &["plan", "--json"],
        &["plan", "--format", "markdown"],
        &["plan", "--out", "plan.json"],
        &["apply", "--yes", "--json"],
        &["plan", "--detailed-exitcode"],
        &["show"],
        &["show", "--json"],
        &["output"],
        &["output", "--json"],
        &["state", "show", "template.worker"],
        &["state", "pull"],
        &["drift"],
    ];
    for command in commands {
        let ran = project.run(command).expect(0);
        hidden(&format!("{command:?}"), ran.said().as_bytes());
    }
    hidden("the state", &project.written());
    hidden("the plan", &std::fs::read(project.path("plan.json")).unwrap());
    // The template did get it.
    let templates = service.list("/templates");
    assert_eq!(templates[0]["env"]["PASSWORD"], SECRET);
    project.run(&["destroy", "--yes"]).expect(0);
}

#[test]
fn a_saved_plan_needs_its_secrets_again() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_VAR_password", SECRET);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.set("PLUMB_VAR_password", "another");
    project.run(&["apply", "plan.json", "-y"]).expect(3);
    let missing = Project::with(SPEC, &service);
    missing.write("plan.json", std::fs::read(project.path("plan.json")).unwrap());
    let said = missing.run(&["apply", "plan.json", "-y"]).expect(1).said();
    assert!(said.contains("password"), "{said}");
    assert!(service.mutations().is_empty());
    project.set("PLUMB_VAR_password", SECRET);
    project.run(&["apply", "plan.json", "-y"]).expect(0);
    assert_eq!(service.list("/templates")[0]["env"]["PASSWORD"], SECRET);
}
