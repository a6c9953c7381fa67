//! Pods as this version of the API shows them.

use serde_json::{Value, json};

use super::super::{container, extend};
use super::ACTIONS;
use crate::app::App;
use crate::billing::{dollars, pod_price};
use crate::clock::iso;
use crate::description::shape::{
    Shape, count, flag, list as list_of, may, must, named, number, object, one_of, text,
};
use crate::pods::model::{CLOUDS, Pod};
use crate::pods::status::{ADDRESS, Condition, Status};
use crate::resources;

const STATUSES: &[&str] = &["PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR", "TERMINATED"];

pub(super) fn pod_shape() -> Shape {
    let persistent = object([must("size", count()), must("path", text())]);
    let network = object([must("volumeId", text()), must("path", text())]);
    let mounts = object([may("persistent", persistent), may("network", list_of(network))]);
    let gpu = object([must("id", text()), must("count", count())]);
    let cpu = object([must("id", text()), must("vcpuCount", count()), must("memory", count())]);
    let ssh = || {
        let fields = [must("host", text()), must("username", text()), must("command", text())];
        object(fields).and([must("port", count())]).or_null()
    };
    let port = object([
        must("private", count()),
        must("public", count().or_null()),
        must("type", text()),
        must("ip", text().or_null()),
    ]);
    let runtime = object([must("uptime", count()), must("ports", list_of(port))]);
    let pod = object([
        must("id", text()),
        must("name", text()),
        must("status", one_of(STATUSES)),
        must("actions", list_of(one_of(ACTIONS))),
        must("mounts", mounts),
        may("gpu", gpu),
        may("cpu", cpu),
        must("cloud", one_of(CLOUDS)),
        must("dataCenterId", text().or_null()),
        must("cudaVersion", text().or_null()),
        must("ssh", object([must("proxy", ssh()), must("direct", ssh())])),
        must("template", text().or_null()),
        must("cost", number().note("Dollars an hour; 0 if it does not run")),
        must("locked", flag()),
        must("globalNetworking", object([must("enabled", flag())])),
        must("runtime", runtime.or_null().note("Null if it does not run")),
        must("createdAt", text()),
        must("startedAt", text().or_null()),
    ]);
    named("Pod", pod.and(container::shown_fields()))
}

pub(super) fn shown(app: &App, pod: &Pod) -> Value {
    let condition = app.pod_runner.condition(pod);
    let status = condition.status;
    let is_paid = !matches!(status, Status::Exited | Status::Error);
    let cost = if is_paid { dollars(pod_price(pod).nanos_per_hour) } else { 0.0 };
    let mut shown = container::shown(&pod.container);
    let more = json!({
        "id": pod.id,
        "name": pod.name,
        "status": status.name(),
        "actions": status.actions(),
        "mounts": mounts(pod),
        "cloud": pod.cloud,
        "dataCenterId": pod.data_center_id,
        "cudaVersion": null,
        "ssh": { "proxy": null, "direct": ssh(&condition) },
        "template": pod.template_id,
        "cost": resources::number(cost),
        "locked": pod.locked,
        "globalNetworking": { "enabled": pod.global_networking },
        "runtime": runtime(&condition),
        "createdAt": iso(pod.created_at),
        "startedAt": iso(pod.started_at),
    });
    extend(&mut shown, more);
    if let Some(id) = &pod.gpu_type_id {
        shown["gpu"] = json!({ "id": id, "count": pod.gpu_count });
    }
    if let Some(id) = &pod.cpu_flavor_id {
        shown["cpu"] = json!({ "id": id, "vcpuCount": pod.vcpu_count, "memory": pod.memory });
    }
    shown
}

fn mounts(pod: &Pod) -> Value {
    let path = &pod.container.volume_mount_path;
    match &pod.network_volume_id {
        Some(id) => json!({ "network": [{ "volumeId": id, "path": path }] }),
        None if pod.has_own_volume() => {
            json!({ "persistent": { "size": pod.container.volume_in_gb, "path": path } })
        }
        None => json!({}),
    }
}

/// Returns the address of the SSH server of a pod; null unless the pod runs and opens port 22.
fn ssh(condition: &Condition) -> Value {
    let port = condition.ports.iter().find(|port| port.private == 22 && port.protocol == "tcp");
    port.map_or(Value::Null, |port| {
        let public = port.public;
        json!({
            "host": ADDRESS,
            "port": public,
            "username": "root",
            "command": format!("ssh root@{ADDRESS} -p {public}"),
        })
    })
}

fn runtime(condition: &Condition) -> Value {
    if condition.status != Status::Running {
        return Value::Null;
    }
    let port = |port: &crate::pods::ports::PortMapping| {
        json!({ "private": port.private, "public": port.public, "type": port.protocol,
            "ip": ADDRESS })
    };
    let ports: Vec<_> = condition.ports.iter().map(port).collect();
    json!({ "uptime": condition.uptime, "ports": ports })
}
