//! Objects that others made are taken over, by the command and by `[[import]]` blocks.

use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::harness::{Project, Service, data};

const SPEC: &str = r#"
[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.registry_auth.hub]
name = "hub"
username = "bot"
password = "canary-password-1"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
env = { MODEL = "tiny" }
container_registry_auth_id = "${registry_auth.hub.id}"

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 3
network_volume_id = "${network_volume.models.id}"

[resource.endpoint.typed]
name = "typed"
template_id = "${template.worker.id}"
gpu_type_ids = ["NVIDIA GeForce RTX 4090"]
workers_min = 0
workers_max = 1

[resource.pod.trainer]
name = "trainer"
image_name = "registry.example/train:1"
gpu_type_id = "NVIDIA A40"
cloud_type = "COMMUNITY"
docker_start_cmd = ["sleep", "600"]
running = false
network_volume_id = "${network_volume.models.id}"
"#;

const ADDRESSES: [(&str, &str, &str); 6] = [
    ("network_volume.models", "/networkvolumes", "models"),
    ("registry_auth.hub", "/containerregistryauth", "hub"),
    ("template.worker", "/templates", "worker"),
    ("endpoint.chat", "/endpoints", "chat"),
    ("endpoint.typed", "/endpoints", "typed"),
    ("pod.trainer", "/pods", "trainer"),
];

/// Returns the id of the only object with a name in a collection.
fn id_of(service: &Service, collection: &str, name: &str) -> String {
    let objects = service.list(collection);
    let found = objects.iter().find(|object| object["name"] == name).expect("it is there");
    found["id"].as_str().expect("an id").to_owned()
}

/// The calls that set the attributes which no answer shows: the password, and the preferred GPU types.
const WRITE_ONLY: [&str; 2] = ["PATCH /endpoints/{id}", "updateRegistryAuth"];

fn set_once(service: &Service, before: usize) -> Vec<String> {
    let mut calls = service.mutations().split_off(before);
    calls.sort();
    calls
}

/// Makes all objects of the spec from another folder.
fn made_elsewhere(service: &Service) {
    let other = Project::with(SPEC, service);
    other.run(&["apply", "--yes"]).expect(0);
}

#[test]
fn every_type_is_taken_over_by_id_and_the_plan_ends_empty() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    made_elsewhere(&service);
    let before = service.mutations().len();
    let project = Project::with(SPEC, &service);
    let mut last = String::new();
    for (address, collection, name) in ADDRESSES {
        let id = id_of(&service, collection, name);
        last = project.run(&["import", address, &id]).expect(0).said();
        assert!(last.contains(&format!("{address} stands for {id} now")), "{last}");
        assert!(!last.contains("canary-password"), "{last}");
    }
    assert_eq!(service.mutations().len(), before, "an import changes nothing");
    // Nobody knows if an attribute that cannot be read is as the spec says. So it is set once.
    assert!(last.contains("registry_auth.hub will be updated"), "{last}");
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["summary"]["update"], 2, "{plan}");
    assert_eq!(plan["summary"]["create"], 0, "{plan}");
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(set_once(&service, before), WRITE_ONLY);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    for (_, collection, _) in ADDRESSES {
        assert!(service.list(collection).is_empty(), "{collection}");
    }
}

#[test]
fn an_import_that_leaves_nothing_to_do_says_so() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let volume = json!({"name": "models", "size": 100, "dataCenterId": "EU-RO-1"});
    let (_, body) = service.request("POST", "/networkvolumes", Some(&volume));
    let id = serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned();
    let spec = &SPEC[..SPEC.find("[resource.registry_auth").unwrap()];
    let project = Project::with(spec, &service);
    // Until then, a plan warns that the name is taken, and names the object.
    let warned = project.run(&["plan"]).expect(0).said();
    assert!(warned.contains(&format!("plumb import network_volume.models {id}")), "{warned}");
    let said = project.run(&["import", "network_volume.models", &id]).expect(0).said();
    assert!(said.contains("No changes"), "{said}");
    let again = project.run(&["import", "network_volume.models", &id]).expect(1).said();
    assert!(again.contains("is in the state already"), "{again}");
}

#[test]
fn every_type_is_taken_over_through_the_plan() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    made_elsewhere(&service);
    let before = service.mutations().len();
    // A plan file in clear takes no secret that is written in the spec.
    let variables = "\n[variable.secret]\ntype = \"string\"\nsensitive = true\n";
    let own = SPEC
        .replace("\"bot\"", "\"${var.secret}\"")
        .replace("\"canary-password-1\"", "\"${var.secret}\"")
        + variables;
    let mut spec = own.clone();
    for (address, collection, name) in ADDRESSES {
        let id = id_of(&service, collection, name);
        write!(spec, "\n[[import]]\nto = \"{address}\"\nid = \"{id}\"\n").unwrap();
    }
    let mut project = Project::with(&spec, &service);
    project.set("PLUMB_VAR_secret", "canary-password-1");
    let plan = project.run(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["summary"]["import"], 6, "{plan}");
    assert_eq!(plan["summary"]["create"], 0, "{plan}");
    let text = project.run(&["plan", "--out", "plan.json"]).expect(0).said();
    assert!(text.contains("network_volume.models will be taken over  (id "), "{text}");
    assert!(text.contains("registry_auth.hub will be taken over, and updated in place"), "{text}");
    // The plan file holds what the plan showed, and its apply does exactly that.
    project.write("plan-key", "");
    let applied = project.run(&["apply", "plan.json", "--yes"]).said();
    assert!(applied.contains("6 imported"), "{applied}");
    assert_eq!(set_once(&service, before), WRITE_ONLY);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.write("plumb.toml", own);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_spec_with_imports_is_validated_like_any_other() {
    let project = Project::new(&format!(
        "{}\n[[import]]\nto = \"network_volume.models\"\nid = \"abc\"\n",
        &SPEC[..SPEC.find("[resource.registry_auth").unwrap()]
    ));
    project.run(&["validate"]).expect(0);
    project.write(
        "more.plumb.toml",
        "[resource.value.v]\ninput = 1\n[[import]]\nto = \"value.v\"\nid = \"x\"\n\
         [resource.endpoint.e]\nname = \"chat-e\"\ntemplate_id = \"t\"\nworkers_min = 9\nworkers_max = 1\n",
    );
    let said = project.run(&["validate"]).expect(1).stderr;
    assert!(said.contains("no API has it") && said.contains("workers_m"), "{said}");
    assert!(!said.contains("--no-refresh"), "{said}");
}

#[test]
fn a_saved_import_of_what_changed_since_is_stale() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let volume = json!({"name": "models", "size": 100, "dataCenterId": "EU-RO-1"});
    service.request("POST", "/networkvolumes", Some(&volume));
    let id = id_of(&service, "/networkvolumes", "models");
    let spec = &SPEC[..SPEC.find("[resource.registry_auth").unwrap()];
    let spec = format!("{spec}\n[[import]]\nto = \"network_volume.models\"\nid = \"{id}\"\n");
    let project = Project::with(&spec, &service);
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    service.request("PATCH", &format!("/networkvolumes/{id}"), Some(&json!({"size": 150})));
    let stale = project.run(&["apply", "plan.json", "--yes"]).expect(3).said();
    assert!(stale.contains("volume size must increase") && stale.contains("stale plan"), "{stale}");
    project.run(&["plan", "--out", "plan.json"]).expect(1);
}

#[test]
fn what_cannot_be_taken_over_is_refused_with_the_reason() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    made_elsewhere(&service);
    let before = service.mutations().len();
    let project = Project::with(&format!("{SPEC}\n[resource.value.v]\ninput = 1\n"), &service);
    let volume = id_of(&service, "/networkvolumes", "models");
    for (address, id, words) in [
        ("network_volume.models", "nosuchid", "there is no network_volume with the id nosuchid"),
        ("network_volume.models", "a/../b", "is no id"),
        ("network_volume.models", "..", "is no id"),
        ("network_volume.models", "a?b=c", "there is no network_volume with the id a?b=c"),
        ("network_volume.models", "a%2fb", "is no id"),
        ("network_volume.models", "a\nb", "is no id"),
        ("network_volume.other", &volume, "[resource.network_volume.other]"),
        ("endpoint.chat", &volume, "there is no endpoint with the id"),
        ("value.v", "x", "lives in the state only"),
        ("nonsense", "x", "is not an address"),
    ] {
        let refused = project.run(&["import", address, id]).expect(1).said();
        assert!(refused.contains(words), "{address} {id:?}:\n{refused}");
    }
    project.run(&["import", "network_volume.models", &volume]).expect(0);
    let twin =
        SPEC.replace("volume.models]", "volume.twin]").replace("volume.models.", "volume.twin.");
    project.write("twin.plumb.toml", &twin[..twin.find("[resource.registry_auth").unwrap()]);
    let owned = project.run(&["import", "network_volume.twin", &volume]).expect(1).said();
    assert!(owned.contains("network_volume.models stands for this object already"), "{owned}");
    assert_eq!(service.mutations().len(), before);
}
