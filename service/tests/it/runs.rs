//! Tests of the runs of a job. A worker that takes several jobs may have two runs of the same job,
//! which must not be confused.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY};

/// A worker whose calls are made by the test. The process that the service started for it only
/// sleeps.
struct ByHand {
    channel: String,
    id: String,
    token: String,
}

impl ByHand {
    async fn start(service: &Harness) -> (String, ByHand) {
        let volume = service.volume("v", 1).await;
        let script = "echo $RUNPOD_POD_ID $RUNPOD_AI_API_KEY $RUNPOD_WEBHOOK_GET_JOB \
                      > $RUNPOD_VOLUME/new; mv $RUNPOD_VOLUME/new $RUNPOD_VOLUME/out; sleep 300";
        let template = json!({ "name": "shell", "imageName": "none",
            "dockerEntrypoint": ["sh", "-c"], "dockerStartCmd": [script] });
        let template = service.post("/templates", template).await["id"].take();
        let settings =
            json!({ "templateId": template, "workersMin": 1, "networkVolumeId": volume });
        let endpoint = service.endpoint(settings).await;
        let out = service.data.join("volumes").join(&volume).join("out");
        for _ in 0..400 {
            if out.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let said = std::fs::read_to_string(&out).unwrap();
        let words: Vec<&str> = said.split_whitespace().collect();
        let (channel, _) = words[2].split_once("/job-take/").unwrap();
        let by_hand = ByHand {
            channel: channel.to_owned(),
            id: words[0].to_owned(),
            token: words[1].to_owned(),
        };
        (endpoint, by_hand)
    }

    fn url(&self, call: &str, rest: &str) -> String {
        let Self { channel, id, token } = self;
        let and = if rest.contains('?') { '&' } else { '?' };
        format!("{channel}/{call}/{id}{rest}{and}token={token}")
    }

    /// Takes the next job, and returns its id.
    async fn take(&self, service: &Harness) -> String {
        let got = service.client.get(self.url("job-take", "")).send().await.unwrap();
        got.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Streams a part of the output.
    async fn part(&self, service: &Harness, job: &str, output: Value) {
        let url = self.url("job-stream", &format!("/{job}"));
        let sent = service.client.post(url).json(&json!({ "output": output })).send().await;
        assert_eq!(sent.unwrap().status(), 200);
    }

    /// Sends pings that name no job, until the worker's jobs are in the queue again.
    async fn lose(&self, service: &Harness, endpoint: &str, retried: i64) {
        while service.health(endpoint).await["jobs"]["retried"] != retried {
            service.client.get(self.url("ping", "")).send().await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn done(&self, service: &Harness, job: &str, output: Value) {
        let url = self.url("job-done", &format!("/{job}"));
        let sent = service.client.post(url).json(&json!({ "output": output })).send().await;
        assert_eq!(sent.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_late_result_of_a_run_that_timed_out_is_not_that_of_the_next_one() {
    let service = Harness::start().await;
    let (endpoint, worker) = ByHand::start(&service).await;
    let body = json!({ "input": {}, "policy": { "executionTimeout": 5000 } });
    let job = service.submit(&endpoint, body).await;
    assert_eq!(worker.take(&service).await, job);
    service.until(&endpoint, &job, "TIMED_OUT").await;
    service.queue(Method::POST, &format!("{endpoint}/retry/{job}"), Some(json!({}))).await;
    let first_run_ends = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (_, shown) =
            service.queue(Method::GET, &format!("{endpoint}/status/{job}"), None).await;
        assert_eq!(shown["status"], "IN_QUEUE", "its only worker still runs it: {shown}");
        worker.done(&service, &job, json!({ "run": 1 })).await;
    };
    let (again, ()) = tokio::join!(worker.take(&service), first_run_ends);
    assert_eq!(again, job);
    let shown = service.until(&endpoint, &job, "IN_PROGRESS").await;
    assert_eq!(shown.get("output"), None);
    // The order to stop was about the first run. It was never fetched, and is gone.
    let order = service.client.get(worker.url("job-stop", "")).timeout(Duration::from_millis(300));
    assert!(order.send().await.is_err_and(|error| error.is_timeout()));
    worker.done(&service, &job, json!({ "run": 2 })).await;
    let shown = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(shown["output"], json!({ "run": 2 }));
}

#[tokio::test]
async fn an_answer_has_no_part_of_a_run_that_was_cut_off() {
    let service = Harness::with(|options| options.timing.silence = Duration::from_secs(1)).await;
    let (endpoint, worker) = ByHand::start(&service).await;
    let url = format!("{}/{endpoint}/openai/v1/completions", service.addresses.queue);
    let (mut said, mut retried) = (Vec::new(), 0);
    for stream in [false, true] {
        retried += 1;
        let call = service.client.post(&url).bearer_auth(KEY).json(&json!({ "stream": stream }));
        let asking = async { call.send().await.unwrap().text().await.unwrap() };
        let working = async {
            let job = worker.take(&service).await;
            worker.part(&service, &job, json!({ "a": 1 })).await;
            // After this time the client that waits for the answer has this part.
            tokio::time::sleep(Duration::from_millis(300)).await;
            worker.lose(&service, &endpoint, retried).await;
            assert_eq!(worker.take(&service).await, job);
            worker.part(&service, &job, json!({ "a": 1 })).await;
            worker.done(&service, &job, json!([])).await;
        };
        said.push(tokio::join!(asking, working).0);
    }
    assert_eq!(said[0], r#"{"a":1}"#);
    let (sent, rest) = said[1].split_once("\n\n").unwrap();
    assert_eq!(sent, r#"data: {"a":1}"#);
    // The part of the first run was sent, and cannot be taken back.
    assert!(rest.contains("cut off") && rest.matches("data:").count() == 1, "{rest}");
}
