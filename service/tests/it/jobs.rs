//! Tests of the job API with real workers: every operation, state and limit.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use service::StreamFormat;

use crate::harness::{Harness, KEY};

async fn post(service: &Harness, path: &str, body: Value) -> (u16, Value) {
    let (status, answer) = service.queue(Method::POST, path, Some(body)).await;
    (status.as_u16(), answer)
}

async fn get(service: &Harness, path: &str) -> (u16, Value) {
    let (status, answer) = service.queue(Method::GET, path, None).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn a_job_runs_and_is_counted() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "a": [1, "é"] })).await;
    assert!(job.ends_with("-u1") && !job.starts_with("sync-"), "{job}");
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(done["output"], json!({ "a": [1, "é"] }));
    assert!(done["delayTime"].is_i64() && done["executionTime"].is_i64(), "{done}");
    assert_eq!(done["workerId"], service.pods(&endpoint).await[0]);
    let health = service.health(&endpoint).await;
    let jobs = json!({ "completed": 1, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0 });
    assert_eq!(health["jobs"], jobs);
    assert_eq!((&health["workers"]["idle"], &health["workers"]["running"]), (&json!(1), &json!(0)));
    let raw = service.client.get(format!("{}/{endpoint}/health", service.addresses.queue));
    assert_eq!(raw.header("authorization", KEY).send().await.unwrap().status(), 200);
}

/// A worker gets JSON exactly as the client wrote it, even if most parsers cannot represent it.
#[tokio::test]
async fn any_json_is_echoed_untouched() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let inputs = [
        r#"{"x":1e400}"#,
        r#"{"half":"\ud800"}"#,
        r#"{"\ud800":1}"#,
        r#"{"n":123456789012345678901234567890,"f":1.50}"#,
        r#"{"progress":[1e400],"stream":[123456789012345678901234567890]}"#,
        &deep,
    ];
    for input in inputs {
        let url = format!("{}/{endpoint}/runsync?wait=20000", service.addresses.queue);
        let sent = service.client.post(url).header("authorization", KEY);
        let sent = sent.header("content-type", "application/json");
        let answer = sent.body(format!(r#"{{"input":{input}}}"#)).send().await.unwrap();
        let text = answer.text().await.unwrap();
        let shown = text.contains("COMPLETED") && text.contains(&format!("\"output\":{input}"));
        let streamed = input.contains("stream")
            && text.contains("\"output\":[{\"output\":1234567890123456789");
        assert!(shown || streamed, "{input}: {text}");
    }
}

#[tokio::test]
async fn runsync_waits_as_long_as_it_is_told() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let path = format!("{endpoint}/runsync");
    let (status, done) = post(&service, &path, json!({ "input": { "x": 1 } })).await;
    assert_eq!(
        (status, &done["status"], &done["output"]),
        (200, &json!("COMPLETED"), &json!({ "x": 1 }))
    );
    assert!(done["id"].as_str().unwrap().starts_with("sync-"));
    let asked = Instant::now();
    let slow = json!({ "input": { "sleep_ms": 2000 } });
    let (status, early) = post(&service, &format!("{path}?wait=1000"), slow).await;
    assert_eq!((status, &early["status"]), (200, &json!("IN_PROGRESS")), "{early}");
    assert!(asked.elapsed() < Duration::from_millis(1900));
    let path = format!("{endpoint}/status-sync/{}?wait=5000", early["id"].as_str().unwrap());
    let (_, done) = get(&service, &path).await;
    assert_eq!(done["status"], "COMPLETED");
    assert!(done["executionTime"].as_i64().unwrap() >= 2000, "{done}");
}

#[tokio::test]
async fn failing_retrying_and_progress() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "fail": "no luck" })).await;
    let failed = service.until(&endpoint, &job, "FAILED").await;
    assert_eq!((&failed["error"], failed.get("output")), (&json!("no luck"), None));
    let (status, again) = post(&service, &format!("{endpoint}/retry/{job}"), json!({})).await;
    assert_eq!((status, again), (200, json!({ "id": job, "status": "IN_QUEUE" })));
    service.until(&endpoint, &job, "FAILED").await;
    let health = service.health(&endpoint).await;
    assert_eq!((&health["jobs"]["failed"], &health["jobs"]["retried"]), (&json!(2), &json!(1)));
    let steps = json!({ "progress": ["half", "nearly"], "sleep_ms": 400 });
    let job = service.run(&endpoint, steps).await;
    let running = service.until(&endpoint, &job, "IN_PROGRESS").await;
    assert!(running.get("executionTime").is_none(), "{running}");
    for _ in 0..100 {
        let shown = get(&service, &format!("{endpoint}/status/{job}")).await.1;
        if shown["output"] == "nearly" {
            assert_eq!(shown["status"], "IN_PROGRESS");
            break;
        }
    }
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    let (status, refused) = post(&service, &format!("{endpoint}/retry/{job}"), json!({})).await;
    assert_eq!(status, 400, "{refused} {done}");
}

#[tokio::test]
async fn cancelling_queued_and_running_jobs() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let running = service.run(&endpoint, json!({ "sleep_ms": 60_000 })).await;
    let queued = service.run(&endpoint, json!({})).await;
    let after = service.run(&endpoint, json!({ "after": 1 })).await;
    service.until(&endpoint, &running, "IN_PROGRESS").await;
    for job in [&queued, &running] {
        let asked = Instant::now();
        let (status, answer) = post(&service, &format!("{endpoint}/cancel/{job}"), json!({})).await;
        assert_eq!((status, answer), (200, json!({ "id": job, "status": "CANCELLED" })));
        assert!(asked.elapsed() < Duration::from_millis(500));
    }
    // The worker is free again, and was not replaced.
    let workers = service.pods(&endpoint).await;
    service.until(&endpoint, &after, "COMPLETED").await;
    assert_eq!(service.pods(&endpoint).await, workers);
    let again = post(&service, &format!("{endpoint}/cancel/{queued}"), json!({})).await;
    assert_eq!((again.0, &again.1["status"]), (200, &json!("CANCELLED")));
    assert_eq!(post(&service, &format!("{endpoint}/cancel/{after}"), json!({})).await.0, 400);
    assert_eq!(post(&service, &format!("{endpoint}/retry/{running}"), json!({})).await.0, 400);
    assert_eq!(service.health(&endpoint).await["jobs"]["completed"], 1);
}

#[tokio::test]
async fn purging_leaves_running_jobs_alone() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let running = service.run(&endpoint, json!({ "sleep_ms": 500 })).await;
    service.until(&endpoint, &running, "IN_PROGRESS").await;
    let queued = [service.run(&endpoint, json!({})).await, service.run(&endpoint, json!({})).await];
    let purge = format!("{endpoint}/purge-queue");
    let (_, purged) = post(&service, &purge, json!({})).await;
    assert_eq!(purged, json!({ "removed": 2, "status": "completed" }));
    for job in queued {
        assert_eq!(get(&service, &format!("{endpoint}/status/{job}")).await.0, 404);
    }
    service.until(&endpoint, &running, "COMPLETED").await;
    assert_eq!(post(&service, &purge, json!({})).await.1["removed"], 0);
    let (status, refused) = post(&service, &purge, json!({})).await;
    assert_eq!(status, 429, "two in ten seconds: {refused}");
}

#[tokio::test]
async fn streams_come_in_both_forms_and_split_what_is_large() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let large = "x".repeat((1 << 20) + 10);
    let input = json!({ "stream": [{ "text": ["a"] }, "b", large], "sleep_ms": 300 });
    let job = service.run(&endpoint, input).await;
    let mut chunks = Vec::new();
    while chunks.len() < 4 {
        let (status, more) = get(&service, &format!("{endpoint}/stream/{job}")).await;
        assert_eq!(status, 200, "{more}");
        chunks.extend(more.as_array().expect("an array").clone());
    }
    assert_eq!(chunks[..2], [json!({ "output": { "text": ["a"] } }), json!({ "output": "b" })]);
    let parts = chunks[2..].iter().map(|chunk| chunk["output"].as_str().unwrap().len());
    assert_eq!(parts.sum::<usize>(), large.len());
    service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(get(&service, &format!("{endpoint}/stream/{job}")).await.1, json!([]));
    let service = Harness::with(|options| {
        options.stream_format = StreamFormat::Object;
        options.timing.stream_hold = Duration::from_millis(300);
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "stream": 2, "sleep_ms": 1000 })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let (_, first) = get(&service, &format!("{endpoint}/stream/{job}")).await;
    assert_eq!(first["status"], "IN_PROGRESS");
    assert_eq!(first["stream"][0], json!({ "output": { "chunk": 0 } }));
    service.until(&endpoint, &job, "COMPLETED").await;
    let mut last = Value::Null;
    for _ in 0..3 {
        last = get(&service, &format!("{endpoint}/stream/{job}")).await.1;
    }
    assert_eq!(last, json!({ "status": "COMPLETED", "stream": [] }));
}

#[tokio::test]
async fn each_client_gets_the_stream_in_the_form_that_it_reads() {
    let of = async |service: &Harness, endpoint: &str, agent: &str| {
        let job = service.run(endpoint, json!({ "stream": 1 })).await;
        service.until(endpoint, &job, "COMPLETED").await;
        let url = format!("{}/{endpoint}/stream/{job}", service.addresses.queue);
        let asked = service.client.get(url).bearer_auth(KEY).header("user-agent", agent);
        asked.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let array = json!([{ "output": { "chunk": 0 } }]);
    let object = json!({ "status": "COMPLETED", "stream": array });
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    assert_eq!(of(&service, &endpoint, "curl/8.5.0").await, array);
    let python = "RunPod-Python-SDK/1.12.0 (Linux 6.8; x86_64) Language/Python 3.12.3";
    for agent in [python, "RunPod-JS-SDK/1.1.2 (Unknown Environment)", "runpod-sdk/0.8.0"] {
        assert_eq!(of(&service, &endpoint, agent).await, object, "{agent}");
    }
    let service = Harness::with(|options| options.stream_format = StreamFormat::Array).await;
    let endpoint = service.endpoint(json!({})).await;
    assert_eq!(of(&service, &endpoint, python).await, array);
}

#[tokio::test]
async fn head_takes_nothing_away() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "stream": 2 })).await;
    service.until(&endpoint, &job, "COMPLETED").await;
    let head = async |path: String| {
        let url = format!("{}/{endpoint}/{path}", service.addresses.queue);
        service.client.head(url).bearer_auth(KEY).send().await.unwrap()
    };
    assert_eq!(head(format!("stream/{job}")).await.status(), 200);
    assert_eq!(head("stream/nothing".to_owned()).await.status(), 404);
    assert_eq!(head(format!("status/{job}?ttl=10000")).await.status(), 200);
    for path in ["openai/v1/models", "job-take/w", "job-stop/w"] {
        let refused = head(path.to_owned()).await;
        assert_eq!(refused.status(), 405, "{path}");
        assert_eq!(refused.headers()["allow"], "GET, POST");
    }
    let chunks = get(&service, &format!("{endpoint}/stream/{job}")).await.1;
    assert_eq!(chunks.as_array().unwrap().len(), 2);
    assert_eq!(service.health(&endpoint).await["jobs"]["completed"], 1);
}

/// A job that kills its workers goes to the end of the queue, is tried twice more, and then fails
/// with the reason. Other jobs run meanwhile.
#[tokio::test]
async fn a_job_that_kills_its_workers_fails_and_starves_nobody() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let service = Harness::with(|options| {
        options.timing.crash_pause = Duration::from_secs(1);
        options.log = Arc::new(move |line| kept.lock().unwrap().push(line.text.to_owned()));
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let poison = service.run(&endpoint, json!({ "crash": true })).await;
    let mut others = Vec::new();
    for number in 0..3 {
        others.push(service.run(&endpoint, json!({ "n": number })).await);
    }
    for job in others {
        let shown = service.until(&endpoint, &job, "COMPLETED").await;
        assert!(shown["delayTime"].as_i64() < Some(5000), "{shown}");
    }
    let shown = service.until(&endpoint, &poison, "FAILED").await;
    let error = shown["error"].as_str().unwrap();
    assert!(error.starts_with("3 workers were lost while they ran this job"), "{error}");
    assert!(error.contains("exit status 134 (signal 6)"), "{error}");
    assert_eq!(shown["retries"], 2);
    // The cause of the crashes is gone, so the next worker starts without a pause.
    let health = service.healthy(&endpoint, |health| health["workers"]["unhealthy"] == 0).await;
    assert_eq!((&health["jobs"]["completed"], &health["jobs"]["failed"]), (&json!(3), &json!(1)));
    assert!(lines.lock().unwrap().contains(&format!("job {poison} failed: {error}")));
    let again = post(&service, &format!("{endpoint}/retry/{poison}"), json!({})).await;
    assert_eq!(again.1["status"], "IN_QUEUE");
    service.until(&endpoint, &poison, "FAILED").await;
}

#[tokio::test]
async fn who_cancels_a_job_that_kills_its_workers_need_not_wait_for_the_next_one() {
    let service = Harness::with(|options| {
        options.timing.crash_pause = Duration::from_mins(1);
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let poison = service.run(&endpoint, json!({ "exit": 3 })).await;
    let crashed =
        |health: &Value| health["jobs"]["retried"] == 1 && health["workers"]["unhealthy"] == 1;
    service.healthy(&endpoint, crashed).await;
    let next = service.run(&endpoint, json!({ "n": 1 })).await;
    post(&service, &format!("{endpoint}/cancel/{poison}"), json!({})).await;
    service.until(&endpoint, &next, "COMPLETED").await;
}

#[tokio::test]
async fn the_execution_timeout_counts_all_runs() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let body = json!({ "input": { "sleep_ms": 3000, "exit": 1 },
        "policy": { "executionTimeout": 5000 } });
    let job = service.submit(&endpoint, body).await;
    let shown = service.until(&endpoint, &job, "TIMED_OUT").await;
    assert!((5000..6500).contains(&shown["executionTime"].as_i64().unwrap()), "{shown}");
    assert_eq!(shown["retries"], 1);
}

#[tokio::test]
async fn a_silent_worker_is_replaced_and_its_job_tried_again() {
    let service = Harness::with(|options| {
        options.timing.silence = Duration::from_millis(2500);
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "silent": true })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let first = service.pods(&endpoint).await;
    service.healthy(&endpoint, |health| health["jobs"]["retried"] == 1).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    assert_ne!(service.pods(&endpoint).await, first);
}

#[tokio::test]
async fn time_runs_out_for_jobs() {
    let service = Harness::with(|options| {
        options.timing.retention = Duration::from_millis(700);
    })
    .await;
    let endpoint = service
        .endpoint(json!({ "workersMax": 2, "scalerType": "REQUEST_COUNT", "scalerValue": 1 }))
        .await;
    let submit = |policy: Value| {
        let (service, endpoint) = (&service, &endpoint);
        async move {
            let body = json!({ "input": { "sleep_ms": 60_000 }, "policy": policy });
            service.submit(endpoint, body).await
        }
    };
    let timed = submit(json!({ "executionTimeout": 5000 })).await;
    let lived = submit(json!({ "ttl": 10_000 })).await;
    let kept = service.run(&endpoint, json!({ "fail": "x" })).await;
    let shown = service.until(&endpoint, &timed, "TIMED_OUT").await;
    assert!((5000..7000).contains(&shown["executionTime"].as_i64().unwrap()), "{shown}");
    service.until(&endpoint, &kept, "FAILED").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for path in [format!("status/{kept}"), format!("stream/{kept}")] {
        assert_eq!(get(&service, &format!("{endpoint}/{path}")).await.0, 404);
    }
    assert_eq!(post(&service, &format!("{endpoint}/retry/{kept}"), json!({})).await.0, 404);
    service.until(&endpoint, &lived, "IN_PROGRESS").await;
    service.healthy(&endpoint, |health| health["jobs"]["inProgress"] == 0).await;
    assert_eq!(get(&service, &format!("{endpoint}/status/{lived}")).await.0, 404);
    assert_eq!(service.health(&endpoint).await["jobs"]["failed"], 2);
}

#[tokio::test]
async fn bad_requests_get_documented_errors_and_hurt_nobody() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    let run = format!("{endpoint}/run");
    for body in [
        json!({}),
        json!([]),
        json!({ "input": null }),
        json!({ "input": [1] }),
        json!({ "input": "text" }),
        json!({ "input": {}, "policy": { "ttl": 1 } }),
        json!({ "input": {}, "policy": { "executionTimeout": 604_800_001 } }),
        json!({ "input": {}, "webhook": "nowhere" }),
    ] {
        let (status, answer) = post(&service, &run, body.clone()).await;
        assert_eq!(status, 400, "{body} {answer}");
    }
    for wait in ["999", "300001", "x", "-5"] {
        let path = format!("{endpoint}/runsync?wait={wait}");
        assert_eq!(post(&service, &path, json!({ "input": {} })).await.0, 400, "{wait}");
    }
    let job = service.run(&endpoint, json!({})).await;
    assert_eq!(get(&service, &format!("{endpoint}/status/{job}?ttl=9999")).await.0, 400);
    assert_eq!(get(&service, &format!("{endpoint}/status/{job}?ttl=60000")).await.0, 200);
    for path in [
        "nothing/health",
        "nothing/status/x",
        &format!("{endpoint}/status/x"),
        &format!("{endpoint}/nothing"),
    ] {
        assert_eq!(get(&service, path).await.0, 404, "{path}");
    }
    assert_eq!(post(&service, "nothing/run", json!({ "input": {} })).await.0, 404);
    assert_eq!(get(&service, &run).await.0, 405);
    let url = format!("{}/{run}", service.addresses.queue);
    for key in ["wrong", "Bearer wrong", ""] {
        let sent = service.client.post(&url).header("authorization", key).body("{}").send().await;
        assert_eq!(sent.unwrap().status(), 401);
    }
    let malformed = service.client.post(&url).bearer_auth(KEY).body("{").send().await.unwrap();
    assert_eq!(malformed.status(), 400);
    let fits = json!({ "input": { "x": "y".repeat(9 << 20) } });
    assert_eq!(post(&service, &run, fits).await.0, 200);
    let large = json!({ "input": { "x": "y".repeat(11 << 20) } }).to_string();
    match service.client.post(&url).bearer_auth(KEY).body(large.clone()).send().await {
        Ok(answer) => assert_eq!(answer.status(), 400),
        // The service may stop reading before the client has written everything.
        Err(error) => assert!(error.is_request(), "{error:?}"),
    }
    let sync = format!("{}/{endpoint}/runsync?wait=1000", service.addresses.queue);
    let sent = service.client.post(sync).bearer_auth(KEY).body(large).send().await.unwrap();
    assert_eq!(sent.status(), 200, "20 MB are the limit here");
    assert_eq!(service.health(&endpoint).await["jobs"]["inQueue"], 3);
}

#[tokio::test]
async fn results_that_are_too_large_or_binary_talk_fail_alone() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "output_bytes": 21 << 20 })).await;
    let failed = service.until(&endpoint, &job, "FAILED").await;
    assert!(failed["error"].as_str().unwrap().contains("larger than 20 MB"), "{failed}");
    let job = service.run(&endpoint, json!({ "log_bytes": 100_000_000, "log": "begin" })).await;
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    let worker = done["workerId"].as_str().unwrap();
    let log = service.data.join("logs").join(format!("{endpoint}.{worker}.log"));
    assert!((1..70 << 20).contains(&log.metadata().unwrap().len()));
}

#[tokio::test]
async fn a_result_that_never_arrives_is_worked_for_again() {
    let service = Harness::with(|options| {
        options.timing.silence = Duration::from_millis(2500);
        // A worker tries three times, and once more when a kept connection fails.
        options.faults = vec!["op=POST /job-done,times=4,kind=cut".parse().unwrap()];
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let job = service.run(&endpoint, json!({ "n": 1 })).await;
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(done["retries"], 1, "{done}");
}

#[tokio::test]
async fn faults_and_the_access_log_reach_the_job_api() {
    let service = Harness::with(|options| {
        options.faults = vec![
            "op=POST /run,nth=1,kind=lost".parse().unwrap(),
            "op=POST /cancel,kind=error500-before".parse().unwrap(),
        ];
    })
    .await;
    let endpoint = service.endpoint(json!({})).await;
    let url = format!("{}/{endpoint}/run", service.addresses.queue);
    let lost =
        service.client.post(&url).bearer_auth(KEY).json(&json!({ "input": {} })).send().await;
    assert!(lost.is_err());
    let job = service.run(&endpoint, json!({})).await;
    service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(service.health(&endpoint).await["jobs"]["completed"], 2, "what was lost was done");
    assert_eq!(post(&service, &format!("{endpoint}/cancel/{job}"), json!({})).await.0, 500);
    let log = service.access_log();
    let runs: Vec<_> = log.iter().filter(|entry| entry["operation"] == "POST /run").collect();
    assert_eq!((&runs[0]["status"], &runs[1]["status"]), (&json!(0), &json!(200)));
    assert_eq!((&runs[1]["object"], &runs[1]["mutating"]), (&json!(job), &json!(true)));
    assert_eq!(runs[1]["path"], format!("/v2/{endpoint}/run"));
    assert!(log.iter().all(|entry| !entry["path"].as_str().unwrap().contains("job-take")));
}

#[tokio::test]
async fn calls_of_openai_pass_through_to_a_worker() {
    let service = Harness::start().await;
    let endpoint = service.endpoint(json!({})).await;
    let path = format!("{endpoint}/openai/v1/chat/completions");
    // The echo worker answers with its input, so the answer shows the worker's input.
    let body = json!({ "model": "m", "messages": [] });
    let (status, given) = service.queue(Method::POST, &path, Some(body.clone())).await;
    assert_eq!(status, 200, "{given}");
    assert_eq!(given, json!({ "openai_route": "/v1/chat/completions", "openai_input": body }));
    let models = format!("{endpoint}/openai/v1/models");
    let (status, given) = service.queue(Method::GET, &models, None).await;
    assert_eq!((status.as_u16(), &given["openai_route"]), (200, &json!("/v1/models")));
    let url = format!("{}/{path}", service.addresses.queue);
    let asked = service.client.post(url).bearer_auth(KEY).json(&json!({ "stream": true, "n": 1 }));
    let streamed = asked.send().await.unwrap();
    assert_eq!(streamed.headers()["content-type"], "text/event-stream");
    // This worker has not streamed anything, so its output is the only event.
    let events = streamed.text().await.unwrap();
    assert!(events.starts_with("data: {") && events.ends_with("}\n\n"), "{events}");
    assert!(events.contains("\"n\":1"), "{events}");
    for (body, status) in [(json!([1]), 400), (json!("x"), 400)] {
        assert_eq!(service.queue(Method::POST, &path, Some(body)).await.0, status);
    }
    let (status, _) =
        service.queue(Method::POST, "nowhere/openai/v1/models", Some(json!({}))).await;
    assert_eq!(status, 404);
    let refused = service.client.get(format!("{}/{models}", service.addresses.queue)).send().await;
    assert_eq!(refused.unwrap().status(), 401);
}
