//! Tests of version 2 of the management API, which has the same objects as version 1.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY};

/// A service, and its requests of version 2.
pub(crate) struct V2(pub(crate) Harness);

impl V2 {
    pub(crate) async fn start() -> V2 {
        V2(Harness::start().await)
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let url = format!("{}{path}", self.0.addresses.queue);
        let (status, body) = self.0.send(method, &url, body).await;
        (status.as_u16(), body)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Makes an object and returns it.
    pub(crate) async fn make(&self, path: &str, body: Value) -> Value {
        let (status, made) = self.send(Method::POST, path, Some(body)).await;
        assert_eq!(status, 201, "{path}: {made}");
        made
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Value {
        let (status, changed) = self.send(Method::PATCH, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {changed}");
        changed
    }

    async fn delete(&self, path: &str) {
        let (status, body) = self.send(Method::DELETE, path, None).await;
        assert_eq!((status, &body), (204, &Value::Null), "{path}");
    }

    /// Sends a request that must be refused. Returns the message of the problem.
    pub(crate) async fn refused(
        &self,
        method: Method,
        path: &str,
        body: Value,
        status: u16,
    ) -> String {
        let (found, problem) = self.send(method.clone(), path, Some(body.clone())).await;
        assert_eq!(found, status, "{method} {path} {body}: {problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].is_string(), "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// Returns the body for a queue with at most one worker. `more` overrides its settings.
pub(crate) fn queue(mut more: Value) -> Value {
    let mut body = json!({ "name": "q", "type": "QUEUE", "image": "echo:1",
        "scaling": { "type": "QUEUE_DELAY", "queueDelay": 4 }, "gpu": { "pools": ["AMPERE_24"] },
        "workers": { "max": 1, "idleTimeout": 60 } });
    body.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    body
}

#[tokio::test]
async fn what_one_version_makes_the_other_shows() {
    let v2 = V2::start().await;
    let old = v2.0.volume("models", 100).await;
    let shown = json!({ "id": old, "name": "models", "size": 100, "dataCenter": "EU-RO-1", "type": "STANDARD" });
    assert_eq!(v2.get("/network-volumes").await, json!({ "networkVolumes": [shown] }));
    let template = v2.0.template("t").await;
    assert_eq!(v2.get(&format!("/templates/{template}")).await["image"], "echo:1");
    let body = json!({ "name": "e", "templateId": template, "gpuTypeIds": ["NVIDIA A40"], "networkVolumeId": old });
    let endpoint = v2.0.post("/endpoints", body).await;
    let shown = v2.get(&format!("/serverless/{}", id(&endpoint))).await;
    let gpu = json!({ "pools": ["AMPERE_48"], "excludedTypes": ["NVIDIA RTX A6000"], "count": 1,
        "allowedCudaVersions": [], "minCudaVersion": null });
    assert_eq!(
        (&shown["gpu"], &shown["networkVolumes"], &shown["image"]),
        (&gpu, &json!([old]), &json!("echo:1"))
    );

    let made = v2.make("/serverless", queue(json!({ "env": { "A": "b" } }))).await;
    let shown = v2.0.get(&format!("/endpoints/{}?includeTemplate=true", id(&made))).await;
    assert_eq!(
        (&shown["name"], &shown["workersMax"], &shown["executionTimeoutMs"]),
        (&json!("q"), &json!(1), &json!(300_000))
    );
    assert_eq!(shown["template"]["env"], json!({ "A": "b" }));
    let templates = v2.get("/templates").await;
    assert_eq!(templates["templates"].as_array().unwrap().len(), 1, "its own template is hidden");
    v2.delete(&format!("/serverless/{}", id(&made))).await;
    let (status, _) =
        v2.0.rest(Method::GET, &format!("/templates/{}", id(&shown["template"])), None).await;
    assert_eq!(status, 404, "its template went with it");
}

#[tokio::test]
async fn volumes_grow_or_stay() {
    let v2 = V2::start().await;
    let body =
        json!({ "name": "v", "size": 20, "dataCenter": "EU-RO-1", "type": "HIGH_PERFORMANCE" });
    let path = format!("/network-volumes/{}", id(&v2.make("/network-volumes", body).await));
    let changed = v2.patch(&path, json!({ "size": 20, "name": "w" })).await;
    assert_eq!((&changed["name"], &changed["type"]), (&json!("w"), &json!("HIGH_PERFORMANCE")));
    assert_eq!(v2.patch(&path, json!({ "size": 4096 })).await["size"], 4096);
    let why = v2.refused(Method::PATCH, &path, json!({ "size": 100 }), 400).await;
    assert!(why.contains("4096 GB"), "{why}");
    v2.refused(Method::PATCH, &path, json!({}), 422).await;
    v2.delete(&path).await;
}

#[tokio::test]
async fn templates_say_what_runs() {
    let v2 = V2::start().await;
    let body = json!({ "name": "t", "image": "i", "entrypoint": ["python"], "cmd": ["-u", "x.py"],
        "mounts": { "persistent": { "size": 20, "path": "/data" } } });
    let made = v2.make("/templates", body).await;
    let path = format!("/templates/{}", id(&made));
    assert_eq!(made["args"], r#"{"cmd":["-u","x.py"],"entrypoint":["python"]}"#);
    assert_eq!(
        (&made["ports"], &made["startSsh"], &made["serverless"]),
        (&json!([]), &json!(true), &json!(false))
    );
    assert_eq!(made["mounts"]["persistent"], json!({ "size": 20, "path": "/data" }));
    let changed =
        v2.patch(&path, json!({ "args": "sleep 1", "category": "CPU", "serverless": true })).await;
    assert_eq!((&changed["cmd"], &changed["entrypoint"]), (&json!(["sleep", "1"]), &json!([])));
    assert_eq!((&changed["category"], &changed["serverless"]), (&json!("CPU"), &json!(true)));
    let both = json!({ "args": "sleep 1", "cmd": ["sleep", "2"] });
    v2.refused(Method::PATCH, &path, both, 400).await;
    v2.refused(Method::PATCH, &path, json!({ "mounts": { "network": [] } }), 422).await;
}

#[tokio::test]
async fn endpoints_are_made_whole_or_refused() {
    let v2 = V2::start().await;
    let check = async |more: Value, status: u16, expected: &str| {
        let why = v2.refused(Method::POST, "/serverless", queue(more.clone()), status).await;
        assert!(why.contains(expected), "{more}: {why}");
    };
    check(json!({ "cpu": [{ "id": "cpu3c", "vcpuCount": 2 }] }), 400, "exactly one of gpu and cpu")
        .await;
    check(json!({ "templateId": "none" }), 404, "template").await;
    let pod_template = v2.make("/templates", json!({ "name": "pod", "image": "i" })).await;
    check(json!({ "templateId": id(&pod_template) }), 422, "not for serverless").await;
    check(json!({ "type": "LOAD_BALANCER" }), 422, "REQUEST_COUNT").await;
    check(json!({ "scaling": { "type": "REQUEST_COUNT", "requestCount": 1 } }), 422, "idleTimeout")
        .await;
    check(
        json!({ "scaling": { "type": "QUEUE_DELAY", "queueDelay": 0.4 } }),
        422,
        "scaling.queueDelay",
    )
    .await;
    check(
        json!({ "gpu": { "pools": ["ADA_24"], "excludedTypes": ["NVIDIA GeForce RTX 4090"] } }),
        400,
        "leaves no",
    )
    .await;
    check(json!({ "gpu": { "pools": ["ADA_24"], "allowedCudaVersions": ["12.4"], "minCudaVersion": "12.1" } }), 400, "both").await;
    check(json!({ "gpu": { "pools": [] } }), 422, "gpu.pools").await;
    let mut no_image = queue(json!({}));
    no_image.as_object_mut().unwrap().remove("image");
    v2.refused(Method::POST, "/serverless", no_image, 400).await;
    let mut cpu = queue(json!({ "cpu": [{ "id": "cpu3g", "vcpuCount": 4 }] }));
    cpu.as_object_mut().unwrap().remove("gpu");
    let made = v2.make("/serverless", cpu.clone()).await;
    assert_eq!(made["cpu"], json!([{ "id": "cpu3g", "vcpuCount": 4, "memory": 16 }]));
    let path = format!("/serverless/{}", id(&made));
    v2.refused(Method::PATCH, &path, json!({ "gpu": { "count": 2 } }), 400).await;
    cpu["cpu"][0]["vcpuCount"] = json!(6);
    v2.refused(Method::POST, "/serverless", cpu, 400).await;
}

#[tokio::test]
async fn a_template_is_copied_and_a_change_is_a_release() {
    let v2 = V2::start().await;
    let template = json!({ "name": "t", "image": "echo:1", "serverless": true, "disk": 7,
        "env": { "A": "1", "B": "2" }, "allowedCudaVersions": ["12.4"] });
    let template = id(&v2.make("/templates", template).await);
    let body = queue(json!({ "templateId": template, "image": "echo:2", "env": { "B": "3" },
        "workers": { "min": 1, "max": 2, "idleTimeout": 60 } }));
    let made = v2.make("/serverless", body).await;
    assert_eq!((&made["image"], &made["disk"]), (&json!("echo:2"), &json!(7)));
    assert_eq!(made["env"], json!({ "A": "1", "B": "3" }));
    assert_eq!(made["gpu"]["allowedCudaVersions"], json!(["12.4"]));
    let path = format!("/serverless/{}", id(&made));
    v2.patch(&format!("/templates/{template}"), json!({ "image": "echo:9" })).await;
    assert_eq!(v2.get(&path).await["image"], "echo:2", "no link to the template is kept");
    v2.delete(&format!("/templates/{template}")).await;

    let changed =
        v2.patch(&path, json!({ "env": { "C": "4" }, "gpu": { "allowedCudaVersions": [] } })).await;
    assert_eq!((&changed["env"], &changed["disk"]), (&json!({ "C": "4" }), &json!(7)));
    let releases = v2.get(&format!("{path}/releases")).await;
    let newest = &releases["releases"][0];
    assert_eq!(newest["version"], releases["endpointVersion"]);
    let fields: Vec<_> = releases["releases"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|release| {
            release["diff"].as_array().unwrap().iter().map(|diff| diff["field"].as_str().unwrap())
        })
        .collect();
    assert!(
        fields.contains(&"template.env") && fields.contains(&"allowedCudaVersions"),
        "{releases}"
    );
    let mut workers = Value::Null;
    for _ in 0..200 {
        workers = v2.get(&format!("{path}/workers")).await;
        if workers["summary"]["idle"] == 1 && workers["workers"][0]["isStale"] == false {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(
        (&workers["summary"]["total"], &workers["workers"][0]["image"]),
        (&json!(1), &json!("echo:2")),
        "{workers}"
    );
    v2.delete(&path).await;
}

#[tokio::test]
async fn secrets_reach_workers_and_nobody_else() {
    let v2 = V2::start().await;
    let made = v2.make("/account/secrets", json!({ "name": "token", "value": "s3cr3t-1" })).await;
    let path = format!("/account/secrets/{}", id(&made));
    v2.refused(Method::POST, "/account/secrets", json!({ "name": "token", "value": "x" }), 409)
        .await;
    v2.refused(Method::POST, "/account/secrets", json!({ "name": "RUNPOD_x", "value": "x" }), 422)
        .await;
    let env = json!({ "TOKEN": "Bearer {{ RUNPOD_SECRET_token }}" });
    let endpoint = v2.make("/serverless", queue(json!({ "env": env }))).await;
    let endpoint = id(&endpoint);
    let ask = async || {
        let job = v2.0.run(&endpoint, json!({ "environment": "TOKEN" })).await;
        v2.0.until(&endpoint, &job, "COMPLETED").await["output"].clone()
    };
    assert_eq!(ask().await, "Bearer s3cr3t-1");
    v2.patch(&path, json!({ "value": "s3cr3t-2" })).await;
    v2.patch(
        &format!("/serverless/{endpoint}"),
        json!({ "env": { "TOKEN": "{{ RUNPOD_SECRET_token }}", "N": "1" } }),
    )
    .await;
    assert_eq!(ask().await, "s3cr3t-2", "workers that start afterwards get the new value");
    let shown = [
        v2.get("/account/secrets?name=token").await,
        v2.get(&path).await,
        v2.get(&format!("/serverless/{endpoint}")).await,
        v2.get(&format!("/serverless/{endpoint}/releases")).await,
        v2.0.get(&format!("/endpoints/{endpoint}?includeTemplate=true")).await,
        json!(v2.0.access_log()),
    ];
    assert!(!json!(shown).to_string().contains("s3cr3t"), "{shown:?}");
    assert_eq!(shown[0]["secrets"].as_array().unwrap().len(), 1);
    assert_eq!(v2.get("/account/secrets?name=other").await, json!({ "secrets": [] }));
    v2.delete(&path).await;
}

#[tokio::test]
async fn the_output_of_a_worker_can_be_followed() {
    let v2 = V2::start().await;
    let endpoint = id(&v2.make("/serverless", queue(json!({}))).await);
    let job = v2.0.run(&endpoint, json!({ "log": "one\ntwo\nthree" })).await;
    let done = v2.0.until(&endpoint, &job, "COMPLETED").await;
    let worker = done["workerId"].as_str().unwrap();
    let url =
        format!("{}/serverless/{endpoint}/workers/{worker}/logs?tail=2", v2.0.addresses.queue);
    let mut response = v2.0.client.get(&url).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let chunk = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(chunk.contains("\"line\":\"two\"") && chunk.contains("/000000000003\n"), "{chunk}");
    assert!(!chunk.contains("\"one\""), "{chunk}");
    let again = v2.0.client.get(&url).bearer_auth(KEY).header("Last-Event-ID", "x/000000000002");
    let chunk = again.send().await.unwrap().chunk().await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&chunk).contains("two"));
    v2.refused(Method::GET, &format!("/serverless/{endpoint}/workers/none/logs"), Value::Null, 404)
        .await;
}

#[tokio::test]
async fn tags_keys_registries_and_the_catalog() {
    let v2 = V2::start().await;
    let volume = v2.0.volume("v", 10).await;
    let tagged = json!([{ "type": "NETWORK_VOLUME", "id": volume }]);
    let tag = json!({ "key": "plumb", "value": "nonce", "resources": tagged });
    let tag = v2.make("/tags", tag).await;
    let (path, resource) =
        (format!("/tags/{}", id(&tag)), format!("resources/NETWORK_VOLUME/{volume}"));
    v2.delete(&format!("{path}/{resource}")).await;
    let (status, attached) = v2.send(Method::PUT, &format!("{path}/{resource}"), None).await;
    assert_eq!((status, &attached["resources"]), (200, &tagged));
    assert_eq!(v2.send(Method::PUT, &format!("{path}/resources/POD/x"), None).await.0, 404);
    v2.refused(Method::POST, "/tags", json!({ "key": "runpod:x", "value": "" }), 400).await;

    let keys = json!({ "keys": ["ssh-ed25519 AAAA me"] });
    assert_eq!(v2.get("/account/ssh-keys").await, json!({ "keys": [] }));
    assert_eq!(v2.send(Method::PUT, "/account/ssh-keys", Some(keys.clone())).await.0, 200);
    assert_eq!(v2.get("/account/ssh-keys").await, keys);

    let registry = json!({ "name": "hub", "username": "u", "password": "p4ssw0rd" });
    let registry = v2.make("/registries", registry).await;
    assert_eq!(v2.get("/registries").await, json!({ "registries": [registry] }));
    let arn = "arn:aws:ecr:us-east-2:418399314813:repository/team/image";
    let delegation = v2.make("/registries/delegations", json!({ "resource": arn })).await;
    assert_eq!(
        (&delegation["repository"], &delegation["awsUser"]),
        (&json!("team/image"), &json!("418399314813"))
    );
    v2.delete(&format!("/registries/delegations/{}", id(&delegation))).await;
    v2.refused(Method::POST, "/registries/delegations", json!({ "resource": "x" }), 400).await;

    let gpus = v2.get("/catalog/gpus?include=AVAILABILITY&product=SERVERLESS&product=POD").await;
    assert_eq!(gpus["gpus"].as_array().unwrap().len(), 49);
    let gpu = v2.get("/catalog/gpus/NVIDIA%20L4").await;
    assert_eq!(
        (&gpu["pool"], &gpu["memory"], gpu.get("availability")),
        (&json!("AMPERE_24"), &json!(24), None)
    );
    v2.refused(Method::GET, "/catalog/gpus?include=AVAILABILITY", Value::Null, 400).await;
    assert_eq!(v2.get("/catalog/cpus/cpu3c").await["ramGbPerVcpu"], 2);
    let centers = v2.get("/catalog/datacenters?regions=OCEANIA,ASIA").await;
    assert_eq!(centers["dataCenters"].as_array().unwrap().len(), 2, "{centers}");
    assert_eq!(v2.get("/catalog/templates").await, json!({ "templates": [] }));
}

#[tokio::test]
async fn the_time_of_workers_and_volumes_has_a_price() {
    let v2 = V2::start().await;
    let gpu = json!({ "pools": ["ADA_24"], "count": 2 });
    let workers = json!({ "min": 1, "max": 1, "idleTimeout": 60 });
    let endpoint =
        id(&v2.make("/serverless", queue(json!({ "gpu": gpu, "workers": workers }))).await);
    let volume = v2.0.volume("v", 1000).await;
    v2.0.healthy(&endpoint, |health| health["workers"]["idle"] == 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let report = v2.get("/billing/serverless?bucketSize=hour&lastN=2").await;
    let record = &report["records"][0];
    assert_eq!((&record["serverlessId"], &record["cpuAmount"]), (&json!(endpoint), &json!(0.0)));
    let old = v2.0.get(&format!("/billing/endpoints?endpointId={endpoint}")).await;
    let seconds = old[0]["timeBilledMs"].as_f64().unwrap() / 1000.0;
    // Two GPUs cost 1.10 dollars an hour each.
    let amount = old[0]["amount"].as_f64().unwrap();
    assert!(seconds >= 0.5 && (amount - seconds * 2.2 / 3600.0).abs() < 1e-6, "{old}");

    // The time of a worker is counted only up to its end.
    v2.patch(&format!("/serverless/{endpoint}"), json!({ "workers": { "min": 0, "max": 0 } }))
        .await;
    for _ in 0..200 {
        if v2.0.pods(&endpoint).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let amount =
        async || v2.get("/billing/serverless").await["metadata"]["totals"]["totalAmount"].clone();
    let ended = amount().await;
    assert!(ended.as_f64() > old[0]["amount"].as_f64());
    assert_eq!(amount().await, ended);

    let all = v2.get("/billing?bucketSize=year").await;
    let sum: f64 = all["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["totalAmount"].as_f64().unwrap())
        .sum();
    let totals = &all["metadata"]["totals"];
    assert!((sum - totals["totalAmount"].as_f64().unwrap()).abs() < 1e-9, "{all}");
    assert!(totals["storageStandardAmount"].as_f64().unwrap() > 0.0, "{all}");
    let volumes = v2.get(&format!("/billing/network-volumes?networkVolumeId={volume}")).await;
    assert_eq!(volumes["metadata"]["uniqueNetworkVolumeCount"], 1);
    assert_eq!(v2.get("/billing/pods").await["records"], json!([]));
    v2.refused(Method::GET, "/billing?lastN=1&startTime=2026-01-01", Value::Null, 400).await;
    v2.refused(Method::GET, "/billing?bucketSize=minute", Value::Null, 422).await;

    // The ledger is kept when the service ends.
    let folder = v2.0.stop().await.unwrap();
    let again = V2(Harness::over(folder.path(), |_| {}).await);
    let later = again.get("/billing/serverless").await["metadata"]["totals"]["totalAmount"].clone();
    assert_eq!(later, ended);
    again.0.stop().await;
}
