//! The lifecycle of one environment: created, left alone, changed, drifted, destroyed.

use serde_json::json;

use crate::harness::{Project, Service, data};

pub(crate) const SPEC: &str = r#"
[plumb]
name = "inference"

[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
env = { MODEL = "tiny" }

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 3
network_volume_id = "${network_volume.models.id}"

[output.chat_url]
value = "${endpoint.chat.run_url}"
"#;

#[test]
fn first_apply_then_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["format"], "plumb-plan/1");
    assert_eq!(plan["summary"]["create"], 3);
    assert!(service.mutations().is_empty(), "a plan calls nothing that changes anything");
    project.run(&["plan", "--detailed-exitcode"]).expect(2);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(applied.stdout.contains("/run"), "{}", applied.said());
    assert_eq!(service.names("/networkvolumes"), ["models"]);
    assert_eq!(service.names("/endpoints"), ["chat"]);
    // Each object was created under a one-time name and then activated, in two calls.
    assert_eq!(service.mutations().len(), plan["steps"].as_array().unwrap().len());
    let again = project.run(&["apply", "--yes"]).expect(0);
    assert!(again.said().contains("No changes"), "{}", again.said());
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert_eq!(service.mutations().len(), plan["steps"].as_array().unwrap().len());
    let url = project.run(&["output", "chat_url", "--raw"]).expect(0).stdout;
    assert!(url.trim().ends_with("/run"), "{url}");
    let list = project.run(&["state", "list"]).expect(0).stdout;
    assert_eq!(list, "endpoint.chat\nnetwork_volume.models\ntemplate.worker\n");
}

#[test]
fn a_volume_grows_and_never_shrinks() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let before = service.mutations().len();
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 200"));
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["summary"]["update"], 1);
    assert_eq!(plan["changes"][0]["before"]["size"], 100);
    assert_eq!(plan["changes"][0]["after"]["size"], 200);
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.mutations().len(), before + 1);
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 50"));
    for arguments in [&["plan"][..], &["apply", "-y"]] {
        let refused = project.run(arguments).expect(1);
        let said = refused.said();
        for word in ["network_volume.models", "200", "50", "plumb.toml:7", "keep 200 or more"] {
            assert!(said.contains(word), "`{word}` is not in\n{said}");
        }
    }
    let refused = project.run(&["plan", "--json"]).expect(1).json();
    let diagnostic = &refused["diagnostics"][0];
    assert_eq!(diagnostic["line"], 7);
    assert_eq!(diagnostic["severity"], "error");
    assert_eq!(service.mutations().len(), before + 1, "nothing was called");
}

#[test]
fn an_endpoint_is_renamed_in_place() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let id = service.list("/endpoints")[0]["id"].clone();
    project.write("plumb.toml", SPEC.replace("name = \"chat\"", "name = \"talk\""));
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.names("/endpoints"), ["talk"]);
    assert_eq!(service.list("/endpoints")[0]["id"], id);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn another_data_center_is_refused_until_allowed() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let before = service.mutations().len();
    let moved = SPEC.replace("EU-RO-1", "US-KS-2");
    project.write("plumb.toml", &moved);
    let refused = project.run(&["plan"]).expect(1);
    assert!(refused.said().contains("allow_data_loss"), "{}", refused.said());
    assert_eq!(service.mutations().len(), before);
    let allowed = moved.replace(
        "data_center_id = \"US-KS-2\"",
        "data_center_id = \"US-KS-2\"\nlifecycle = { allow_data_loss = true }",
    );
    project.write("plumb.toml", &allowed);
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["summary"]["replace"], 1);
    project.run(&["apply", "-y"]).expect(0);
    let volumes = service.list("/networkvolumes");
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes[0]["dataCenterId"], "US-KS-2");
    assert_eq!(service.list("/endpoints")[0]["networkVolumeId"], volumes[0]["id"]);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_removed_endpoint_is_drained_deleted_and_gone() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let without = &SPEC[..SPEC.find("[resource.endpoint").unwrap()];
    project.write("plumb.toml", without);
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    let operations: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|step| step["operation"].clone()).collect();
    assert_eq!(operations, ["drain", "delete"]);
    project.run(&["apply", "-y"]).expect(0);
    assert!(service.list("/endpoints").is_empty());
    assert_eq!(service.names("/networkvolumes"), ["models"]);
}

#[test]
fn drift_is_seen_named_and_mended() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["drift"]).expect(0);
    let id = service.list("/endpoints")[0]["id"].as_str().unwrap().to_owned();
    let (status, body) =
        service.request("PATCH", &format!("/endpoints/{id}"), Some(&json!({"workersMax": 7})));
    assert_eq!(status, 200, "{body}");
    let drift = project.run(&["drift"]).expect(2);
    assert!(drift.said().contains("workers_max"), "{}", drift.said());
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["drift"][0]["address"], "endpoint.chat");
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.list("/endpoints")[0]["workersMax"], 3);
    project.run(&["drift"]).expect(0);
}

#[test]
fn a_volume_that_grew_outside_is_refused_with_a_proposal() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    let (status, body) =
        service.request("PATCH", &format!("/networkvolumes/{id}"), Some(&json!({"size": 200})));
    assert_eq!(status, 200, "{body}");
    let plan = project.run(&["plan"]).expect(1);
    assert!(plan.said().contains("changed outside"), "{}", plan.said());
    assert!(plan.said().contains("200"), "{}", plan.said());
    let drift = project.run(&["drift", "--json"]).expect(2);
    assert!(drift.stdout.contains("size = 200"), "{}", drift.stdout);
    project.write("plumb.toml", SPEC.replace("size = 100", "size = 200"));
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn destroy_leaves_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["destroy", "-y"]).expect(0);
    for collection in ["/networkvolumes", "/templates", "/endpoints"] {
        assert!(service.list(collection).is_empty(), "{collection}");
    }
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "");
    project.run(&["destroy", "-y"]).expect(0);
}

#[test]
fn without_a_terminal_and_without_yes_it_refuses() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    for (command, help) in [
        ("apply", "give `--yes`, or save a plan with `plumb plan --out FILE`"),
        ("destroy", "give `--yes`, or save a plan with `plumb plan --destroy --out FILE`"),
    ] {
        let said = project.run(&[command]).expect(1).said();
        assert!(said.contains(&format!("{command} needs confirmation")), "{said}");
        assert!(said.contains(help), "{said}");
    }
    assert!(service.mutations().is_empty());
}
