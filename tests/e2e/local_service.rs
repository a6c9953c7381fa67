//! The service on this machine must be asked for, and objects of one service are not looked for on another
//! one.

use std::process::Command;

use crate::harness::{Project, Service, data, wait_for};

const VOLUME: &str =
    "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
const URL: &str = "PLUMB_SERVERLESS_REST_URL";
const KEY: &str = "PLUMB_SERVERLESS_API_KEY";

#[test]
fn without_an_address_or_local_nothing_is_started() {
    let mut project = Project::new(VOLUME);
    let refused = project.run(&["apply", "-y"]).expect(1).stderr;
    for word in [URL, KEY, "`local = true`", "`--local`"] {
        assert!(refused.contains(word), "{refused}");
    }
    project.set(KEY, "a-key-of-a-real-service");
    project.set("PLUMB_SERVERLES_REST_URL", "http://127.0.0.1:1/v1");
    let refused = project.run(&["apply", "-y", "-q"]).expect(1).stderr;
    for word in [&format!("{KEY} is set"), &format!("{URL}, "), &format!("did you mean {URL}?")] {
        assert!(refused.contains(word.as_str()), "{refused}");
    }
    assert!(!project.path(".plumb").exists());
    project.run(&["apply", "-y", "--local"]).expect(0);
}

/// The key is not printed, because a terminal or the log of a CI system would keep it.
#[test]
fn a_service_prints_its_key_only_on_request() {
    let folder = data();
    let log = folder.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut service = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["serve", "--listen", "127.0.0.1:0", "--key", "canary-key", "--data"])
        .arg(folder.path().join("service"))
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let printed = || std::fs::read_to_string(&log).unwrap();
    wait_for("the service", || printed().contains("--print-env"));
    service.kill().unwrap();
    service.wait().unwrap();
    assert!(printed().contains("\nREST http://127.0.0.1:"), "{}", printed());
    assert!(!printed().contains("canary-key"), "{}", printed());
}

#[test]
fn a_local_spec_and_an_address_are_two_services() {
    let mut project = Project::local(VOLUME);
    project.set(URL, "http://127.0.0.1:1/v1");
    let refused = project.run(&["plan"]).expect(1).stderr;
    assert!(refused.contains("`local = true`") && refused.contains(URL), "{refused}");
    project.run(&["plan", "--local"]).expect(0);
    project.write(
        "plumb.toml",
        "[provider.serverless]\nlocal = true\nrest_url = \"http://127.0.0.1:1\"\n",
    );
    let refused = project.run(&["validate"]).expect(1).stderr;
    assert!(refused.contains("ask for two services"), "{refused}");
}

#[test]
fn a_plan_says_first_which_service_it_acts_on() {
    let project = Project::local(VOLUME);
    let line = "Acts on local service (serverless).\n";
    for command in [
        &["plan", "-q"][..],
        &["plan", "--format", "markdown"],
        &["apply", "-y", "-q"],
        &["drift", "-q"],
    ] {
        let said = project.run(command).expect(0).stdout;
        assert!(said.starts_with(line), "{command:?}: {said}");
    }
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["locations"][0]["provider"], "serverless");
    assert_eq!(plan["locations"][0]["service"], "local service");
    project.run(&["plan", "--out", "p.json", "--destroy"]).expect(0);
    let shown = project.run(&["show", "p.json"]).expect(0).stdout;
    assert!(shown.starts_with(line), "{shown}");
    project.run(&["apply", "p.json", "-y"]).expect(0);
}

#[test]
fn a_state_stays_with_its_service() {
    let project = Project::local(VOLUME);
    project.run(&["apply", "-y"]).expect(0);
    // A service that a person started over the folder's data, at another port, is the same service.
    {
        let _by_hand = Service::start(&project.path(".plumb/service"), &[]);
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut elsewhere = project;
    elsewhere.write("plumb.toml", VOLUME);
    for (name, value) in &service.environment {
        elsewhere.set(name, value);
    }
    for command in [&["plan"][..], &["apply", "-y"], &["destroy", "-y"], &["drift"]] {
        let refused = elsewhere.run(command).expect(1).stderr;
        for word in ["acted on the local service", "would act on 127.0.0.1:", "state relocate"] {
            assert!(refused.contains(word), "{command:?}: {refused}");
        }
    }
    assert!(service.mutations().is_empty());
    elsewhere.run(&["destroy", "-y", "--local"]).expect(0);
    // The old service has no objects left, so the state may be used with another one.
    let applied = elsewhere.run(&["apply", "-y"]).expect(0);
    assert!(applied.stdout.starts_with("Acts on 127.0.0.1:"), "{}", applied.stdout);
}

#[test]
fn another_key_that_finds_nothing_may_be_another_account() {
    let folder = data();
    let mut project;
    let listen;
    {
        let service = Service::start(folder.path(), &[]);
        project = Project::with(VOLUME, &service);
        project.run(&["apply", "-y"]).expect(0);
        listen = service.environment[URL]
            .trim_start_matches("http://")
            .trim_end_matches("/v1")
            .to_owned();
    }
    let other = data();
    let service = Service::at(other.path(), &listen, "another-key-77c");
    project.set(KEY, &service.environment[KEY]);
    let refused = project.run(&["plan"]).expect(1).stderr;
    assert!(refused.contains("1 object of the state cannot be found with it"), "{refused}");
    project.run(&["state", "relocate", "serverless"]).expect(0);
    let plan = project.run(&["plan"]).expect(0).stdout;
    assert!(plan.contains("1 to create"), "{plan}");
}
