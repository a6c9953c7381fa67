//! Tests of pods with real processes.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{Harness, client};

/// Waits at most a minute until `look` finds something, and returns it. The start of a container
/// takes many seconds while the whole test suite runs.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        if let Some(found) = look().await {
            return found;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("{what}");
}

/// Returns a pod that runs a line of shell.
pub(crate) fn shell(line: &str) -> Value {
    json!({ "name": "shell", "imageName": "none", "ports": [], "volumeInGb": 0,
        "dockerStartCmd": ["sh", "-c", line] })
}

pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    body.as_object_mut().unwrap().extend(more);
    body
}

pub(crate) async fn make(service: &Harness, body: Value) -> String {
    service.post("/pods", body).await["id"].as_str().unwrap().to_owned()
}

/// Waits until the output of a pod contains this text, and returns the output.
pub(crate) async fn log(service: &Harness, pod: &str, wanted: &str) -> String {
    let path = service.data.join("logs").join(format!("pod.{pod}.log"));
    until(&format!("the log has no {wanted}"), async || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.contains(wanted).then_some(text)
    })
    .await
}

/// Waits until the pod runs, and returns it.
pub(crate) async fn running(service: &Harness, pod: &str) -> Value {
    until("the pod does not run", async || {
        let shown = service.get(&format!("/pods/{pod}")).await;
        shown["portMappings"].is_object().then_some(shown)
    })
    .await
}

/// Returns the answer of the built-in program of a pod; `None` if it does not answer.
pub(crate) async fn call(shown: &Value, port: &str, path: &str) -> Option<Value> {
    let url = format!("http://127.0.0.1:{}{path}", shown["portMappings"][port]);
    client().get(url).send().await.ok()?.json().await.ok()
}

pub(crate) async fn variable(shown: &Value, port: &str, name: &str) -> Value {
    let path = format!("/?environment={name}");
    until("the pod does not answer", async || call(shown, port, &path).await).await
}

async fn act(service: &Harness, pod: &str, action: &str) -> Value {
    service.post(&format!("/pods/{pod}/{action}"), json!({})).await
}

#[tokio::test]
async fn a_pod_without_a_command_serves_http_at_its_port() {
    let service = Harness::start().await;
    let made = service.post("/pods", json!({ "imageName": "any:1" })).await;
    assert_eq!((&made["name"], &made["desiredStatus"]), (&json!("my pod"), &json!("RUNNING")));
    assert_eq!(made["ports"], json!(["8888/http", "22/tcp"]));
    assert_eq!((&made["volumeInGb"], &made["containerDiskInGb"]), (&json!(20), &json!(50)));
    let id = made["id"].as_str().unwrap();
    let shown = running(&service, id).await;
    assert_eq!((&shown["publicIp"], &shown["gpu"]["count"]), (&json!("127.0.0.1"), &json!(1)));
    assert_ne!(shown["portMappings"]["8888"], shown["portMappings"]["22"]);
    assert_eq!(variable(&shown, "8888", "RUNPOD_POD_ID").await, json!(id));
    let told = variable(&shown, "8888", "RUNPOD_TCP_PORT_22").await;
    assert_eq!(told, json!(shown["portMappings"]["22"].to_string()));
    assert_eq!(variable(&shown, "8888", "RUNPOD_GPU_COUNT").await, "1");
    // A second pod with the same port does not conflict with the first one.
    let second = make(&service, json!({ "imageName": "any:1" })).await;
    let other = running(&service, &second).await;
    assert_ne!(other["portMappings"]["8888"], shown["portMappings"]["8888"]);
    assert_eq!(variable(&other, "8888", "RUNPOD_POD_ID").await, json!(second));
    assert_eq!(service.rest(Method::DELETE, &format!("/pods/{id}"), None).await.0, 204);
    service.refused(Method::GET, &format!("/pods/{id}"), None, 404).await;
    assert!(call(&shown, "8888", "/").await.is_none(), "its process is gone");
    assert!(!service.data.join("pods").join(id).exists());
    assert!(!service.data.join("logs").join(format!("pod.{id}.log")).exists());
}

#[tokio::test]
async fn the_volume_stays_at_stop_and_goes_with_the_pod() {
    let service = Harness::start().await;
    let line = "cat $RUNPOD_VOLUME/kept 2>/dev/null; ls $TMPDIR; echo again >> $RUNPOD_VOLUME/kept; \
                touch $TMPDIR/lost; echo up; sleep 600";
    let body = with(shell(line), json!({ "volumeInGb": 10, "volumeMountPath": "/plumb-test" }));
    let id = make(&service, body).await;
    log(&service, &id, "up\n").await;
    let folder = service.data.join("pods").join(&id);
    assert!(folder.join("volume/kept").exists() && folder.join("disk/lost").exists());
    let stopped = act(&service, &id, "stop").await;
    assert_eq!((&stopped["desiredStatus"], &stopped["publicIp"]), (&json!("EXITED"), &Value::Null));
    until("the disk stays", async || (!folder.join("disk").exists()).then_some(())).await;
    assert!(folder.join("volume/kept").exists());
    assert_eq!(act(&service, &id, "stop").await["desiredStatus"], "EXITED", "it is no error");
    let message =
        service.refused(Method::POST, &format!("/pods/{id}/restart"), Some(json!({})), 400).await;
    assert!(message.contains("not running"), "{message}");
    assert_eq!(act(&service, &id, "start").await["desiredStatus"], "RUNNING");
    let text = log(&service, &id, "up\nagain\nup\n").await;
    assert!(!text.contains("lost"), "{text}");
    service.rest(Method::DELETE, &format!("/pods/{id}"), None).await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_pod_finds_its_volumes_at_their_path() {
    let service = Harness::start().await;
    let volume = service.volume("models", 1).await;
    let line = "echo net > /plumb-net/of-the-pod || echo x > $RUNPOD_VOLUME/of-the-pod; echo up; \
                sleep 600";
    let body = json!({ "networkVolumeId": volume, "volumeMountPath": "/plumb-net",
        "dataCenterIds": ["EU-RO-1"] });
    let id = make(&service, with(shell(line), body)).await;
    log(&service, &id, "up").await;
    assert!(service.data.join("volumes").join(&volume).join("of-the-pod").exists());
    let path = format!("/pods/{id}?includeNetworkVolume=true&includeMachine=true");
    let shown = service.get(&path).await;
    assert_eq!(shown["networkVolume"]["id"], json!(volume));
    assert_eq!(
        (&shown["machine"]["dataCenterId"], &shown["volumeInGb"]),
        (&json!("EU-RO-1"), &json!(0))
    );
    let held = format!("/networkvolumes/{volume}");
    let message = service.refused(Method::DELETE, &held, None, 400).await;
    assert!(message.contains("from all pods"), "{message}");
    let wrong = json!({ "networkVolumeId": volume, "dataCenterIds": ["US-KS-2"] });
    let message = service.refused(Method::POST, "/pods", Some(with(shell(""), wrong)), 400).await;
    assert!(message.contains("is in EU-RO-1"), "{message}");
    service.rest(Method::DELETE, &format!("/pods/{id}"), None).await;
    assert_eq!(service.rest(Method::DELETE, &held, None).await.0, 204);
}

#[tokio::test]
async fn a_change_of_the_container_starts_another_process() {
    let service = Harness::start().await;
    let id = make(
        &service,
        with(shell("echo $WORD-$$; sleep 600"), json!({ "env": { "WORD": "one" } })),
    )
    .await;
    let first = log(&service, &id, "one-").await;
    let path = format!("/pods/{id}");
    let (_, shown) = service.rest(Method::PATCH, &path, Some(json!({ "name": "renamed" }))).await;
    assert_eq!(shown["name"], "renamed");
    let change = json!({ "env": { "WORD": "two" } });
    let (_, shown) = service.rest(Method::PATCH, &path, Some(change)).await;
    assert_eq!((&shown["env"]["WORD"], &shown["name"]), (&json!("two"), &json!("renamed")));
    let second = log(&service, &id, "two-").await;
    assert!(second.starts_with(&first) && second.matches("one-").count() == 1, "{second}");
    act(&service, &id, "restart").await;
    until("no restart", async || {
        let text = log(&service, &id, "two-").await;
        (text.matches("two-").count() == 2).then_some(())
    })
    .await;
    let synonym = format!("{path}/update");
    assert_eq!(service.post(&synonym, json!({ "locked": true })).await["locked"], true);
    for action in ["stop", "reset"] {
        let path = format!("{path}/{action}");
        let message = service.refused(Method::POST, &path, Some(json!({})), 400).await;
        assert!(message.contains("is locked"), "{message}");
    }
    let change = json!({ "env": {} });
    service.refused(Method::PATCH, &path, Some(change.clone()), 400).await;
    let unlocked = with(change, json!({ "locked": false }));
    assert_eq!(service.rest(Method::PATCH, &path, Some(unlocked)).await.0, 200);
    log(&service, &id, "\n-").await;
}

#[tokio::test]
async fn a_process_that_ends_is_started_again_until_it_fails_too_often() {
    let service = Harness::with(|options| {
        options.timing.crash_pause = Duration::from_millis(20);
    })
    .await;
    let id = make(&service, shell("echo try; exit 3")).await;
    until("it goes on", async || {
        let text = log(&service, &id, "try").await;
        (text.matches("try").count() == 5).then_some(())
    })
    .await;
    sleep(Duration::from_millis(400)).await;
    assert_eq!(log(&service, &id, "try").await.matches("try").count(), 5);
    // Starting a failed pod tries again.
    act(&service, &id, "start").await;
    until("no new try", async || {
        let text = log(&service, &id, "try").await;
        (text.matches("try").count() > 5).then_some(())
    })
    .await;
}

#[tokio::test]
async fn pods_get_secrets_and_come_back_with_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let service = Harness::over(folder.path(), |_| {}).await;
    let secrets = format!("{}/account/secrets", service.addresses.queue);
    let secret = json!({ "name": "token", "value": "s3cr3t" });
    assert_eq!(service.send(Method::POST, &secrets, Some(secret)).await.0, 201);
    let template = json!({ "name": "t", "imageName": "x", "ports": ["9000/http"],
        "env": { "TOKEN": "{{ RUNPOD_SECRET_token }}" } });
    let template = service.post("/templates", template).await["id"].take();
    let id = make(&service, json!({ "templateId": template, "name": "of the template" })).await;
    let stopped = make(&service, json!({ "templateId": template })).await;
    act(&service, &stopped, "stop").await;
    let shown = running(&service, &id).await;
    assert_eq!(shown["env"]["TOKEN"], "{{ RUNPOD_SECRET_token }}");
    assert_eq!(variable(&shown, "9000", "TOKEN").await, "s3cr3t");
    service.stop().await;
    assert!(call(&shown, "9000", "/").await.is_none(), "no pod outlives the service");
    let service = Harness::over(folder.path(), |_| {}).await;
    let shown = running(&service, &id).await;
    assert_eq!(variable(&shown, "9000", "TOKEN").await, "s3cr3t");
    assert_eq!(service.get(&format!("/pods/{stopped}")).await["desiredStatus"], "EXITED");
    let with = service.get(&format!("/pods/{id}?includeTemplate=true")).await;
    assert_eq!(with["template"]["id"], template);
}

#[tokio::test]
async fn lists_are_filtered() {
    let service = Harness::start().await;
    let gpu = with(shell("sleep 600"), json!({ "name": "gpu", "gpuTypeIds": ["NVIDIA L4"] }));
    let gpu = make(&service, gpu).await;
    let cpu = with(
        shell("sleep 600"),
        json!({ "name": "cpu", "computeType": "CPU",
        "cpuFlavorIds": ["cpu5m"], "vcpuCount": 4, "dataCenterIds": ["US-KS-2"] }),
    );
    let cpu = make(&service, cpu).await;
    act(&service, &cpu, "stop").await;
    for (filter, expected) in [
        ("", vec![&gpu, &cpu]),
        ("computeType=CPU", vec![&cpu]),
        ("desiredStatus=EXITED", vec![&cpu]),
        ("desiredStatus=TERMINATED", vec![]),
        ("gpuTypeId=NVIDIA%20L4&gpuTypeId=NVIDIA%20A40", vec![&gpu]),
        ("cpuFlavorId=cpu3c,cpu5m", vec![&cpu]),
        ("dataCenterId=US-KS-2", vec![&cpu]),
        ("name=gpu&imageName=none", vec![&gpu]),
        ("name=none", vec![]),
        ("endpointId=e", vec![]),
    ] {
        let list = service.get(&format!("/pods?{filter}")).await;
        let ids: Vec<_> = list.as_array().unwrap().iter().map(|pod| pod["id"].clone()).collect();
        assert_eq!(json!(ids), json!(expected), "{filter}");
    }
    let shown = service.get(&format!("/pods/{cpu}")).await;
    assert_eq!((&shown["vcpuCount"], &shown["memoryInGb"]), (&json!(4), &json!(32)));
    assert_eq!((&shown["gpu"], &shown["volumeInGb"]), (&Value::Null, &json!(0)));
    assert_eq!(
        service.refused(Method::GET, "/pods?computeType=TPU", None, 400).await,
        "computeType must be one of GPU, CPU"
    );
}

#[tokio::test]
async fn wrong_pods_are_refused() {
    let service = Harness::start().await;
    for (body, expected) in [
        (json!({}), "imageName is required"),
        (json!({ "imageName": "x", "name": "" }), "name must not be empty"),
        (json!({ "imageName": "x", "gpuCount": 0 }), "gpuCount must be between 1 and 8"),
        (json!({ "imageName": "x", "gpuTypeIds": ["TPU"] }), "gpuTypeIds[0] must be one of"),
        (json!({ "imageName": "x", "ports": ["80"] }), "ports[0] must look like"),
        (json!({ "imageName": "x", "templateId": "none" }), "template \"none\" not found"),
        (
            json!({ "imageName": "x", "networkVolumeId": "none" }),
            "network volume \"none\" not found",
        ),
        (json!({ "imageName": "x", "volumeMountPath": "a/b" }), "must be an absolute path"),
        (json!({ "imageName": "x", "volumeMountPath": "/a/../b" }), "must be an absolute path"),
        (json!({ "imageName": "x", "containerRegistryAuthId": "none" }), "\"none\" not found"),
    ] {
        let message = service.refused(Method::POST, "/pods", Some(body.clone()), 400).await;
        assert!(message.contains(expected), "{body}: {message}");
    }
    let id = make(&service, with(shell("sleep 600"), json!({ "volumeInGb": 10 }))).await;
    let path = format!("/pods/{id}");
    let less = Some(json!({ "volumeInGb": 5 }));
    let message = service.refused(Method::PATCH, &path, less, 400).await;
    assert!(message.contains("cannot become less: it is 10 GB, not 5 GB"), "{message}");
    assert_eq!(service.rest(Method::PATCH, &path, Some(json!({ "volumeInGb": 11 }))).await.0, 200);
    for (method, path) in [
        (Method::GET, "/pods/none"),
        (Method::DELETE, "/pods/none"),
        (Method::POST, "/pods/none/stop"),
    ] {
        service.refused(method, path, Some(json!({})), 404).await;
    }
}

#[tokio::test]
async fn a_credential_that_a_pod_uses_stays() {
    let service = Harness::start().await;
    let auth = json!({ "name": "hub", "username": "u", "password": "p" });
    let auth = service.post("/containerregistryauth", auth).await["id"].take();
    let id =
        make(&service, with(shell("sleep 600"), json!({ "containerRegistryAuthId": auth }))).await;
    let path = format!("/containerregistryauth/{}", auth.as_str().unwrap());
    let message = service.refused(Method::DELETE, &path, None, 400).await;
    assert!(message.contains(&format!("in use by pod {id}")), "{message}");
    service.rest(Method::DELETE, &format!("/pods/{id}"), None).await;
    assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
}

#[tokio::test]
async fn pods_cost_their_time_and_their_disks() {
    let service = Harness::start().await;
    let id = make(
        &service,
        with(shell("echo up; sleep 600"), json!({ "gpuTypeIds": ["NVIDIA L4"], "gpuCount": 2 })),
    )
    .await;
    log(&service, &id, "up").await;
    let shown = service.get(&format!("/pods/{id}")).await;
    assert_eq!(shown["costPerHr"], json!(0.92));
    let billed = until("it costs nothing", async || {
        let records = service.get(&format!("/billing/pods?podId={id}")).await;
        records.as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(billed["podId"], json!(id));
    let (amount, ms) =
        (billed["amount"].as_f64().unwrap(), billed["timeBilledMs"].as_i64().unwrap());
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let least = 0.92 * ms as f64 / 3_600_000.0;
    assert!(ms > 0 && amount >= least * 0.99 && amount < least * 1.2 + 0.0001, "{billed}");
    assert_eq!(service.get("/billing/pods?podId=other").await, json!([]));
}
