//! Attributes that the spec no longer gives: an apply clears or resets them.

use serde_json::{Value, json};

use crate::harness::{Project, Service, data};

const SPEC: &str = r#"
[resource.network_volume.models]
name = "models"
size = 10
data_center_id = "EU-RO-1"

[resource.registry_auth.images]
name = "images"
username = "puller"
password = "hunter2hunter2"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true
TEMPLATE

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
ENDPOINT
"#;

const TEMPLATE: &str = r#"env = { MODEL = "tiny" }
docker_entrypoint = ["/bin/sh"]
docker_start_cmd = ["-c", "true"]
readme = "Read me."
container_registry_auth_id = "${registry_auth.images.id}"
container_disk_in_gb = 77
ports = ["80/http"]
"#;

const ENDPOINT: &str = r#"network_volume_id = "${network_volume.models.id}"
min_cuda_version = "12.4"
allowed_cuda_versions = ["12.4"]
idle_timeout = 77
scaler_type = "REQUEST_COUNT"
scaler_value = 9
gpu_count = 2
execution_timeout_ms = 77000
workers_standby = 2
"#;

const OF_TEMPLATE: [&str; 7] = [
    "env",
    "dockerEntrypoint",
    "dockerStartCmd",
    "readme",
    "containerRegistryAuthId",
    "containerDiskInGb",
    "ports",
];
const OF_ENDPOINT: [&str; 8] = [
    "networkVolumeId",
    "minCudaVersion",
    "allowedCudaVersions",
    "idleTimeout",
    "scalerType",
    "scalerValue",
    "gpuCount",
    "executionTimeoutMs",
];

fn spec(template: &str, endpoint: &str) -> String {
    SPEC.replace("TEMPLATE", template).replace("ENDPOINT", endpoint)
}

/// Returns both objects as the service has them.
fn look(service: &Service) -> Vec<Value> {
    let of = |path: &str, names: &[&str]| {
        let object = service.list(path)[0].clone();
        names.iter().map(|name| object[*name].clone()).collect::<Vec<_>>()
    };
    [of("/templates", &OF_TEMPLATE), of("/endpoints", &OF_ENDPOINT)].concat()
}

#[test]
fn what_the_spec_no_longer_gives_goes_back() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = Project::with(&spec("", ""), &service);
    project.run(&["apply", "--yes"]).expect(0);
    let plain = look(&service);
    project.write("plumb.toml", spec(TEMPLATE, ENDPOINT));
    project.run(&["apply", "--yes"]).expect(0);
    let full = look(&service);
    assert!(full.iter().zip(&plain).all(|(a, b)| a != b), "{full:?} {plain:?}");

    project.write("plumb.toml", spec("", ""));
    let planned = project.run(&["plan"]).expect(0);
    assert!(!planned.said().contains("no longer managed"), "{}", planned.said());
    insta::assert_snapshot!(changes(&planned.stdout), @r#"
    allowed_cuda_versions # unset
    execution_timeout_ms 77000 → (known after apply) # unset
    gpu_count 2 → 1 # unset
    idle_timeout 77 → (known after apply) # unset
    min_cuda_version "12.4" → (unset)
    network_volume_id: an id → (unset)
    scaler_type "REQUEST_COUNT" → "QUEUE_DELAY" # unset
    scaler_value 9 → 4 # unset
    workers_standby 2 → 1 # unset
    container_disk_in_gb 77 → 50 GB # unset
    container_registry_auth_id: an id → (unset)
    docker_entrypoint # unset
    docker_start_cmd # unset
    env # unset
    ports # unset
    readme "Read me." → "" # unset
    "#);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(look(&service), plain);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    project.run(&["drift"]).expect(0);
}

/// Returns the lines about attributes that are unset, without leading blanks, and with words in place of ids.
fn changes(plan: &str) -> String {
    let lines = plan.lines().filter(|line| line.contains("unset"));
    let line = |line: &str| match line.trim().split_once("_id") {
        Some((name, rest)) => {
            let (_, after) = rest.split_once("→").unwrap_or_default();
            format!("{name}_id: an id →{after}")
        }
        None => line.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// A value that no call can clear stays, and the plan says so. Here it belongs to an endpoint with GPU types,
/// whose API keeps what a call leaves out.
#[test]
fn what_an_update_cannot_leave_out_stays() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let types = |more: &str| {
        spec("", more).replace("gpu_ids = \"ADA_24\"", "gpu_type_ids = [\"NVIDIA A40\"]")
    };
    let project = Project::with(&types("idle_timeout = 77\n"), &service);
    project.run(&["apply", "--yes"]).expect(0);
    project.write("plumb.toml", types(""));
    let said = project.run(&["plan"]).expect(0).said();
    assert!(said.contains("`idle_timeout` is no longer managed, stays 77"), "{said}");
    assert_eq!(service.list("/endpoints")[0]["idleTimeout"], json!(77));
}

const TEMPLATE_2: &str = r#"env = { MODEL = "tiny" }
docker_entrypoint = ["/bin/sh"]
docker_start_cmd = ["-c", "true"]
container_registry_auth_id = "${registry_auth.images.id}"
"#;

/// Two attributes that cannot be given together, each in its own block.
const ENDPOINTS_2: [&str; 2] = [
    "network_volume_id = \"${network_volume.models.id}\"\nmin_cuda_version = \"12.4\"\n",
    "allowed_cuda_versions = [\"12.4\"]\n",
];

/// In version 2 of the API, attributes that the spec no longer gives are cleared, too, as far as that version
/// can do it.
#[test]
fn what_the_spec_no_longer_gives_goes_back_in_version_2() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = |template: &str, endpoint: &str| {
        format!("[provider.serverless]\nversion = \"v2\"\n{}", spec(template, endpoint))
    };
    let project = Project::with(&spec("", ""), &service);
    project.run(&["apply", "--yes"]).expect(0);
    let plain = look(&service);
    for endpoint in ENDPOINTS_2 {
        project.write("plumb.toml", spec(TEMPLATE_2, endpoint));
        project.run(&["apply", "--yes"]).expect(0);
        assert_ne!(look(&service), plain);
        project.write("plumb.toml", spec("", ""));
        let planned = project.run(&["plan"]).expect(0);
        assert!(!planned.said().contains("no longer managed"), "{}", planned.said());
        project.run(&["apply", "--yes"]).expect(0);
        assert_eq!(look(&service), plain, "{endpoint}");
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
}
