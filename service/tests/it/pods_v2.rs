//! Tests of pods over version 2 of the REST API.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY};
use crate::pods::{log, make, shell, until, variable, with};

const L4: &str = "NVIDIA L4";

async fn v2(
    service: &Harness,
    method: Method,
    path: &str,
    body: Option<Value>,
    status: u16,
) -> Value {
    let url = format!("{}{path}", service.addresses.queue);
    let (found, answer) = service.send(method.clone(), &url, body).await;
    assert_eq!(found.as_u16(), status, "{method} {path}: {answer}");
    answer
}

async fn post(service: &Harness, path: &str, body: Value, status: u16) -> Value {
    v2(service, Method::POST, path, Some(body), status).await
}

/// Waits until the pod has this status, and returns it.
async fn in_status(service: &Harness, id: &str, status: &str) -> Value {
    until(&format!("the pod is not {status}"), async || {
        let shown = v2(service, Method::GET, &format!("/pods/{id}"), None, 200).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_pod_lives_from_create_to_terminate() {
    let service = Harness::start().await;
    let body = json!({ "name": "trainer", "image": "any:1", "gpu": { "id": L4, "count": 2 },
        "ports": ["9100/http", "22/tcp"], "env": { "A": "1" }, "startJupyter": true,
        "mounts": { "persistent": { "size": 10, "path": "/plumb-v2" } } });
    let made = post(&service, "/pods", body, 201).await;
    let id = made["id"].as_str().unwrap().to_owned();
    assert!(["PROVISIONING", "STARTING", "RUNNING"].contains(&made["status"].as_str().unwrap()));
    let shown = in_status(&service, &id, "RUNNING").await;
    assert_eq!(shown["actions"], json!(["stop", "restart", "terminate"]));
    assert_eq!(shown["gpu"], json!({ "id": L4, "count": 2 }));
    assert_eq!((&shown["cost"], &shown["template"]), (&json!(0.92), &Value::Null));
    assert_eq!(shown["mounts"], json!({ "persistent": { "size": 10, "path": "/plumb-v2" } }));
    assert_eq!(shown["env"]["JUPYTER_PASSWORD"].as_str().unwrap().len(), 40);
    let ports = &shown["runtime"]["ports"];
    assert_eq!((&ports[0]["private"], &ports[1]["type"]), (&json!(9100), &json!("tcp")));
    assert_eq!(shown["ssh"]["direct"]["port"], ports[1]["public"]);
    // Version 1 shows the same ports.
    let v1 = service.get(&format!("/pods/{id}")).await;
    assert_eq!(v1["portMappings"]["9100"], ports[0]["public"]);
    assert_eq!(variable(&v1, "9100", "A").await, "1");
    let act = format!("/pods/{id}/action");
    let refused = post(&service, &act, json!({ "action": "start" }), 409).await;
    assert!(refused["detail"].as_str().unwrap().contains("RUNNING"), "{refused}");
    post(&service, &act, json!({ "action": "reset" }), 422).await;
    let stopped = post(&service, &act, json!({ "action": "stop" }), 200).await;
    assert_eq!((&stopped["status"], &stopped["cost"]), (&json!("EXITED"), &json!(0)));
    assert_eq!((&stopped["runtime"], &stopped["ssh"]["direct"]), (&Value::Null, &Value::Null));
    post(&service, &act, json!({ "action": "restart" }), 409).await;
    post(&service, &act, json!({ "action": "start" }), 200).await;
    in_status(&service, &id, "RUNNING").await;
    post(&service, &act, json!({ "action": "restart" }), 200).await;
    in_status(&service, &id, "RUNNING").await;
    let listed = v2(&service, Method::GET, "/pods", None, 200).await;
    assert_eq!(listed["pods"][0]["id"], json!(id));
    let tag = json!({ "key": "team", "value": "a", "resources": [{ "type": "POD", "id": id }] });
    post(&service, "/tags", tag, 201).await;
    assert_eq!(post(&service, &act, json!({ "action": "terminate" }), 204).await, Value::Null);
    v2(&service, Method::GET, &format!("/pods/{id}"), None, 404).await;
    v2(&service, Method::DELETE, &format!("/pods/{id}"), None, 404).await;
    let bill = v2(&service, Method::GET, &format!("/billing/pods?podId={id}"), None, 200).await;
    let totals = &bill["metadata"]["totals"];
    assert!(totals["gpuAmount"].as_f64().unwrap() > 0.0, "{bill}");
    let parts = ["gpuAmount", "cpuAmount", "diskAmount"].map(|part| totals[part].as_f64().unwrap());
    assert!((totals["totalAmount"].as_f64().unwrap() - parts.iter().sum::<f64>()).abs() < 1e-9);
}

#[tokio::test]
async fn a_pod_that_fails_says_error_and_can_be_started() {
    let service = Harness::with(|options| {
        options.timing.crash_pause = std::time::Duration::from_millis(10);
    })
    .await;
    let id = make(&service, shell("exit 7")).await;
    let shown = in_status(&service, &id, "ERROR").await;
    assert_eq!((&shown["actions"], &shown["cost"]), (&json!(["start", "terminate"]), &json!(0)));
    let change = json!({ "cmd": ["sh", "-c", "echo well; sleep 600"] });
    v2(&service, Method::PATCH, &format!("/pods/{id}"), Some(change), 200).await;
    in_status(&service, &id, "RUNNING").await;
    let broken = json!({ "cmd": ["no-such-program-of-plumb"] });
    v2(&service, Method::PATCH, &format!("/pods/{id}"), Some(broken), 200).await;
    in_status(&service, &id, "ERROR").await;
    assert!(log(&service, &id, "cannot start").await.contains("no-such-program-of-plumb"));
}

#[tokio::test]
async fn templates_give_what_a_request_leaves_out_once() {
    let service = Harness::start().await;
    let template = json!({ "name": "t", "imageName": "from:template", "ports": ["9200/http"],
        "env": { "A": "template", "B": "template" }, "volumeInGb": 12, "volumeMountPath": "/data-t" });
    let template = service.post("/templates", template).await["id"].take();
    let body = json!({ "name": "p", "templateId": template, "gpu": { "id": L4 },
        "env": { "A": "body" }, "disk": 7 });
    let made = post(&service, "/pods", body, 201).await;
    assert_eq!((&made["image"], &made["disk"]), (&json!("from:template"), &json!(7)));
    assert_eq!(made["env"], json!({ "A": "body", "B": "template" }));
    assert_eq!(made["mounts"], json!({ "persistent": { "size": 12, "path": "/data-t" } }));
    assert_eq!((&made["template"], &made["ports"]), (&Value::Null, &json!(["9200/http"])));
    let cpu =
        json!({ "name": "p", "templateId": template, "cpu": { "id": "cpu3c", "vcpuCount": 4 } });
    let made = post(&service, "/pods", cpu, 201).await;
    assert_eq!(made["mounts"], json!({}));
    assert_eq!(made["cpu"], json!({ "id": "cpu3c", "vcpuCount": 4, "memory": 8 }));
    let serverless = service.template("serverless").await;
    let body = json!({ "name": "p", "templateId": serverless, "gpu": { "id": L4 } });
    post(&service, "/pods", body, 422).await;
    let body = json!({ "name": "p", "templateId": "none", "gpu": { "id": L4 } });
    post(&service, "/pods", body, 404).await;
    let path = format!("/pods/{}", made["id"].as_str().unwrap());
    let change = json!({ "templateId": template, "env": { "C": "body" } });
    let changed = v2(&service, Method::PATCH, &path, Some(change), 200).await;
    assert_eq!(changed["env"], json!({ "A": "template", "B": "template", "C": "body" }));
    assert_eq!(changed["mounts"], json!({}));
}

#[tokio::test]
async fn mounts_keep_their_kind() {
    let service = Harness::start().await;
    let (volume, other) = (service.volume("a", 1).await, service.volume("b", 1).await);
    let network = |id: &str, path: &str| json!({ "network": [{ "volumeId": id, "path": path }] });
    let persistent = |size: i64| json!({ "persistent": { "size": size, "path": "/plumb-m" } });
    let body =
        |mounts: Value| json!({ "name": "p", "image": "x", "gpu": { "id": L4 }, "mounts": mounts });
    let made = post(&service, "/pods", body(network(&volume, "/plumb-m")), 201).await;
    assert_eq!(made["mounts"], network(&volume, "/plumb-m"));
    let on_network = format!("/pods/{}", made["id"].as_str().unwrap());
    let made = post(&service, "/pods", body(persistent(10)), 201).await;
    let on_disk = format!("/pods/{}", made["id"].as_str().unwrap());
    let made = post(&service, "/pods", body(json!({})), 201).await;
    let without = format!("/pods/{}", made["id"].as_str().unwrap());
    for (path, mounts, status) in [
        (&on_network, network(&volume, "/plumb-n"), 200),
        (&on_network, json!({}), 200),
        (&on_network, json!({ "network": [] }), 400),
        (&on_network, network(&other, "/plumb-n"), 400),
        (&on_network, persistent(10), 400),
        (&on_network, json!({ "network": [{ "volumeId": volume }] }), 422),
        (&on_disk, persistent(20), 200),
        (&on_disk, persistent(15), 400),
        (&on_disk, persistent(5), 422),
        (&on_disk, network(&volume, "/plumb-n"), 400),
        (&without, persistent(10), 400),
        (&without, network(&volume, "/plumb-n"), 400),
    ] {
        v2(&service, Method::PATCH, path, Some(json!({ "mounts": mounts })), status).await;
    }
    let shown = v2(&service, Method::GET, &on_network, None, 200).await;
    assert_eq!(shown["mounts"], network(&volume, "/plumb-n"));
}

#[tokio::test]
async fn wrong_pods_are_refused() {
    let service = Harness::start().await;
    let gpu = json!({ "id": L4 });
    for (body, status) in [
        (json!({ "image": "x", "gpu": gpu }), 422),
        (json!({ "name": "p", "gpu": gpu }), 400),
        (json!({ "name": "p", "image": "x" }), 400),
        (json!({ "name": "p", "image": "x", "gpu": gpu, "more": 1 }), 422),
        (json!({ "name": "p", "image": "x", "gpu": { "id": "TPU" } }), 422),
        (json!({ "name": "p", "image": "x", "cpu": { "id": "cpu3c", "vcpuCount": 3 } }), 400),
        (
            json!({ "name": "p", "image": "x", "gpu": gpu,
                "cpu": { "id": "cpu3c", "vcpuCount": 2 } }),
            400,
        ),
        (
            json!({ "name": "p", "image": "x", "cpu": { "id": "cpu3c", "vcpuCount": 2 },
                "mounts": { "persistent": { "size": 10, "path": "/x" } } }),
            400,
        ),
        (
            json!({ "name": "p", "image": "x", "gpu": { "id": L4, "minCudaVersion": "12.1",
                "allowedCudaVersions": ["12.4"] } }),
            400,
        ),
    ] {
        post(&service, "/pods", body, status).await;
    }
    assert_eq!(v2(&service, Method::GET, "/pods", None, 200).await, json!({ "pods": [] }));
}

#[tokio::test]
async fn the_output_of_a_pod_can_be_followed() {
    let service = Harness::start().await;
    let id = make(&service, with(shell("echo one; echo two; sleep 600"), json!({}))).await;
    log(&service, &id, "two").await;
    let url = format!("{}/pods/{id}/logs?tail=1", service.addresses.queue);
    let follow = service.client.get(&url).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(follow.headers()["content-type"], "text/event-stream");
    service.post(&format!("/pods/{id}/stop"), json!({})).await;
    let text = follow.text().await.unwrap();
    assert!(text.contains("\"line\":\"two\"") && !text.contains("\"line\":\"one\""), "{text}");
    let none = format!("{}/pods/none/logs", service.addresses.queue);
    assert_eq!(service.client.get(none).bearer_auth(KEY).send().await.unwrap().status(), 404);
}
