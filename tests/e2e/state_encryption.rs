//! An encryption key for the state: without the key no stored file can be read, and each mistake has its own
//! message.

use crate::harness::{Project, Ran, Service, data};
use crate::lifecycle::SPEC;

const PASSPHRASE: &str = "canary passphrase of the state";

/// Texts from the spec, the objects and the file formats. They stand in unencrypted files, and must not stand
/// in encrypted ones.
const CANARIES: [&str; 7] =
    ["network_volume", "EU-RO-1", "models", "worker", "chat", "entries", "plumb-plan"];

fn readable(bytes: &[u8], more: &[String]) -> Vec<String> {
    let canaries = CANARIES.iter().map(|text| (*text).to_owned()).chain(more.iter().cloned());
    canaries
        .filter(|canary| bytes.windows(canary.len()).any(|part| part == canary.as_bytes()))
        .collect()
}

fn ids(service: &Service) -> Vec<String> {
    let objects = ["/networkvolumes", "/templates", "/endpoints"].map(|path| service.list(path));
    let ids = objects.iter().flatten();
    ids.map(|object| object["id"].as_str().expect("an id").to_owned()).collect()
}

#[track_caller]
fn quiet(ran: Ran, code: i32) -> String {
    let said = ran.expect(code).said();
    assert!(!said.contains(PASSPHRASE), "the key was printed:\n{said}");
    said
}

#[test]
fn nothing_at_rest_can_be_read_and_everything_works() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(readable(&project.written(), &ids(&service)).len(), CANARIES.len() - 1 + 3);
    project.run(&["destroy", "--yes"]).expect(0);

    project = Project::with(SPEC, &service);
    project.set("PLUMB_STATE_KEY", PASSPHRASE);
    quiet(project.run(&["plan", "--out", "plan.json"]), 0);
    let plan = std::fs::read(project.path("plan.json")).expect("the plan file");
    assert_eq!(readable(&plan, &[]), Vec::<String>::new());
    quiet(project.run(&["show", "plan.json"]), 0);
    quiet(project.run(&["apply", "plan.json", "--yes"]), 0);
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 110"));
    quiet(project.run(&["apply", "--yes"]), 0);
    quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
    assert_eq!(quiet(project.run(&["state", "list"]), 0).lines().count(), 3);
    assert_eq!(readable(&project.written(), &ids(&service)), Vec::<String>::new());
}

#[test]
fn a_killed_run_leaves_a_sealed_journal_that_is_read() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:200"]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_STATE_KEY", &"0f".repeat(32));
    let mut run = project.spawn(&["apply", "--yes"]);
    crate::harness::wait_for("two calls", || service.mutations().len() > 2);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    assert_eq!(readable(&project.written(), &[]), Vec::<String>::new());
    quiet(project.run(&["apply", "--yes"]), 0);
    quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
    assert_eq!(service.names("/networkvolumes"), ["models"]);
}

#[test]
fn another_key_and_none_read_and_change_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_STATE_KEY", PASSPHRASE);
    quiet(project.run(&["plan", "--out", "plan.json"]), 0);
    quiet(project.run(&["apply", "--yes"]), 0);
    let (before, calls) = (project.written(), service.mutations().len());
    for (key, words) in [
        (None, "is encrypted, but PLUMB_STATE_KEY is not set"),
        (Some("quite another passphrase"), "with another key than PLUMB_STATE_KEY"),
    ] {
        for arguments in [
            &["plan"][..],
            &["apply", "--yes"],
            &["destroy", "--yes"],
            &["state", "list"],
            &["output"],
            &["show"],
            &["show", "plan.json"],
            &["apply", "plan.json", "--yes"],
        ] {
            let mut command = project.command(arguments);
            match key {
                Some(key) => command.env("PLUMB_STATE_KEY", key),
                None => command.env_remove("PLUMB_STATE_KEY"),
            };
            let ran = crate::harness::ran(&command.output().expect("the binary runs"));
            let said = quiet(ran, 8);
            assert!(said.contains(words), "{arguments:?}:\n{said}");
        }
    }
    assert_eq!(service.mutations().len(), calls);
    assert!(project.written() == before, "something was written");
}

#[test]
fn a_plain_state_is_sealed_and_that_is_said_once() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.run(&["apply", "--yes"]).expect(0);
    project.set("PLUMB_STATE_KEY", PASSPHRASE);
    let first = quiet(project.run(&["apply", "--yes"]), 0);
    assert!(first.contains("from now on it is, with PLUMB_STATE_KEY"), "{first}");
    assert_eq!(readable(&project.written(), &ids(&service)), Vec::<String>::new());
    let second = quiet(project.run(&["apply", "--yes"]), 0);
    assert!(!second.contains("PLUMB_STATE_KEY"), "{second}");
    // A person can go back to an unencrypted state.
    let pulled = project.run(&["state", "pull"]).expect(0).stdout;
    project.write("pulled.json", pulled);
    let push = ["state", "push", "--force", "pulled.json"];
    let plain = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env_remove("PLUMB_STATE_KEY");
        crate::harness::ran(&command.output().expect("the binary runs"))
    };
    plain(&push).expect(0);
    plain(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn an_older_sealed_state_put_back_is_noticed() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_STATE_KEY", PASSPHRASE);
    quiet(project.run(&["apply", "--yes"]), 0);
    let kept = [".plumb/state.json", ".plumb/journal"]
        .map(|name| (name, std::fs::read(project.path(name)).expect("it is there")));
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 110"));
    quiet(project.run(&["apply", "--yes"]), 0);
    for (name, bytes) in kept {
        project.write(name, bytes);
    }
    let said = quiet(project.run(&["apply", "--yes"]), 8);
    assert!(said.contains("older than it should be"), "{said}");
}

#[test]
fn a_key_that_is_none_is_no_reason_to_write_in_clear() {
    let mut project = Project::new("[resource.value.v]\ninput = 1\n");
    for key in ["", "short"] {
        project.set("PLUMB_STATE_KEY", key);
        let said = project.run(&["apply", "--yes"]).expect(1).said();
        assert!(said.contains("PLUMB_STATE_KEY cannot be used"), "{said}");
        assert!(!project.path(".plumb").exists(), "nothing was written");
    }
}
