//! A planted secret is searched for in all bytes that are written and printed.

use serde_json::json;

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

/// The files of Plumb and its service are readable by their user only, even if the shell's umask allows more.
#[test]
fn what_is_written_is_this_users_alone_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let volume = "name = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
    let project = Project::local(&format!("[resource.network_volume.v]\n{volume}"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" apply --yes", env!("CARGO_BIN_EXE_plumb")]);
    shell.current_dir(project.path("."));
    let said = shell.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let mut open = vec![project.path(".plumb")];
    while let Some(path) = open.pop() {
        // The service of the apply is ending: a file of its database may go meanwhile.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        // Files for git may be readable.
        if path.file_name().unwrap() != ".gitignore" {
            assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        }
        if metadata.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
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
        &["plan", "--steps", "-vv"],
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
    // A script that asks for a sensitive output gets an error, and no text in place of the value.
    for form in [&["output", "password"][..], &["output", "password", "--json"]] {
        let refused = project.run(form).expect(1);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
        assert!(refused.stderr.contains("is sensitive"), "{}", refused.stderr);
    }
    hidden("the state", &project.written());
    hidden("the plan", &std::fs::read(project.path("plan.json")).unwrap());
    // The template has the secret.
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

/// Somebody adds a secret to a map of plain values, outside. Nobody gave it to Plumb, so its name alone says
/// what it is.
#[test]
fn a_secret_that_was_added_outside_is_not_shown() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec =
        "[resource.template.t]\nname = \"t\"\nimage_name = \"i:1\"\nenv = { MODEL = \"tiny\" }\n";
    let project = Project::with(spec, &service);
    project.run(&["apply", "-y"]).expect(0);
    let id = service.list("/templates")[0]["id"].as_str().unwrap().to_owned();
    let env = json!({"MODEL": "tiny", "DB_PASSWORD": "canary-1", "URL": "redis://u:canary-2@h"});
    let (status, body) =
        service.request("PATCH", &format!("/templates/{id}"), Some(&json!({"env": env})));
    assert_eq!(status, 200, "{body}");
    for (command, code) in [
        (&["plan"][..], 0),
        (&["plan", "--json"], 0),
        (&["plan", "--format", "markdown"], 0),
        (&["drift"], 2),
        (&["drift", "--json"], 2),
        (&["drift", "--write"], 2),
        (&["plan", "--out", "p.plan"], 0),
        (&["show", "p.plan"], 0),
        (&["apply", "-y"], 0),
    ] {
        let ran = project.run(command).expect(code);
        assert!(!ran.said().contains("canary"), "{command:?}: {}", ran.said());
        let names = ran.said().contains("DB_PASSWORD")
            || command[0] == "apply"
            || command.contains(&"--out");
        assert!(names, "{command:?}: {}", ran.said());
    }
    let shown = &service.list("/templates")[0]["env"];
    assert_eq!(*shown, json!({"MODEL": "tiny"}));
}
