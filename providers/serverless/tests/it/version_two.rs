//! The conformance suite of version 2, and the comparison of the two versions on the same objects.

use provider_port::Provider as _;
use provider_port::conformance::{self, Fixture, Suite};
use provider_serverless::Version;
use serde_json::json;

use crate::support::{Service, attributes, create};

async fn run(service: &Service) -> Result<(), String> {
    let ours = service.provider_of(Version::V2, &service.addresses.key);
    let stranger = service.provider_of(Version::V2, "wrong-key-4711");
    let suite = Suite::new(&ours)
        .wrong_key(&stranger)
        .secret(&service.addresses.key)
        .secret("wrong-key-4711")
        .secret("pull-secret-1")
        .secret("hidden-value-1")
        .secret("hidden-value-2")
        .with(Fixture::new(
            "network_volume",
            attributes(&json!({"name": "models", "size": 10, "data_center_id": "EU-RO-1"})),
            attributes(&json!({"name": "models-2", "size": 20})),
        ))
        .with(Fixture::new(
            "registry_auth",
            attributes(&json!({"name": "hub", "username": "u", "password": "pull-secret-1"})),
            attributes(&json!({})),
        ))
        .with(Fixture::new(
            "secret",
            attributes(&json!({"name": "hf", "value": "hidden-value-1", "description": "a"})),
            attributes(&json!({"value": "hidden-value-2", "description": "b"})),
        ))
        .with(Fixture::depending(
            "template",
            |made| {
                let mut wanted = attributes(&json!({
                    "name": "vllm", "image_name": "registry.example/vllm:1", "is_serverless": true,
                    "env": {"MODEL": "tiny", "QUOTE": "\"x\"\n"}, "ports": ["8000/http"],
                    "docker_start_cmd": ["serve", "--port=8000"], "volume_in_gb": 10,
                    "volume_mount_path": "/data",
                }));
                let auth = engine::value::Value::string(made["registry_auth"].id.0.clone());
                wanted.insert("container_registry_auth_id".into(), auth);
                wanted
            },
            |_| {
                attributes(&json!({
                    "image_name": "registry.example/vllm:2", "env": {"MODEL": "large"},
                    "container_disk_in_gb": 30, "volume_in_gb": 20,
                }))
            },
        ))
        .with(endpoint())
        .with(pod());
    conformance::run(&suite).await
}

#[tokio::test]
async fn conforms() {
    run(&Service::start().await).await.unwrap();
}

#[tokio::test]
async fn conforms_with_quirks() {
    let quirks = "shuffled-lists,null-as-empty,server-defaults,list-doubles-one";
    run(&Service::with_quirks(quirks).await).await.unwrap();
}

/// For endpoints with GPUs and with processors, both versions show the same values of the attributes that
/// both know.
#[tokio::test]
async fn both_versions_show_the_same() {
    let service = Service::start().await;
    let [one, two] =
        Version::ALL.map(|version| service.provider_of(version, &service.addresses.key));
    let made = |ty, desired| {
        let one = &one;
        // The first program of an endpoint is for GPU types in an order of preference.
        let program = usize::from(ty == "endpoint");
        async move { create(one, (ty, program), &desired).await.unwrap() }
    };
    let template = json!({"name": "t", "image_name": "r.example/i:1", "is_serverless": true, "volume_in_gb": 0});
    let template = made("template", template).await;
    made("network_volume", json!({"name": "v", "size": 10, "data_center_id": "EU-RO-1"})).await;
    made("registry_auth", json!({"name": "r", "username": "u", "password": "p"})).await;
    for more in [
        json!({"gpu_ids": "ADA_24,AMPERE_48,-NVIDIA A40", "scaler_value": 4, "gpu_count": 2}),
        json!({"gpu_ids": "", "instance_ids": ["cpu3c-2-4"], "scaler_type": "REQUEST_COUNT"}),
    ] {
        let mut wanted = more;
        wanted["name"] = "an endpoint".into();
        wanted["template_id"] = (&*template.id.0).into();
        wanted["workers_min"] = 0.into();
        wanted["workers_max"] = 1.into();
        made("endpoint", wanted).await;
    }
    for ty in ["network_volume", "template", "registry_auth", "endpoint"] {
        let objects = one.list(ty).await.unwrap();
        let others = two.list(ty).await.unwrap();
        assert_eq!(objects.len(), others.len(), "{ty}");
        for object in objects {
            let other = others.iter().find(|it| it.id == object.id).unwrap();
            for (name, value) in &object.attributes {
                let Some(shown) = other.attributes.get(name) else { continue };
                assert!(shown.same(value), "{ty} {name}: {value:?} and {shown:?}");
            }
        }
    }
}

/// Returns an endpoint whose pools, scaling and volume are made of several attributes.
fn endpoint() -> Fixture {
    Fixture::depending(
        "endpoint",
        |made| {
            let mut wanted = attributes(&json!({
                "name": "chat", "gpu_ids": "ADA_24,AMPERE_48,-NVIDIA A40", "workers_min": 0,
                "workers_max": 2, "idle_timeout": 7, "scaler_type": "QUEUE_DELAY",
                "scaler_value": 2.5, "flash_boot_type": "FLASHBOOT", "locations": "EU-RO-1",
                "allowed_cuda_versions": ["12.4", "12.3"], "execution_timeout_ms": 60000,
                "image_name": "registry.example/vllm:1", "type": "QB",
            }));
            let volume = engine::value::Value::string(made["network_volume"].id.0.clone());
            wanted.insert("network_volume_id".into(), volume);
            wanted
        },
        |_| {
            attributes(&json!({
                "name": "chat-2", "workers_max": 4, "flash_boot_type": "OFF", "scaler_value": 3,
                "gpu_ids": "ADA_24,AMPERE_24", "image_name": "registry.example/vllm:2",
            }))
        },
    )
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
                "docker_start_cmd": ["sleep", "600"], "volume_mount_path": "/workspace",
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
