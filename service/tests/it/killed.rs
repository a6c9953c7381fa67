//! Tests that end the service with `kill -9`: nothing that was accepted is lost, and no worker
//! lives on.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use crate::harness::{KEY, client};
use crate::scaling::processes;

/// A process that is killed at the end of its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A service in a process of its own.
pub(crate) struct Alone {
    process: Process,
    rest: String,
    pub(crate) queue: String,
    client: reqwest::Client,
}

impl Alone {
    async fn start(folder: &Path) -> Alone {
        Alone::start_by(Command::new(env!("CARGO_BIN_EXE_service-alone")), folder).await
    }

    /// Starts a service without limits on the rates of requests.
    pub(crate) async fn without_rates(folder: &Path) -> Alone {
        Alone::with_variable(&("SERVICE_NO_RATES", "1".into()), folder).await
    }

    /// Starts a service with one more variable in its environment.
    pub(crate) async fn with_variable(variable: &(&str, OsString), folder: &Path) -> Alone {
        let mut command = Command::new(env!("CARGO_BIN_EXE_service-alone"));
        command.env(variable.0, &variable.1);
        Alone::start_by(command, folder).await
    }

    /// Starts a service that may have only so many descriptors.
    async fn with_descriptors(count: usize, folder: &Path) -> Alone {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {count} && exec \"$0\" \"$@\"");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_service-alone")]);
        Alone::start_by(command, folder).await
    }

    async fn start_by(mut command: Command, folder: &Path) -> Alone {
        let path = folder.join("serve.json");
        drop(std::fs::remove_file(&path));
        let process = Process(command.arg("serve").arg(folder).arg(KEY).spawn().unwrap());
        for _ in 0..400 {
            if let Ok(text) = std::fs::read(&path) {
                let told: Value = serde_json::from_slice(&text).unwrap();
                let url = |name: &str| told[name].as_str().unwrap().to_owned();
                let (rest, queue) = (url("rest_url"), url("queue_url"));
                return Alone { process, rest, queue, client: client() };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not start");
    }

    /// Returns the memory of the service, in MB.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.0.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }

    pub(crate) fn kill(self) {
        drop(self.process);
    }

    pub(crate) async fn post(&self, url: String, body: &Value) -> Option<Value> {
        let sent = self.client.post(url).bearer_auth(KEY).json(body).send().await.ok()?;
        assert!(sent.status().is_success(), "{}", sent.status());
        sent.json().await.ok()
    }

    pub(crate) async fn get(&self, url: String) -> Value {
        self.client.get(url).bearer_auth(KEY).send().await.unwrap().json().await.unwrap()
    }

    async fn endpoint(&self, workers: i64) -> String {
        self.named_endpoint(&format!("chat{workers}"), workers).await
    }

    /// Makes an endpoint with this name and so many workers. Returns its id.
    pub(crate) async fn named_endpoint(&self, name: &str, workers: i64) -> String {
        let template = json!({ "name": name, "imageName": "echo", "isServerless": true });
        self.endpoint_of(template, workers).await
    }

    /// Makes an endpoint with this template, its name, and so many workers. Returns its id.
    pub(crate) async fn endpoint_of(&self, template: Value, workers: i64) -> String {
        let name = template["name"].clone();
        let template = self.post(format!("{}/templates", self.rest), &template).await.unwrap();
        let body = json!({ "name": name, "templateId": template["id"], "workersMin": workers,
            "workersMax": workers, "gpuTypeIds": ["NVIDIA L4"] });
        let made = self.post(format!("{}/endpoints", self.rest), &body).await.unwrap();
        made["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn accepted_jobs_survive_and_workers_do_not() {
    let folder = TempDir::new().unwrap();
    let mut service = Alone::start(folder.path()).await;
    let endpoint = service.endpoint(2).await;
    let mut accepted = Vec::new();
    for round in 0..3 {
        for number in 0..30 {
            let input = json!({ "sleep_ms": 30, "number": accepted.len(), "round": round });
            let url = format!("{}/{endpoint}/run", service.queue);
            let made = service.post(url, &json!({ "input": input })).await.unwrap();
            accepted.push((made["id"].as_str().unwrap().to_owned(), input));
            if number == 20 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let query = json!({ "query": "{ myself { endpoints { pods { id } } } }" });
        let graphql = format!("{}?api_key={KEY}", service.rest.replace("/v1", "/graphql"));
        let shown = service.post(graphql, &query).await.unwrap();
        let pods = shown["data"]["myself"]["endpoints"][0]["pods"].as_array().unwrap().clone();
        assert_eq!(pods.len(), 2, "{shown}");
        service.kill();
        let alive =
            || -> usize { pods.iter().map(|pod| processes(pod["id"].as_str().unwrap())).sum() };
        for _ in 0..100 {
            if alive() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(alive(), 0, "workers outlive the service");
        service = Alone::start(folder.path()).await;
    }
    for (id, input) in &accepted {
        let url = format!("{}/{endpoint}/status-sync/{id}?wait=20000", service.queue);
        let done = service.get(url).await;
        assert_eq!((&done["status"], &done["output"]), (&json!("COMPLETED"), input), "{done}");
    }
    let health = service.get(format!("{}/{endpoint}/health", service.queue)).await;
    assert_eq!(health["jobs"]["completed"], accepted.len());
    assert_eq!(health["jobs"]["inQueue"], 0);
}

#[tokio::test]
async fn the_queue_keeps_its_order() {
    let folder = TempDir::new().unwrap();
    let service = Alone::start(folder.path()).await;
    let endpoint = service.endpoint(0).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        let url = format!("{}/{endpoint}/run", service.queue);
        ids.push(service.post(url, &json!({ "input": {} })).await.unwrap()["id"].take());
    }
    service.kill();
    let service = Alone::start(folder.path()).await;
    let url = format!("{}/endpoints/{endpoint}", service.rest);
    let change = json!({ "workersMin": 1, "workersMax": 1 });
    let changed = service.client.patch(url).bearer_auth(KEY).json(&change).send().await.unwrap();
    assert!(changed.status().is_success());
    let last = ids[9].as_str().unwrap();
    service.get(format!("{}/{endpoint}/status-sync/{last}?wait=10000", service.queue)).await;
    let mut delays = Vec::new();
    for id in &ids {
        let url = format!("{}/{endpoint}/status/{}", service.queue, id.as_str().unwrap());
        let shown = service.get(url).await;
        assert_eq!(shown["status"], "COMPLETED", "{shown}");
        delays.push(shown["executionTime"].as_i64().unwrap());
    }
    drop(service);
    let conn = rusqlite::Connection::open(folder.path().join("service.db")).unwrap();
    let mut statement = conn.prepare("select id from jobs order by started_at, seq").unwrap();
    let order: Vec<Value> = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .map(|id| json!(id.unwrap()))
        .collect();
    assert_eq!(order, ids);
}

#[tokio::test]
async fn every_accepted_volume_survives_writers_that_are_cut_off() {
    let folder = TempDir::new().unwrap();
    let service = Alone::start(folder.path()).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (client, url) =
                (service.client.clone(), format!("{}/networkvolumes", service.rest));
            tokio::spawn(async move {
                let mut made = Vec::new();
                for number in 0.. {
                    let name = format!("{writer}-{number}");
                    let body = json!({ "name": name, "size": 1, "dataCenterId": "EU-RO-1" });
                    let sent = client.post(&url).bearer_auth(KEY).json(&body).send().await;
                    let Ok(answer) = sent else { break };
                    let Ok(volume) = answer.json::<Value>().await else { break };
                    made.push(volume);
                }
                made
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(700)).await;
    service.kill();
    let mut made = Vec::new();
    for writer in writers {
        made.extend(writer.await.unwrap());
    }
    assert!(made.len() > 20, "{}", made.len());
    let service = Alone::start(folder.path()).await;
    let listed = service.get(format!("{}/networkvolumes", service.rest)).await;
    let listed = listed.as_array().unwrap();
    for volume in &made {
        assert!(listed.contains(volume), "{volume} was accepted and is lost");
    }
    // Each writer had at most one unanswered write when the service was killed.
    assert!(listed.len() <= made.len() + 8, "{} {}", listed.len(), made.len());
}

/// Clients that hold more idle connections than the service may have descriptors keep no other
/// client out.
#[tokio::test]
async fn whoever_says_nothing_keeps_nobody_out() {
    let folder = TempDir::new().unwrap();
    let service = Alone::with_descriptors(128, folder.path()).await;
    let host = service.rest.strip_prefix("http://").unwrap().trim_end_matches("/v1").to_owned();
    // A client whose connection is in use is not cut.
    let endpoint = service.endpoint(1).await;
    let long = json!({ "input": { "sleep_ms": 1500 } });
    let long = service.post(format!("{}/{endpoint}/runsync", service.queue), &long);
    let crowd = async {
        let mut crowd = Vec::new();
        for number in 0..300 {
            let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
            if number % 3 == 1 {
                drop(stream.write_all(b"GET /v1/templates HTTP/1.1\r\nHost: x\r\n").await);
            } else if number % 3 == 2 {
                drop(stream.write_all(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n").await);
            }
            crowd.push(stream);
        }
        let asked = Instant::now();
        let other = client().get(format!("{}/templates", service.rest)).bearer_auth(KEY);
        assert_eq!(other.send().await.unwrap().status(), 200);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        crowd
    };
    let (long, crowd) = tokio::join!(long, crowd);
    assert_eq!(long.unwrap()["status"], "COMPLETED");
    // New workers can start too.
    let second = service.endpoint(2).await;
    let job = json!({ "input": { "x": 1 } });
    let job = service.post(format!("{}/{second}/runsync", service.queue), &job).await;
    assert_eq!(job.unwrap()["status"], "COMPLETED");
    drop(crowd);
}

/// Two hundred clients that ask for a large result and do not read it take little memory of the
/// service.
#[tokio::test]
async fn answers_that_nobody_reads_take_little_memory() {
    let folder = TempDir::new().unwrap();
    let service = Alone::start(folder.path()).await;
    let endpoint = service.endpoint(1).await;
    let large = json!({ "input": { "output_bytes": 19 << 20 } });
    let job = service.post(format!("{}/{endpoint}/run", service.queue), &large).await.unwrap();
    let id = job["id"].as_str().unwrap();
    let url = format!("{}/{endpoint}/status/{id}", service.queue);
    while service.get(url.clone()).await["status"] != "COMPLETED" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let host = service.rest.strip_prefix("http://").unwrap().trim_end_matches("/v1").to_owned();
    let before = service.memory();
    let mut deaf = Vec::new();
    for _ in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
        let asked = format!(
            "GET /v2/{endpoint}/status/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: {KEY}\r\n\r\n"
        );
        stream.write_all(asked.as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    let mut most = 0;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(service.memory());
    }
    assert!(most < before + 100, "{before} MB before, {most} MB then");
    eprintln!("{before} MB before, at most {most} MB with 200 who do not read");
    let whole = service.get(url).await;
    assert_eq!(whole["output"].as_str().map(str::len), Some(19 << 20));
}
