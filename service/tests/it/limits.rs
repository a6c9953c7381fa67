//! Tests of the limits on the workers' use of this machine.

use std::time::Duration;

use serde_json::json;
use service::WorkerLimits;

use crate::harness::Harness;

const MEMORY: u64 = 256 << 20;

#[tokio::test]
async fn a_worker_over_its_memory_is_gone_and_the_job_says_so() {
    let service = Harness::with(|options| {
        options.worker_limits = WorkerLimits { memory: Some(MEMORY), ..WorkerLimits::default() };
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let small = service.run(&endpoint, json!({ "output_bytes": 1 << 20 })).await;
    service.until(&endpoint, &small, "COMPLETED").await;
    let large = service.run(&endpoint, json!({ "output_bytes": 2 * MEMORY })).await;
    let shown = service.until(&endpoint, &large, "FAILED").await;
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("its memory is limited to 256 MiB"), "{error}");
}

#[tokio::test]
async fn a_worker_has_the_limits_and_ends_when_its_cpu_time_is_up() {
    let service = Harness::with(|options| {
        options.worker_limits =
            WorkerLimits { memory: Some(MEMORY), files: Some(100), cpu_seconds: Some(1) };
        // With this pause the worker is started only once, which is enough.
        options.timing.crash_pause = Duration::from_mins(1);
    })
    .await;
    let script = "echo limits $(ulimit -n) $(ulimit -t) $(ulimit -d) \"${PLUMB_WORKER_LIMITS:-none}\"; \
                  while :; do :; done";
    let body = json!({ "name": "busy", "imageName": "x", "isServerless": true,
        "dockerStartCmd": ["sh", "-c", script] });
    let template = service.post("/templates", body).await["id"].clone();
    let endpoint = service.endpoint(json!({ "templateId": template })).await;
    service.run(&endpoint, json!({})).await;
    service.healthy(&endpoint, |health| health["workers"]["unhealthy"] == 1).await;
    let logs = service.data.join("logs");
    let log = std::fs::read_dir(logs).unwrap().next().unwrap().unwrap().path();
    let said = std::fs::read_to_string(log).unwrap();
    assert!(said.starts_with("limits 100 1 262144 none\n"), "{said}");
}
