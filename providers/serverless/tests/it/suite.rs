//! The conformance suite, with all types.

use provider_port::conformance::{self, Fixture, Suite};
use serde_json::json;

use crate::support::{Service, attributes};

pub(crate) async fn run(service: &Service) -> Result<(), String> {
    let ours = service.provider();
    let stranger = service.provider_with_key("wrong-key-4711");
    let suite = Suite::new(&ours)
        .wrong_key(&stranger)
        .secret(&service.addresses.key)
        .secret("wrong-key-4711")
        .secret("pull-secret-1")
        .secret("pull-secret-2")
        .with(Fixture::new(
            "network_volume",
            attributes(&json!({"name": "models", "size": 10, "data_center_id": "EU-RO-1"})),
            attributes(&json!({"name": "models-2", "size": 20})),
        ))
        .with(Fixture::new(
            "registry_auth",
            attributes(&json!({"name": "hub", "username": "u", "password": "pull-secret-1"})),
            attributes(&json!({"username": "u", "password": "pull-secret-2"})),
        ))
        .with(Fixture::depending(
            "template",
            |made| {
                let mut wanted = attributes(&json!({
                    "name": "vllm", "image_name": "registry.example/vllm:1", "is_serverless": true,
                    "env": {"MODEL": "tiny", "QUOTE": "\"x\"\n"}, "ports": ["8000/http"],
                    "docker_start_cmd": ["serve", "--port=8000"], "volume_in_gb": 0,
                }));
                let auth = &made["registry_auth"].id;
                wanted.insert(
                    "container_registry_auth_id".into(),
                    engine::value::Value::string(auth.0.clone()),
                );
                wanted
            },
            |_| {
                attributes(&json!({
                    "image_name": "registry.example/vllm:2", "env": {"MODEL": "large"},
                    "container_disk_in_gb": 30, "readme": "how to",
                }))
            },
        ))
        .with(Fixture::depending(
            "endpoint",
            |made| {
                let mut wanted = attributes(&json!({
                    "name": "chat", "gpu_ids": "ADA_24,-NVIDIA GeForce RTX 4090", "workers_min": 0,
                    "workers_max": 2, "idle_timeout": 7, "scaler_type": "REQUEST_COUNT",
                    "scaler_value": 2.5, "flash_boot_type": "FLASHBOOT", "locations": "EU-RO-1",
                    "allowed_cuda_versions": ["12.4", "12.3"], "execution_timeout_ms": 60000,
                }));
                let reference = |ty: &str| engine::value::Value::string(made[ty].id.0.clone());
                wanted.insert("template_id".into(), reference("template"));
                wanted.insert("network_volume_id".into(), reference("network_volume"));
                wanted
            },
            |_| attributes(&json!({"name": "chat-2", "workers_max": 4, "flash_boot_type": "OFF"})),
        ))
        .with(pod());
    conformance::run(&suite).await
}

#[tokio::test]
async fn conforms() {
    run(&Service::start().await).await.unwrap();
}

/// Returns a pod that mounts the volume and that an update stops.
fn pod() -> Fixture {
    Fixture::depending(
        "pod",
        |made| {
            let mut wanted = attributes(&json!({
                "name": "trainer", "image_name": "registry.example/train:1", "running": true,
                "gpu_type_id": "NVIDIA A40", "gpu_count": 2, "cloud_type": "COMMUNITY",
                "env": {"EPOCHS": "3", "QUOTE": "\"x\"\n"}, "ports": ["8888/http"],
                "docker_start_cmd": ["sleep", "600"], "min_ram_per_gpu": 16,
            }));
            let volume = engine::value::Value::string(made["network_volume"].id.0.clone());
            wanted.insert("network_volume_id".into(), volume);
            wanted
        },
        |_| {
            attributes(&json!({
                "name": "trainer-2", "image_name": "registry.example/train:2",
                "env": {"EPOCHS": "4"}, "container_disk_in_gb": 30, "running": false,
            }))
        },
    )
}
