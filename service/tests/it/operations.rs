//! Tests of probes, metrics, and ids of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};
use service::{LogLevel, Rights};

use crate::harness::{Harness, KEY};

fn base(service: &Harness) -> String {
    service.addresses.rest.strip_suffix("/v1").unwrap().to_owned()
}

async fn probe(service: &Harness, path: &str) -> (u16, Value) {
    let response = service.client.get(format!("{}{path}", base(service))).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// A sample: the name of its metric and its labels, in the order of the text.
type Sample = (String, Vec<(String, String)>);

/// Reads the text form of metrics, and fails if the text breaks a rule of that form.
fn parse(text: &str) -> BTreeMap<Sample, f64> {
    assert!(text.ends_with('\n'));
    let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    let mut helped = BTreeSet::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(helped.insert(help.split_once(' ').unwrap().0.to_owned()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(helped.contains(name) && ["gauge", "counter", "histogram"].contains(&kind));
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = match sample.split_once('{') {
                Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
                None => (sample, ""),
            };
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .filter(|family| kinds.get(*family).is_some_and(|kind| kind == "histogram"))
                .unwrap_or(name);
            assert!(kinds.contains_key(family), "{line}");
            let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
                let (name, value) = label.split_once('=').unwrap();
                let value = value.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
                (name.to_owned(), value.to_owned())
            });
            let key = (name.to_owned(), labels.collect());
            assert!(samples.insert(key, value.parse().unwrap()).is_none(), "{line}");
        }
    }
    samples
}

async fn metrics(service: &Harness, key: &str) -> (u16, String) {
    let request = service.client.get(format!("{}/metrics", base(service))).bearer_auth(key);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn probes_say_whether_the_service_lives_and_takes_work() {
    let service = Harness::start().await;
    let ok = json!({ "status": "ok" });
    assert_eq!(probe(&service, "/healthz").await, (200, ok.clone()));
    assert_eq!(probe(&service, "/readyz").await, (200, ok));
    // Another program has locked the store, so no write succeeds.
    let store = rusqlite::Connection::open(service.data.join("service.db")).unwrap();
    store.execute_batch("begin immediate").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let cannot = json!({ "status": "the store cannot be written" });
    assert_eq!(probe(&service, "/readyz").await, (503, cannot));
    assert_eq!(probe(&service, "/healthz").await.0, 200);
    store.execute_batch("rollback").unwrap();
}

#[tokio::test]
async fn a_stopping_service_is_not_ready() {
    let service = Harness::with(|options| {
        options.timing.finish = std::time::Duration::from_secs(10);
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "sleep_ms": 3000 })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    service.stop.cancel();
    let mut found = probe(&service, "/readyz").await;
    for _ in 0..100 {
        if found.0 != 200 {
            break;
        }
        found = probe(&service, "/readyz").await;
    }
    assert_eq!(found, (503, json!({ "status": "stopping" })));
    assert_eq!(probe(&service, "/healthz").await.0, 200);
}

#[tokio::test]
async fn metrics_count_jobs_workers_requests_and_refusals() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({})).await;
    service.until(&endpoint, &job, "COMPLETED").await;
    for _ in 0..3 {
        let purge = format!("{endpoint}/purge-queue");
        service.queue(Method::POST, &purge, Some(json!({}))).await;
    }
    let pod = json!({ "name": "p", "image": "x", "gpu": { "id": "NVIDIA L4" } });
    let made = service.queue(Method::POST, "pods", Some(pod)).await.1;
    let stop = format!("pods/{}/action", made["id"].as_str().unwrap());
    let stopped = service.queue(Method::POST, &stop, Some(json!({ "action": "stop" }))).await;
    assert_eq!(stopped.0, 200, "{}", stopped.1);
    let (status, text) = metrics(&service, KEY).await;
    assert_eq!(status, 200);
    let samples = parse(&text);
    let value = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let key = (name.to_owned(), labels.collect());
        *samples.get(&key).unwrap_or_else(|| panic!("{key:?} is not in {text}"))
    };
    let of = ("endpoint", endpoint.as_str());
    let is = |value: f64, expected: f64| (value - expected).abs() < f64::EPSILON;
    for (value, expected) in [
        (value("plumb_jobs", &[of, ("state", "IN_QUEUE")]), 0.0),
        (value("plumb_jobs_ended_total", &[of, ("result", "completed")]), 1.0),
        (value("plumb_job_delay_seconds_count", &[of]), 1.0),
        (value("plumb_job_execution_seconds_bucket", &[of, ("le", "+Inf")]), 1.0),
        (value("plumb_workers", &[of, ("state", "idle")]), 1.0),
        (value("plumb_pods", &[("state", "EXITED")]), 1.0),
        (value("plumb_pods", &[("state", "RUNNING")]), 0.0),
        (value("plumb_rate_refusals_total", &[("rate", "purge-queue")]), 1.0),
        (value("plumb_requests_total", &[("interface", "jobs"), ("status", "429")]), 1.0),
    ] {
        assert!(is(value, expected), "{value} is not {expected}: {text}");
    }
    assert!(value("plumb_store_commit_seconds_count", &[]) > 3.0);
    assert!(value("plumb_requests_total", &[("interface", "workers"), ("status", "200")]) > 0.0);
    // The counts of buckets only grow, and the last bucket contains all jobs.
    let mut buckets: Vec<(f64, f64)> = samples
        .iter()
        .filter(|((name, _), _)| name == "plumb_job_delay_seconds_bucket")
        .map(|((_, labels), count)| (labels[1].1.parse().unwrap(), *count))
        .collect();
    buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
    assert!(buckets.is_sorted_by(|left, right| left.1 <= right.1), "{buckets:?}");
}

#[tokio::test]
async fn metrics_are_for_keys_that_may_read_everything() {
    let service = Harness::start().await;
    let create = |name: &str, rights| service::create_key(&service.data, name, rights).unwrap();
    let reader = create("reader", Rights { read_only: true, ..Rights::default() });
    let one = create("one", Rights { endpoint: Some("a".to_owned()), ..Rights::default() });
    assert_eq!(metrics(&service, &reader).await.0, 200);
    assert_eq!(metrics(&service, &one).await.0, 401);
    assert_eq!(metrics(&service, "wrong").await.0, 401);
}

#[tokio::test]
async fn a_request_has_one_id_in_its_answer_and_in_both_logs() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let service = Harness::with(|options| {
        options.log = Arc::new(move |line| {
            let request = line.request.map(str::to_owned);
            kept.lock().unwrap().push((line.level, request, line.text.to_owned()));
        });
    })
    .await;
    let url = format!("{}/networkvolumes", service.addresses.rest);
    let body = json!({ "name": "v", "size": 5, "dataCenterId": "EU-RO-1" });
    let post = |id: Option<&'static str>| {
        let request = service.client.post(&url).bearer_auth(KEY).json(&body);
        match id {
            Some(id) => request.header("x-request-id", id),
            None => request,
        }
    };
    let made = post(None).send().await.unwrap();
    let made = made.headers()["x-request-id"].to_str().unwrap().to_owned();
    let given = post(Some("trace-7")).send().await.unwrap();
    assert_eq!(given.headers()["x-request-id"], "trace-7");
    let entries = service.access_log();
    let entries: Vec<_> = entries.iter().map(|entry| entry["request"].as_str().unwrap()).collect();
    assert_eq!(entries, [made.as_str(), "trace-7"]);
    let lines = lines.lock().unwrap().clone();
    let volumes: Vec<_> =
        lines.iter().filter(|(_, _, text)| text.starts_with("network volume")).collect();
    assert_eq!(volumes.len(), 2);
    for ((level, request, _), id) in volumes.into_iter().zip([made.as_str(), "trace-7"]) {
        assert_eq!((*level, request.as_deref()), (LogLevel::Info, Some(id)));
    }
    // An answer about an unknown path has an id too.
    let nowhere = service.client.get(format!("{}/nowhere", base(&service))).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    assert!(nowhere.headers().contains_key("x-request-id"));
}
