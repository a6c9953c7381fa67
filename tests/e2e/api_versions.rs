//! The two versions of the service's API: changing one word moves a spec from one to the other.

use crate::harness::{Project, Service, data};
use crate::pods::POD;

const SPEC: &str = r#"
[provider.serverless]
version = "v1"

[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
volume_in_gb = 0
env = { MODEL = "tiny" }

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
image_name = "IMAGE"
gpu_ids = "ADA_24,AMPERE_48,-NVIDIA A40"
workers_max = 1
network_volume_id = "${network_volume.models.id}"

[resource.endpoint.cpu]
name = "cpu"
template_id = "${template.worker.id}"
gpu_ids = ""
instance_ids = ["cpu3c-2-4"]
scaler_type = "REQUEST_COUNT"
scaler_value = 2
"#;

/// Returns the spec for a version, with a pod. In the second version, an endpoint has an image of its own.
fn spec(version: &str) -> String {
    let spec = SPEC.replace("\"v1\"", &format!("\"{version}\"")) + POD;
    let image = "${template.worker.image_name}";
    match version {
        "v1" => spec.replace("image_name = \"IMAGE\"\n", ""),
        _ => spec.replace("IMAGE", image),
    }
}

#[test]
fn a_spec_moves_to_the_second_version_by_one_word() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(&spec("v1"), &service);
    project.run(&["apply", "--yes"]).expect(0);

    let moved = spec("v1").replace("\"v1\"", "\"v2\"");
    project.write("plumb.toml", &moved);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    // The new version changes and deletes the objects.
    let changed = spec("v2").replace("worker:1", "worker:2").replace("size = 100", "size = 200");
    project.write("plumb.toml", &changed);
    let before = service.mutations().len();
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let mut calls = service.mutations().split_off(before);
    calls.sort();
    let expected = ["network-volumes", "serverless", "templates"];
    assert_eq!(calls, expected.map(|group| format!("PATCH /v2/{group}/{{id}}")));
    project.run(&["destroy", "--yes"]).expect(0);
    for collection in ["/networkvolumes", "/templates", "/endpoints", "/pods"] {
        assert!(service.list(collection).is_empty(), "{collection}");
    }
}

#[test]
fn the_second_version_has_secrets_and_tags() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = r#"
[provider.serverless]
version = "v2"

[variable.token]
type = "string"
sensitive = true
default = "hidden-1"

[resource.secret.hub]
name = "hub"
value = "${var.token}"

[resource.network_volume.models]
name = "models"
size = 10
data_center_id = "EU-RO-1"

[data.gpu_type.big]
id = "NVIDIA A100-SXM4-80GB"

[output.price]
value = "${data.gpu_type.big.serverless_price}"

[resource.tag.team]
key = "team"
value = "research"
resources = [{ type = "NETWORK_VOLUME", id = "${network_volume.models.id}" }]
"#;
    let project = Project::with(spec, &service);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(!applied.stdout.contains("hidden-1"), "{}", applied.stdout);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let price = project.run(&["output", "price", "--raw"]).expect(0).stdout;
    assert!(price.trim().parse::<f64>().is_ok_and(|price| price > 1.0), "{price}");
    project.write("plumb.toml", spec.replace("hidden-1", "hidden-2").replace("research", "sales"));
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
}

#[test]
fn attributes_that_a_version_lacks_are_named() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(
        "[provider.serverless]\nversion = \"v2\"\n\n[resource.endpoint.e]\nname = \"e\"\nimage_name = \"i:1\"\n\
         gpu_ids = \"ADA_24\"\nworkers_standby = 1\n",
        &service,
    );
    let refused = project.run(&["validate"]).expect(1);
    assert!(refused.stderr.contains("workers_standby"), "{}", refused.stderr);
    project.write("plumb.toml", "[provider.serverless]\nversion = \"v3\"\n");
    let refused = project.run(&["validate"]).expect(1);
    assert!(refused.stderr.contains("there is no such version"), "{}", refused.stderr);
}

#[test]
fn a_body_that_is_too_large_is_not_sent() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = |length: usize| {
        format!(
            "[provider.serverless]\nversion = \"v2\"\n\n[resource.template.t]\nname = \"t\"\n\
             image_name = \"i:1\"\nenv = {{ TEXT = \"{}\" }}\n",
            "x".repeat(length)
        )
    };
    let project = Project::with(&spec(102_400), &service);
    let refused = project.run(&["apply", "--yes"]);
    assert_ne!(refused.code, Some(0), "{}", refused.said());
    let said = refused.said();
    assert!(said.contains("and this API takes 102400 at most"), "{said}");
    assert!(said.contains("make `env` shorter"), "{said}");
    assert!(service.mutations().is_empty(), "{:?}", service.mutations());

    project.write("plumb.toml", spec(102_000));
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}
