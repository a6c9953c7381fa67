//! Pods as this version of the API shows them.

use rusqlite::Connection;
use serde_json::{Map, Value, json};

use super::super::request::RestRequest;
use crate::app::App;
use crate::billing::{dollars, pod_price};
use crate::catalog::gpus;
use crate::clock::iso;
use crate::pods::model::Pod;
use crate::pods::status::{ADDRESS, Condition};
use crate::problem::Problem;
use crate::resources;
use crate::resources::template::Template;
use crate::resources::volume::Volume;
use crate::store::objects;

/// Returns pods with the expansions that the client asked for.
pub(super) async fn expanded(request: &RestRequest, pods: Vec<Pod>) -> Result<Vec<Value>, Problem> {
    let wants_volume = request.wants("includeNetworkVolume");
    let wants_template = request.wants("includeTemplate");
    let read = move |conn: &Connection| {
        let with_others = |pod: Pod| {
            let volume = pod.network_volume_id.as_deref().filter(|_| wants_volume);
            let volume = volume.map(|id| objects::find::<Volume>(conn, id)).transpose()?.flatten();
            let template = pod.template_id.as_deref().filter(|_| wants_template);
            let template = template.map(|id| objects::find::<Template>(conn, id));
            Ok((volume, template.transpose()?.flatten(), pod))
        };
        pods.into_iter().map(with_others).collect::<Result<Vec<_>, Problem>>()
    };
    let found = request.app.store.read(read).await?;
    let shown = found.into_iter().map(|(volume, template, pod)| {
        let mut value = shape(&request.app, &pod);
        if request.wants("includeMachine") {
            value["machine"] = machine(&pod);
        }
        if wants_volume {
            value["networkVolume"] = volume.map_or(Value::Null, |volume| {
                json!({ "id": volume.id, "name": volume.name, "size": volume.size,
                    "dataCenterId": volume.data_center_id })
            });
        }
        if wants_template {
            value["template"] = template.map_or(Value::Null, |template| template.to_rest());
        }
        if request.wants("includeSavingsPlans") {
            value["savingsPlans"] = json!([]);
        }
        value
    });
    Ok(shown.collect())
}

fn machine(pod: &Pod) -> Value {
    json!({
        "dataCenterId": pod.data_center_id,
        "location": pod.data_center_id.split('-').next(),
        "gpuTypeId": pod.gpu_type_id,
        "cpuTypeId": pod.cpu_flavor_id,
        "secureCloud": pod.cloud == "SECURE",
    })
}

fn gpu(pod: &Pod) -> Value {
    let Some(gpu) = pod.gpu_type_id.as_deref().and_then(gpus::find) else { return Value::Null };
    json!({
        "id": gpu.id,
        "count": pod.gpu_count,
        "displayName": gpu.name(),
        "securePrice": gpu.secure_price(),
        "communityPrice": gpu.community_price(),
    })
}

/// Returns the ports of a running pod, each with its port of this machine; null for any other pod.
fn port_mappings(condition: &Condition) -> Value {
    if condition.ports.is_empty() {
        return Value::Null;
    }
    let mappings = condition.ports.iter();
    let mappings = mappings.map(|port| (port.private.to_string(), json!(port.public)));
    Value::Object(mappings.collect::<Map<_, _>>())
}

fn shape(app: &App, pod: &Pod) -> Value {
    let condition = app.pod_runner.condition(pod);
    let container = &pod.container;
    let cost = resources::number(dollars(pod_price(pod).nanos_per_hour));
    json!({
        "id": pod.id,
        "name": pod.name,
        "consumerUserId": app.user_id(),
        "desiredStatus": pod.desired_status.name(),
        "image": container.image_name,
        "dockerEntrypoint": container.docker_entrypoint,
        "dockerStartCmd": container.docker_start_cmd,
        "env": container.env,
        "ports": container.ports,
        "containerDiskInGb": container.container_disk_in_gb,
        "containerRegistryAuthId": container.container_registry_auth_id,
        "volumeInGb": container.volume_in_gb,
        "volumeMountPath": container.volume_mount_path,
        "volumeEncrypted": false,
        "gpu": gpu(pod),
        "cpuFlavorId": pod.cpu_flavor_id,
        "vcpuCount": pod.vcpu_count,
        "memoryInGb": pod.memory,
        "machineId": "plumb",
        "costPerHr": cost,
        "adjustedCostPerHr": cost,
        "interruptible": pod.interruptible,
        "locked": pod.locked,
        "templateId": pod.template_id,
        "endpointId": null,
        "aiApiId": null,
        "slsVersion": null,
        "lastStartedAt": iso(pod.started_at),
        "lastStatusChange": pod.last_status_change,
        "publicIp": (!condition.ports.is_empty()).then_some(ADDRESS),
        "portMappings": port_mappings(&condition),
    })
}
