//! Tests of autoscaling, roll-outs, and the environment of workers.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY};

async fn no_pods(service: &Harness, endpoint: &str) {
    for _ in 0..200 {
        if service.pods(endpoint).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the workers stay");
}

#[tokio::test]
async fn workers_follow_the_number_of_requests_and_go_when_idle() {
    let service = Harness::start().await;
    let endpoint = service
        .endpoint(json!({ "workersMax": 3, "scalerType": "REQUEST_COUNT", "scalerValue": 2, "idleTimeout": 1 }))
        .await;
    assert!(service.pods(&endpoint).await.is_empty());
    for _ in 0..10 {
        service.run(&endpoint, json!({ "sleep_ms": 400 })).await;
    }
    service.healthy(&endpoint, |health| health["workers"]["running"] == 3).await;
    assert_eq!(service.pods(&endpoint).await.len(), 3);
    service.healthy(&endpoint, |health| health["jobs"]["completed"] == 10).await;
    no_pods(&service, &endpoint).await;
}

#[tokio::test]
async fn a_long_queue_delay_adds_workers() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 2, "scalerValue": 1 })).await;
    for _ in 0..3 {
        service.run(&endpoint, json!({ "sleep_ms": 2500 })).await;
    }
    service.healthy(&endpoint, |health| health["workers"]["running"] == 1).await;
    assert_eq!(service.pods(&endpoint).await.len(), 1, "the first worker comes at once");
    service.healthy(&endpoint, |health| health["workers"]["running"] == 2).await;
}

#[tokio::test]
async fn jobs_of_low_priority_start_nobody() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let body = json!({ "input": {}, "policy": { "lowPriority": true } });
    let low = service.submit(&endpoint, body).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(service.pods(&endpoint).await.is_empty());
    service.run(&endpoint, json!({})).await;
    service.until(&endpoint, &low, "COMPLETED").await;
}

#[tokio::test]
async fn a_new_template_replaces_workers_between_jobs() {
    let service = Harness::start().await;
    let template = service.template("rolled").await;
    let endpoint = service.endpoint(json!({ "templateId": template, "workersMin": 1 })).await;
    let ask = json!({ "environment": "COLOUR" });
    let job = service.run(&endpoint, ask.clone()).await;
    assert_eq!(service.until(&endpoint, &job, "COMPLETED").await.get("output"), None);
    let long = service.run(&endpoint, json!({ "sleep_ms": 700 })).await;
    service.until(&endpoint, &long, "IN_PROGRESS").await;
    let before = service.pods(&endpoint).await;
    let change = json!({ "env": { "COLOUR": "green" } });
    service.rest(Method::PATCH, &format!("/templates/{template}"), Some(change)).await;
    let done = service.until(&endpoint, &long, "COMPLETED").await;
    assert_eq!(done["workerId"], before[0], "a running job is not disturbed");
    assert!(done.get("retries").is_none(), "{done}");
    let mut colour = Value::Null;
    for _ in 0..50 {
        let job = service.run(&endpoint, ask.clone()).await;
        colour = service.until(&endpoint, &job, "COMPLETED").await["output"].take();
        if colour == "green" {
            break;
        }
    }
    assert_eq!(colour, "green");
    assert_ne!(service.pods(&endpoint).await, before);
}

/// A job that is submitted right after a change of the template runs with the changed template.
#[tokio::test]
async fn what_is_asked_after_a_change_is_answered_by_what_was_changed() {
    let service = Harness::start().await;
    let template = service.template("asked").await;
    let endpoint = service.endpoint(json!({ "templateId": template })).await;
    let ask = json!({ "input": { "environment": "COLOUR" } });
    for number in 0..20 {
        let colour = format!("colour-{number}");
        let change = json!({ "env": { "COLOUR": colour } });
        service.rest(Method::PATCH, &format!("/templates/{template}"), Some(change)).await;
        let path = format!("{endpoint}/runsync");
        let (_, done) = service.queue(Method::POST, &path, Some(ask.clone())).await;
        assert_eq!((&done["status"], &done["output"]), (&json!("COMPLETED"), &json!(colour)));
    }
}

/// A change of the template that was made inside of an endpoint replaces the endpoint's workers.
#[tokio::test]
async fn a_template_inside_an_endpoint_replaces_workers_too() {
    let service = Harness::start().await;
    let save = "mutation($i: EndpointInput!) { saveEndpoint(input: $i) { id } }";
    let mut input = json!({ "name": "inside", "gpuIds": "ADA_24", "workersMax": 1 });
    for colour in ["red", "green", "blue"] {
        let env = json!([{ "key": "COLOUR", "value": colour }]);
        input["template"] = json!({ "name": "inside", "imageName": "echo:1", "dockerArgs": "",
            "containerDiskInGb": 5, "volumeInGb": 0, "env": env });
        let saved = service.data(save, json!({ "i": input })).await;
        input["id"] = saved["saveEndpoint"]["id"].clone();
        let endpoint = input["id"].as_str().unwrap();
        let job = service.run(endpoint, json!({ "environment": "COLOUR" })).await;
        assert_eq!(service.until(endpoint, &job, "COMPLETED").await["output"], colour);
    }
}

/// A worker from before a change finishes its job and gets no other, although it is the only worker
/// that the endpoint may have. The next job runs on a new worker.
#[tokio::test]
async fn a_worker_of_before_ends_what_it_has_and_takes_nothing_more() {
    let service = Harness::start().await;
    let template = service.template("handed").await;
    let endpoint = service.endpoint(json!({ "templateId": template })).await;
    let long = service.run(&endpoint, json!({ "sleep_ms": 60_000 })).await;
    let begun = service.until(&endpoint, &long, "IN_PROGRESS").await;
    let change = json!({ "env": { "COLOUR": "green" } });
    service.rest(Method::PATCH, &format!("/templates/{template}"), Some(change)).await;
    let next = service.run(&endpoint, json!({ "environment": "COLOUR" })).await;
    let next = service.until(&endpoint, &next, "COMPLETED").await;
    assert_eq!(next["output"], "green");
    assert_eq!(service.until(&endpoint, &long, "IN_PROGRESS").await, begun);
    assert!(begun.get("retries").is_none() && next["workerId"] != begun["workerId"]);
}

#[tokio::test]
async fn workers_go_with_the_maximum_and_with_the_endpoint() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMin": 1 })).await;
    service.healthy(&endpoint, |health| health["workers"]["idle"] == 1).await;
    let path = format!("/endpoints/{endpoint}");
    let none = json!({ "workersMin": 0, "workersMax": 0 });
    service.rest(Method::PATCH, &path, Some(none)).await;
    no_pods(&service, &endpoint).await;
    let queued = service.run(&endpoint, json!({})).await;
    let some = json!({ "workersMin": 1, "workersMax": 1 });
    service.rest(Method::PATCH, &path, Some(some)).await;
    service.until(&endpoint, &queued, "COMPLETED").await;
    let running = service.run(&endpoint, json!({ "sleep_ms": 60_000 })).await;
    service.until(&endpoint, &running, "IN_PROGRESS").await;
    let worker = service.pods(&endpoint).await.remove(0);
    assert_eq!(processes(&worker), 2, "the guard and the worker");
    assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
    for _ in 0..200 {
        if processes(&worker) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(processes(&worker), 0);
    let (status, _) =
        service.queue(Method::GET, &format!("{endpoint}/status/{running}"), None).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_worker_does_not_outlive_its_guard() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "sleep_ms": 1500 })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let worker = service.pods(&endpoint).await.remove(0);
    kill_guard(&worker);
    for _ in 0..100 {
        if processes(&worker) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(processes(&worker), 0);
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(done["retries"], 1);
}

/// Kills the guard of this worker.
pub(crate) fn kill_guard(worker: &str) {
    let guard = marked(&format!("RUNPOD_POD_ID={worker}")).into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"guard"[..]) && !words.contains(&&b"--exec"[..])
    });
    let killed = std::process::Command::new("kill").args(["-9", &guard.unwrap()]).status();
    assert!(killed.unwrap().success());
}

/// Returns the number of processes whose environment contains the id of this worker.
pub(crate) fn processes(worker: &str) -> usize {
    marked(&format!("RUNPOD_POD_ID={worker}")).len()
}

/// Returns the processes with this variable, `NAME=VALUE`, in their environment.
pub(crate) fn marked(variable: &str) -> Vec<String> {
    let mark = variable.as_bytes();
    let marked = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten().filter(marked);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn templates_say_what_runs_and_volumes_are_folders() {
    let service = Harness::start().await;
    let volume = service.volume("v", 1).await;
    // This worker is a shell script. It writes parts of its environment into the volume, leaves a
    // detached process behind, and ends.
    let script = "env | grep -c '^PLUMB_SECRET' > $RUNPOD_VOLUME/secret; \
                  echo $GREETING $RUNPOD_ENDPOINT_ID $RUNPOD_POD_ID > $RUNPOD_VOLUME/out; \
                  (setsid sleep 300 &) ; echo said on stdout; sleep 0.4";
    let template = service
        .post(
            "/templates",
            json!({ "name": "shell", "imageName": "none", "dockerEntrypoint": ["sh", "-c"],
                "dockerStartCmd": [script], "env": { "GREETING": "hello", "RUNPOD_POD_ID": "mine" } }),
        )
        .await["id"]
        .take();
    let endpoint = service
        .endpoint(json!({ "templateId": template, "workersMin": 1, "networkVolumeId": volume }))
        .await;
    let out = service.data.join("volumes").join(&volume).join("out");
    for _ in 0..200 {
        if out.metadata().is_ok_and(|meta| meta.len() > 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let text = std::fs::read_to_string(&out).unwrap();
    let words: Vec<_> = text.split_whitespace().collect();
    assert_eq!(words[..2], ["hello", endpoint.as_str()]);
    let worker = words[2];
    assert_eq!(worker.len(), 14, "the protocol's variables win over the template's");
    service.healthy(&endpoint, |health| health["workers"]["unhealthy"] == 1).await;
    let log = service.data.join("logs").join(format!("{endpoint}.{worker}.log"));
    assert!(std::fs::read_to_string(&log).unwrap().contains("said on stdout"));
    assert_eq!(processes(worker), 0, "what it had detached went with it");
    let path = format!("/endpoints/{endpoint}");
    service.rest(Method::DELETE, &path, None).await;
    assert!(!log.exists());
    service.rest(Method::DELETE, &format!("/networkvolumes/{volume}"), None).await;
    assert!(!out.exists());
}

/// Volumes and models have the paths at which unmodified programs of the real service look for
/// them.
#[tokio::test]
async fn volumes_and_models_stand_at_the_paths_of_the_real_service() {
    let mut probe = std::process::Command::new(env!("CARGO_BIN_EXE_service-alone"));
    if !probe.args(["guard", "--can-mount"]).status().unwrap().success() {
        return;
    }
    let service = Harness::start().await;
    let (first, second) = (service.volume("a", 1).await, service.volume("b", 1).await);
    let there_before = std::path::Path::new("/runpod-volume").exists();
    let script = "cp $MODEL_DIR/hello /plumb-test/data/copy; cp /runpod-volume/hello $1/copy; \
                  touch /runpod-volume/huggingface-cache/model; \
                  echo $HF_HOME $MODEL_NAME > /runpod-volume/said; touch $PLUMB_MOUNTS/left; sleep 300";
    let command = json!([script, "sh", format!("/runpod-volumes/{second}")]);
    let template = json!({ "name": "shell", "imageName": "none", "isServerless": true,
        "volumeMountPath": "/plumb-test/data", "env": { "MODEL_DIR": "/runpod-volume/models" },
        "dockerEntrypoint": ["sh", "-c"], "dockerStartCmd": command });
    let template = service.post("/templates", template).await["id"].take();
    let query = "mutation($i: EndpointInput!) { saveEndpoint(input: $i) { id } }";
    let input = json!({ "name": "volumes", "templateId": template, "gpuIds": "ADA_24",
        "networkVolumeIds": [{ "networkVolumeId": first }, { "networkVolumeId": second }],
        "modelReferences": ["https://huggingface.co/org/model"], "workersMax": 1 });
    let volumes = service.data.join("volumes");
    std::fs::create_dir_all(volumes.join(&first).join("models")).unwrap();
    for path in ["hello", "models/hello"] {
        std::fs::write(volumes.join(&first).join(path), "hello").unwrap();
    }
    let made = service.data(query, json!({ "i": input })).await;
    let endpoint = made["saveEndpoint"]["id"].as_str().unwrap();
    service.run(endpoint, json!({})).await;
    let said = volumes.join(&first).join("said");
    for _ in 0..400 {
        if said.metadata().is_ok_and(|meta| meta.len() > 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let read = |path: std::path::PathBuf| std::fs::read_to_string(&path).unwrap();
    assert_eq!(read(volumes.join(&first).join("copy")), "hello");
    assert_eq!(read(volumes.join(&second).join("copy")), "hello");
    assert_eq!(read(said), "/runpod-volume/huggingface-cache org/model\n");
    assert!(service.data.join("models/model").exists());
    assert_eq!(std::path::Path::new("/runpod-volume").exists(), there_before);
    assert!(!std::path::Path::new("/plumb-test").exists());
}

#[tokio::test]
async fn a_volume_that_holds_more_than_its_size_is_reported_and_its_jobs_are_refused_on_request() {
    for refuse in [false, true] {
        let service = Harness::with(|options| {
            options.refuse_full_volumes = refuse;
            options.timing.volume_count = Duration::from_millis(50);
        })
        .await;
        let volume = service.volume("v", 0).await;
        let more = json!({ "networkVolumeId": volume, "workersMax": 0 });
        let endpoint = service.endpoint(more).await;
        let level = |health: &serde_json::Value| health["volumes"][0].clone();
        let health = service.health(&endpoint).await;
        assert_eq!(
            (&level(&health)["id"], &level(&health)["full"]),
            (&json!(volume), &json!(false))
        );
        let folder = service.data.join("volumes").join(&volume);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), vec![1; 100_000]).unwrap();
        let health = service.healthy(&endpoint, |health| level(health)["full"] == true).await;
        assert!(level(&health)["usedBytes"].as_i64() >= Some(100_000), "{health}");
        let run = format!("{endpoint}/run");
        let body = Some(json!({ "input": {} }));
        let (status, said) = service.queue(Method::POST, &run, body.clone()).await;
        assert_eq!(status, if refuse { 400 } else { 200 }, "{said}");
        let path = format!("/networkvolumes/{volume}");
        service.rest(Method::PATCH, &path, Some(json!({ "size": 1 }))).await;
        service.healthy(&endpoint, |health| level(health)["full"] == false).await;
        assert_eq!(service.queue(Method::POST, &run, body).await.0, 200);
    }
}

/// A change and a cancel take effect although their client has left before the answer.
#[tokio::test]
async fn a_change_counts_though_its_client_has_left() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMin": 1 })).await;
    let job = service.run(&endpoint, json!({ "sleep_ms": 60_000 })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let other = service.endpoint(json!({ "workersMax": 1 })).await;
    service.healthy(&other, |health| health["workers"]["ready"] == 0).await;
    let store = rusqlite::Connection::open(service.data.join("service.db")).unwrap();
    store.execute_batch("begin immediate").unwrap();
    let more = json!({ "workersMin": 1, "workersMax": 1 });
    let url = format!("{}/endpoints/{other}", service.addresses.rest);
    let change = service.client.patch(url).bearer_auth(KEY).json(&more);
    let url = format!("{}/{endpoint}/cancel/{job}", service.addresses.queue);
    let cancel = service.client.post(url).bearer_auth(KEY);
    for request in [change, cancel] {
        let sent = request.timeout(Duration::from_millis(200)).send().await;
        assert!(sent.unwrap_err().is_timeout());
    }
    store.execute_batch("commit").unwrap();
    service.until(&endpoint, &job, "CANCELLED").await;
    service.healthy(&endpoint, |health| health["workers"]["idle"] == 1).await;
    service.healthy(&other, |health| health["workers"]["idle"] == 1).await;
}
