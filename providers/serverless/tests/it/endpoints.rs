//! Endpoints: two APIs, updates that send whole objects, workers that end.

use provider_port::Provider as _;
use serde_json::json;

use crate::support::{Service, begin, create, delete, finish, read, shown, update};

const DRAWN: &[&str] = &["id", "template_id", "created_at", "run_url", "runsync_url", "health_url"];

async fn template(service: &Service, command: &[&str]) -> provider_port::Object {
    let wanted = json!({"name": "t", "image_name": "i:1", "is_serverless": true,
        "docker_start_cmd": command});
    create(&service.provider(), ("template", 0), &wanted).await.unwrap()
}

#[tokio::test]
async fn by_pools_over_graphql() {
    let service = Service::start().await;
    let provider = service.provider();
    let template = template(&service, &[]).await;
    let wanted = json!({"name": "chat", "template_id": &*template.id.0, "gpu_ids": "ADA_24",
        "workers_min": 0, "workers_max": 3, "idle_timeout": 42, "network_volume_id": null});
    let endpoint = create(&provider, ("endpoint", 1), &wanted).await.unwrap();
    insta::assert_snapshot!(shown(&read(&provider, "endpoint", &endpoint).await, DRAWN), @r#"
allowed_cuda_versions = {}
base_url = null
compliance = []
compute_type = "GPU"
execution_timeout_ms = 600000
flash_boot_type = "OFF"
flash_environment_id = null
gpu_count = 1
gpu_ids = "ADA_24"
gpu_types = {"NVIDIA GeForce RTX 4090"}
hub_release_id = null
idle_timeout = 42
instance_ids = []
locations = null
min_cuda_version = null
model_references = []
name = "chat"
network_volume_id = null
network_volume_ids = {}
pods = []
scaler_type = "QUEUE_DELAY"
scaler_value = 4
type = "QB"
version = 0
workers_max = 3
workers_min = 0
workers_pfb_target = 0
workers_standby = 1
"#);
    let url = endpoint.attributes["run_url"].as_str().unwrap();
    assert_eq!(url, format!("{}/{}/run", service.addresses.queue, endpoint.id));
    // The API resets an attribute that is left out, so the idle timeout is sent although it does not change.
    let renamed =
        update(&provider, ("endpoint", 1), &endpoint, &json!({"name": "talk"})).await.unwrap();
    assert_eq!(renamed.attributes["idle_timeout"], engine::value::Value::Integer(42));
    assert_eq!(renamed.attributes["name"].as_str(), Some("talk"));
}

#[tokio::test]
async fn by_types_over_rest() {
    let service = Service::with_quirks("shuffled-lists").await;
    let provider = service.provider();
    let template = template(&service, &[]).await;
    let types = json!(["NVIDIA L4", "NVIDIA A40", "NVIDIA GeForce RTX 4090"]);
    let wanted = json!({"name": "chat", "template_id": &*template.id.0, "gpu_type_ids": types,
        "workers_min": 0, "workers_max": 2, "locations": "EU-RO-1,US-KS-2",
        "flash_boot_type": "FLASHBOOT"});
    let endpoint = create(&provider, ("endpoint", 0), &wanted).await.unwrap();
    insta::assert_snapshot!(shown(&read(&provider, "endpoint", &endpoint).await, DRAWN), @r#"
allowed_cuda_versions = {}
base_url = null
compliance = []
compute_type = "GPU"
execution_timeout_ms = 600000
flash_boot_type = "FLASHBOOT"
flash_environment_id = null
gpu_count = 1
gpu_ids = "AMPERE_24,AMPERE_48,ADA_24"
gpu_types = {"NVIDIA A40", "NVIDIA GeForce RTX 4090", "NVIDIA L4"}
hub_release_id = null
idle_timeout = 5
instance_ids = []
locations = "EU-RO-1,US-KS-2"
min_cuda_version = null
model_references = []
name = "chat"
network_volume_id = null
network_volume_ids = {}
pods = []
scaler_type = "QUEUE_DELAY"
scaler_value = 4
type = "QB"
version = 0
workers_max = 2
workers_min = 0
workers_pfb_target = 0
workers_standby = 1
"#);
    let changed = update(
        &provider,
        ("endpoint", 0),
        &endpoint,
        &json!({"gpu_type_ids": ["NVIDIA A40"], "workers_max": 1}),
    )
    .await
    .unwrap();
    let changed = read(&provider, "endpoint", &changed).await;
    let types = &changed.attributes["gpu_types"];
    assert_eq!(format!("{types:?}"), r#"{"NVIDIA A40"}"#);
    assert_eq!(changed.attributes["workers_max"], engine::value::Value::Integer(1));
}

/// GraphQL shows attributes of an endpoint that the create over REST cannot send.
#[tokio::test]
async fn by_types_over_rest_and_finished_by_another_run() {
    let service = Service::start().await;
    let provider = service.provider();
    let template = template(&service, &[]).await;
    let wanted = json!({"name": "chat", "template_id": &*template.id.0,
        "gpu_type_ids": ["NVIDIA A40"], "workers_min": 0, "workers_max": 2});
    let begun = begin(&provider, ("endpoint", 0), &wanted).await.unwrap();
    let begun = read(&provider, "endpoint", &begun).await;
    assert_eq!(format!("{:?}", begun.attributes["compliance"]), "[]");
    let rest = json!({"name": "chat", "workers_max": 2});
    let made = finish(&provider, ("endpoint", 0), &begun, &rest).await.unwrap();
    let made = read(&provider, "endpoint", &made).await;
    assert_eq!(made.attributes["name"].as_str(), Some("chat"));
    assert_eq!(made.attributes["workers_max"], engine::value::Value::Integer(2));
    // The update after the create sends the attributes that its calls cannot send.
    let rest = json!({"name": "chat", "workers_standby": 2});
    finish(&provider, ("endpoint", 0), &begun, &rest).await.unwrap();
}

#[tokio::test]
async fn workers_end_before_the_endpoint() {
    let service = Service::start().await;
    let provider = service.provider();
    let template = template(&service, &["sleep", "1000"]).await;
    let wanted = json!({"name": "chat", "template_id": &*template.id.0, "gpu_ids": "ADA_24",
        "workers_min": 1, "workers_max": 1});
    let endpoint = create(&provider, ("endpoint", 1), &wanted).await.unwrap();
    let pods = loop {
        let object = read(&provider, "endpoint", &endpoint).await;
        let pods = object.attributes["pods"].clone();
        if !pods.as_items().unwrap().is_empty() {
            break pods;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(format!("{pods:?}"), r#"[{"desired_status": "RUNNING"}]"#);
    delete(&provider, "endpoint", &endpoint).await.unwrap();
    assert!(provider.list("endpoint").await.unwrap().is_empty());
}
