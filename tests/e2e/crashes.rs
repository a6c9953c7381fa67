//! A crash at each journal record, lost answers and interrupts: the next apply does exactly the rest.

use std::time::Duration;

use crate::harness::{Project, Service, data};

/// Returns a spec of volumes, templates, and endpoints that use both: 3 × `n` objects.
pub(crate) fn spec(n: usize) -> String {
    let keys: Vec<String> = (0..n).map(|i| format!("\"k{i:03}\"")).collect();
    format!(
        r#"
[local]
keys = [{}]

[resource.network_volume.v]
for_each = "${{local.keys}}"
name = "v-${{each.key}}"
size = 10
data_center_id = "EU-RO-1"

[resource.template.t]
for_each = "${{local.keys}}"
name = "t-${{each.key}}"
image_name = "registry.example/worker:1"
is_serverless = true

[resource.endpoint.e]
for_each = "${{local.keys}}"
name = "e-${{each.key}}"
template_id = "${{template.t[each.key].id}}"
network_volume_id = "${{network_volume.v[each.key].id}}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 1
"#,
        keys.join(", ")
    )
}

/// Expects the objects of that spec and no others. `live` returns the sorted names of a collection.
pub(crate) fn expect_exactly(live: impl Fn(&str) -> Vec<String>, n: usize, what: &str) {
    for (collection, letter) in [("/networkvolumes", 'v'), ("/templates", 't'), ("/endpoints", 'e')]
    {
        let names: Vec<String> = (0..n).map(|i| format!("{letter}-k{i:03}")).collect();
        assert_eq!(live(collection), names, "{what} {collection}");
    }
}

#[test]
fn killed_at_journal_records_it_loses_and_doubles_nothing() {
    let n = 4;
    // The apply of 12 objects makes about 20 writes. Beyond the last one, it ends normally.
    for when in ["before", "after"] {
        for write in
            (1..=20).step_by(if std::env::var_os("PLUMB_LONG_TESTS").is_some() { 1 } else { 3 })
        {
            let folder = data();
            let service = Service::start(folder.path(), &[]);
            let mut project = Project::with(&spec(n), &service);
            project.set("PLUMB_TEST_DIE", &format!("{when}:{write}"));
            let died = project.run(&["apply", "--yes"]);
            assert!(matches!(died.code, None | Some(0)), "{:?} {}", died.code, died.said());
            project.set("PLUMB_TEST_DIE", "");
            project.run(&["apply", "--yes"]).expect(0);
            expect_exactly(|it| service.names(it), n, &format!("{when} write {write}"));
            project.run(&["plan", "--detailed-exitcode"]).expect(0);
        }
    }
}

#[test]
fn lost_answers_and_errors_after_the_effect_double_nothing() {
    let n = 6;
    for fault in [
        "op=mutating,p=0.3,seed=1,kind=lost",
        "op=mutating,p=0.3,seed=2,kind=error500-after",
        "op=mutating,p=0.3,seed=3,kind=error500-before",
        "op=mutating,p=0.3,seed=4,kind=cut",
    ] {
        let folder = data();
        let service = Service::start(folder.path(), &["--fault", fault]);
        let project = Project::with(&spec(n), &service);
        // A step that meets three faults in a row fails. The next apply continues.
        for _ in 0..6 {
            if project.run(&["apply", "--yes"]).code == Some(0) {
                break;
            }
        }
        expect_exactly(|it| service.names(it), n, fault);
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
}

#[test]
fn interrupted_it_finishes_what_runs_and_says_what_remains() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:40"]);
    let project = Project::with(&spec(30), &service);
    // The output goes to files: a pipe that nobody reads would stop the plan before its first call.
    let out = |name: &str| std::fs::File::create(project.path(name)).unwrap();
    let mut child = project
        .command(&["apply", "--yes"])
        .stdout(out("stdout.txt"))
        .stderr(out("stderr.txt"))
        .spawn()
        .unwrap();
    crate::harness::wait_for("the first calls", || service.mutations().len() > 5);
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let code = child.wait().unwrap().code();
    let said = std::fs::read_to_string(project.path("stderr.txt")).unwrap();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("skipped") || said.contains("remain"), "{said}");
    project.run(&["apply", "--yes"]).expect(0);
    expect_exactly(|it| service.names(it), 30, "after an interrupt");
}

/// After a stopped destroy, the message names `plumb destroy`: an apply would make the deleted objects again.
#[test]
fn a_destroy_that_was_stopped_goes_on_with_a_destroy() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:40"]);
    let project = Project::with(&spec(20), &service);
    project.run(&["apply", "--yes"]).expect(0);
    let made = service.mutations().len();
    let out = std::fs::File::create(project.path("stderr.txt")).unwrap();
    let mut command = project.command(&["destroy", "--yes"]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(out).spawn().unwrap();
    crate::harness::wait_for("the first deletes", || service.mutations().len() > made + 3);
    let killed =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = std::fs::read_to_string(project.path("stderr.txt")).unwrap();
    assert!(said.contains("`plumb destroy` goes on from here"), "{said}");
    assert!(!said.contains("plumb apply"), "{said}");
    project.run(&["destroy", "--yes"]).expect(0);
    expect_exactly(|it| service.names(it), 0, "after a destroy that was stopped");
}

#[test]
fn stopped_at_once_it_says_that_calls_are_in_doubt() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=hang,times=2"]);
    let project = Project::with(&spec(1), &service);
    let out = |name: &str| std::fs::File::create(project.path(name)).unwrap();
    let mut child = project
        .command(&["apply", "--yes"])
        .stdout(out("stdout.txt"))
        .stderr(out("stderr.txt"))
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(project.path("stderr.txt")).unwrap();
    crate::harness::wait_for("a call", || said().contains("creating"));
    for _ in 0..2 {
        let pid = child.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success()
        );
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(child.wait().unwrap().code(), Some(4), "{}", said());
    project.run(&["apply", "--yes"]).expect(0);
    expect_exactly(|it| service.names(it), 1, "after two interrupts");
}

/// A run was killed while it gave an object its name. The object's id is known, so `--absent` is refused: no
/// state would have the object then.
#[test]
fn what_shows_is_not_called_absent() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,nth=2,kind=hang"]);
    let project = Project::with(
        "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n",
        &service,
    );
    let stderr = std::fs::File::create(project.path("stderr.txt")).unwrap();
    let mut command = project.command(&["apply", "--yes"]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(stderr).spawn().unwrap();
    crate::harness::wait_for("the second call", || {
        std::fs::read_to_string(project.path("stderr.txt")).unwrap().contains("activating")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    project.run(&["resolve"]).expect(4);
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    let refused = project.run(&["resolve", "network_volume.v", "--absent"]).expect(1).stderr;
    let way = format!("`plumb resolve network_volume.v --adopt {id}`");
    assert!(refused.contains("is there") && refused.contains(&way), "{refused}");
    // If the object cannot be read, `--absent` needs `--force`.
    let mut away = Project::new("");
    std::fs::rename(project.path(".plumb"), away.path(".plumb")).unwrap();
    away.write("plumb.toml", std::fs::read(project.path("plumb.toml")).unwrap());
    for (name, value) in &service.environment {
        let nobody = if name.ends_with("URL") { "http://127.0.0.1:9/v1" } else { value };
        away.set(name, nobody);
    }
    let unseen = away.run(&["resolve", "network_volume.v", "--absent"]).expect(1).stderr;
    assert!(unseen.contains("cannot be seen") && unseen.contains("--force"), "{unseen}");
    std::fs::rename(away.path(".plumb"), project.path(".plumb")).unwrap();
    project.run(&["resolve", "network_volume.v", "--adopt", &id]).expect(0);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), ["v"]);
}
