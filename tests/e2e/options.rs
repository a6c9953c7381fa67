//! Options have the effect that their help describes, and no command has an option that it ignores.

use serde_json::json;

use crate::harness::{Project, Service, data};
use crate::lifecycle::SPEC;

#[test]
fn destroy_knows_no_option_of_another_plan() {
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    project.run(&["apply", "-y"]).expect(0);
    for option in [&["--refresh-only"][..], &["--replace", "value.a"], &["--destroy"]] {
        let ran = project.run(&[&["destroy", "-y"], option].concat()).expect(1);
        assert!(ran.stderr.contains(option[0]), "{}", ran.said());
    }
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "value.a\n");
    let help = project.run(&["destroy", "--help"]).expect(0).stdout;
    assert!(!help.contains("--refresh-only") && help.contains("--target"), "{help}");
    project.run(&["destroy", "-y"]).expect(0);
    let again = project.run(&["destroy", "-y"]).expect(0);
    assert!(again.stdout.contains("Nothing to destroy."), "{}", again.said());
}

#[test]
fn drift_looks_at_what_was_chosen_and_knows_no_option_of_another_plan() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let nothing = project.run(&["plan", "--refresh-only"]).expect(0);
    assert!(nothing.stdout.contains("Nothing changed outside."), "{}", nothing.said());
    let nightly = ["plan", "--refresh-only", "--detailed-exitcode"];
    project.run(&nightly).expect(0);
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    service.request("PATCH", &format!("/networkvolumes/{id}"), Some(&json!({"size": 150})));
    project.run(&nightly).expect(2);
    for option in [&["--no-refresh"][..], &["--destroy"], &["--replace", "endpoint.chat"]] {
        project.run(&[&["drift"], option].concat()).expect(1);
    }
    let volume = "network_volume.models";
    let seen = project.run(&["drift", "--target", volume]).expect(2);
    assert!(seen.stdout.contains(volume), "{}", seen.said());
    project.run(&["drift", "--exclude", volume]).expect(0);
    project.run(&["apply", "-y", "--refresh-only", "--exclude", volume]).expect(0);
    project.run(&["drift"]).expect(2);
    let unseen = project.run(&["plan", "--no-refresh"]).expect(0);
    assert!(unseen.stdout.contains("nothing live was looked at"), "{}", unseen.said());
    // The events of an apply end in the same way, if there was much, little or nothing to do.
    let events = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let ran = project.run(arguments).expect(0);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for _ in 0..2 {
        let told = events(&["apply", "-y", "--json", "--refresh-only"]);
        let [.., finished, outputs] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(finished["event"], "run_finished", "{told:?}");
        assert!(outputs["outputs"]["chat_url"].is_string(), "{told:?}");
    }
}
