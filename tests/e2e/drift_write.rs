//! `plumb drift --write`: changes made outside Plumb are written into the spec.

use serde_json::{Value, json};

use crate::harness::{Project, Service, data};

const SPEC: &str = r#"# The inference service.
[variable.workers]
type = "integer"
default = 1

[resource.network_volume.models]
name = "models"
size = 100 # GB; may only grow
data_center_id = "EU-RO-1"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
env = { MODEL = "tiny", TOKEN = "${var.token}", WORKERS = "${var.workers}-w" } # read at start

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_max = "${var.workers}"

[variable.token]
type = "string"
sensitive = true
default = "hunter-two"
"#;

/// Changes an object without Plumb.
fn change(service: &Service, collection: &str, body: &Value) {
    let id = service.list(collection)[0]["id"].as_str().unwrap().to_owned();
    let (status, said) = service.request("PATCH", &format!("{collection}/{id}"), Some(body));
    assert_eq!(status, 200, "{said}");
}

#[test]
fn an_accepted_change_is_written_and_the_plan_is_empty_then() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "--yes"]).expect(0);
    change(&service, "/networkvolumes", &json!({"size": 300}));
    let env = json!({"MODEL": "large", "TOKEN": "hunter-two", "WORKERS": "1-w", "DEBUG": "${on}"});
    change(&service, "/templates", &json!({"env": env, "imageName": "registry.example/worker:2"}));
    change(&service, "/endpoints", &json!({"workersMin": 1, "workersMax": 2}));
    let before = service.mutations().len();

    let drift = project.run(&["drift", "--write"]).expect(2);
    let said = drift.said();
    assert!(said.contains("plumb.toml:8 network_volume.models: size = 300"), "{said}");
    assert!(said.contains("endpoint.chat: workers_min = 1"), "{said}");
    // The plain values beside a secret are written, and the secret is not shown.
    assert!(said.contains(r#"MODEL = "large", TOKEN = "(sensitive)", WORKERS"#), "{said}");
    assert!(!said.contains("TOKEN`") && !said.contains("hunter-two"), "{said}");
    // A value that an expression makes is named, with its place and its variable.
    assert!(said.contains("`workers_max` of endpoint.chat stays in the spec"), "{said}");
    assert!(said.contains("variable `workers`, so that this gives `2`"), "{said}");
    let expected = SPEC
        .replace("100 # GB", "300 # GB")
        .replace("worker:1", "worker:2")
        .replace("MODEL = \"tiny\"", "MODEL = \"large\"")
        .replace("-w\" }", "-w\", DEBUG = \"$${on}\" }")
        .replace("\"${var.workers}\"\n", "\"${var.workers}\"\nworkers_min = 1\n");
    let written = std::fs::read_to_string(project.path("plumb.toml")).unwrap();
    assert_eq!(written, expected);

    let plan = project.run(&["plan", "--json"]).expect(0).json();
    let causes: Vec<&Value> = plan["changes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|change| change["causes"].as_array().unwrap())
        .map(|cause| &cause["attribute"])
        .collect();
    // The environment of the worker uses the same variable, and did not change outside.
    assert_eq!(causes, ["workers_max"], "{plan}");
    let again = project.run(&["drift", "--write", "--json"]).expect(2).json();
    assert_eq!(again["written"], json!([]), "{again}");
    assert_eq!(std::fs::read_to_string(project.path("plumb.toml")).unwrap(), written);
    assert_eq!(service.mutations().len(), before, "nothing was called");

    project.run(&["apply", "--refresh-only", "--yes"]).expect(0);
    project.run(&["drift", "--write"]).expect(0);
}

#[test]
fn what_a_rule_forbids_to_change_back_is_written_all_the_same() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = &SPEC[SPEC.find("[resource.network").unwrap()..SPEC.find("[resource.tem").unwrap()];
    let project = Project::with(spec, &service);
    project.run(&["apply", "--yes"]).expect(0);
    change(&service, "/networkvolumes", &json!({"size": 300}));
    // The plan is refused, because a volume cannot shrink.
    project.run(&["plan"]).expect(1);
    let drift = project.run(&["drift", "--write", "--json"]).expect(0).json();
    assert_eq!(
        drift["written"],
        json!([{
            "address": "network_volume.models",
            "attribute": "size",
            "file": drift["written"][0]["file"],
            "line": 3,
            "value": "300",
        }]),
        "{drift}"
    );
    let plan = project.run(&["plan", "--detailed-exitcode"]).expect(0).said();
    assert!(plan.contains("Nothing to change.") && !plan.contains("to keep it"), "{plan}");
}
