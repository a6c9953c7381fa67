//! A test that ends the service and its workers with `kill -9` again and again, while clients
//! submit jobs, cancel them and wait for them. No accepted job is lost, and each job ends once.
//!
//! `SERVICE_TEST_KILLS=20` kills twenty times; without the variable there are three kills.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::harness::{KEY, client};
use crate::killed::Alone;
use crate::scaling::marked;

const ENDPOINTS: usize = 3;
const WORKERS: i64 = 2;
const CLIENTS: usize = 12;

/// The longest time for the last jobs to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// The knowledge of a client about its accepted job.
#[derive(Debug, Clone)]
struct Accepted {
    endpoint: String,
    input: Value,
    /// True if a cancel was sent, with or without an answer.
    may_be_cancelled: bool,
    /// The result, if the client got one; else `None`.
    seen: Option<Value>,
}

/// The accepted jobs, by id.
type Record = Arc<Mutex<BTreeMap<String, Accepted>>>;

/// Random numbers that differ from run to run.
#[derive(Clone)]
struct Chance(RandomState, u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.1 += 1;
        self.0.hash_one(self.1) % limit
    }
}

/// A client that submits jobs to the service, whose address changes with each start.
struct Submitter {
    address: watch::Receiver<Option<String>>,
    http: reqwest::Client,
    endpoint: String,
    record: Record,
    chance: Chance,
    number: u64,
}

impl Submitter {
    /// Submits jobs until there is no service any more.
    async fn run(mut self) {
        loop {
            let address = self.address.borrow_and_update().clone();
            let Some(address) = address else { return };
            if self.one(&address).await.is_none() && self.address.borrow().is_some() {
                // The service was killed. The next one has another address.
                let renewed = tokio::time::timeout(PATIENCE, self.address.changed()).await;
                renewed.expect("the service starts again").unwrap();
            }
        }
    }

    /// Submits one job. Returns `None` if the service was gone before it answered.
    async fn one(&mut self, address: &str) -> Option<()> {
        self.number += 1;
        let mut input = json!({ "number": self.number, "sleep_ms": self.chance.below(15) });
        if self.chance.below(10) == 0 {
            input["fail"] = json!("as it was told");
        }
        let base = format!("{address}/{}", self.endpoint);
        let waits = self.chance.below(3) == 0;
        // The results are kept until the end of the test.
        let path = if waits { "runsync?wait=300000" } else { "run" };
        let answer = self.post(format!("{base}/{path}"), &json!({ "input": input })).await?;
        let id = answer["id"].as_str().unwrap().to_owned();
        let is_over = waits && answer.get("workerId").is_some();
        let accepted = Accepted {
            endpoint: self.endpoint.clone(),
            input,
            may_be_cancelled: false,
            seen: is_over.then(|| answer.clone()),
        };
        self.record.lock().unwrap().insert(id.clone(), accepted);
        if !waits && self.chance.below(8) == 0 {
            self.change(&id, |job| job.may_be_cancelled = true);
            let answer = self.post(format!("{base}/cancel/{id}"), &json!({})).await?;
            if answer["status"] == "CANCELLED" {
                let shown = self.get(format!("{base}/status/{id}")).await?;
                self.change(&id, |job| job.seen = Some(shown));
            }
        }
        Some(())
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Accepted)) {
        change(self.record.lock().unwrap().get_mut(id).unwrap());
    }

    /// Sends a POST. Returns null if it was refused, for example the cancel of an ended job;
    /// returns `None` if there was no answer.
    async fn post(&self, url: String, body: &Value) -> Option<Value> {
        let sent = self.http.post(url).bearer_auth(KEY).json(body).send().await.ok()?;
        assert!(sent.status() != 404 && sent.status().as_u16() < 500, "{}", sent.status());
        if sent.status().is_success() { sent.json().await.ok() } else { Some(Value::Null) }
    }

    async fn get(&self, url: String) -> Option<Value> {
        let sent = self.http.get(url).bearer_auth(KEY).send().await.ok()?;
        assert!(sent.status().is_success(), "{}", sent.status());
        sent.json().await.ok()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_job_ends_once_however_often_the_service_is_killed() {
    let kills = std::env::var("SERVICE_TEST_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let (folder, mut chance) = (TempDir::new().unwrap(), Chance(RandomState::new(), 0));
    let mut service = Alone::without_rates(folder.path()).await;
    let mut endpoints = Vec::new();
    for number in 0..ENDPOINTS {
        endpoints.push(service.named_endpoint(&format!("load{number}"), WORKERS).await);
    }
    let record = Record::default();
    let (address, known) = watch::channel(Some(service.queue.clone()));
    let clients: Vec<JoinHandle<()>> = (0..CLIENTS)
        .map(|number| {
            let submitter = Submitter {
                address: known.clone(),
                http: client(),
                endpoint: endpoints[number % ENDPOINTS].clone(),
                record: Arc::clone(&record),
                chance: Chance(RandomState::new(), 0),
                number: 0,
            };
            tokio::spawn(submitter.run())
        })
        .collect();
    let mut workers_killed = 0;
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(chance.below(700))).await;
        if chance.below(2) == 0 {
            workers_killed += usize::from(kill_a_worker(&endpoints, &mut chance));
            tokio::time::sleep(Duration::from_millis(chance.below(100))).await;
        }
        service.kill();
        service = Alone::without_rates(folder.path()).await;
        address.send_replace(Some(service.queue.clone()));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    address.send_replace(None);
    for client in clients {
        client.await.unwrap();
    }
    let record = record.lock().unwrap().clone();
    let ended = check_jobs(&service, &record).await;
    for endpoint in &endpoints {
        empty(&service, endpoint).await;
    }
    service.kill();
    let rows = check_record(folder.path(), &record);
    eprintln!(
        "{kills} kills of the service, {workers_killed} of workers: {} jobs accepted, {ended:?}; \
         {} more in the record whose answer was cut off",
        record.len(),
        rows - record.len()
    );
}

/// Kills one worker of these endpoints. Returns false if none runs.
fn kill_a_worker(endpoints: &[String], chance: &mut Chance) -> bool {
    let endpoint = &endpoints[usize::try_from(chance.below(ENDPOINTS as u64)).unwrap()];
    let processes = marked(&format!("RUNPOD_ENDPOINT_ID={endpoint}"));
    let Some(process) = processes.first() else { return false };
    let killed = std::process::Command::new("kill").args(["-9", process]).status();
    killed.unwrap().success()
}

/// Checks that every accepted job has ended in the state that its input demands and that its client
/// saw. Returns the number of jobs in each state.
async fn check_jobs(
    service: &Alone,
    record: &BTreeMap<String, Accepted>,
) -> BTreeMap<String, usize> {
    let (until, mut ended) = (Instant::now() + PATIENCE, BTreeMap::new());
    for (id, job) in record {
        let path = format!("{}/{}/status-sync/{id}?wait=20000", service.queue, job.endpoint);
        let shown = service.get(path).await;
        let state = shown["status"].as_str().unwrap_or_else(|| panic!("{id} is lost: {shown}"));
        match state {
            "COMPLETED" => assert_eq!(shown["output"], job.input, "{shown}"),
            "FAILED" => {
                let told = job.input.get("fail") == shown.get("error");
                let lost = shown["error"].as_str().unwrap().starts_with("3 workers were lost");
                assert!(told || lost, "{shown}");
            }
            "CANCELLED" => assert!(job.may_be_cancelled, "{shown}"),
            _ => panic!("{id} does not end: {shown}"),
        }
        if let Some(seen) = &job.seen {
            assert_eq!(seen, &shown, "{id} has ended twice");
        }
        *ended.entry(state.to_owned()).or_default() += 1;
        assert!(Instant::now() < until, "the last jobs take too long");
    }
    ended
}

/// Waits until an endpoint has no unfinished job, including the jobs whose client never got an
/// answer.
async fn empty(service: &Alone, endpoint: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let jobs = service.get(format!("{}/{endpoint}/health", service.queue)).await["jobs"].take();
        if (&jobs["inQueue"], &jobs["inProgress"]) == (&json!(0), &json!(0)) {
            return;
        }
        assert!(Instant::now() < until, "{jobs}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that the store contains each accepted job once, and has counted each end once. Returns
/// the number of its jobs.
fn check_record(folder: &std::path::Path, record: &BTreeMap<String, Accepted>) -> usize {
    let conn = rusqlite::Connection::open(folder.join("service.db")).unwrap();
    let mut statement = conn.prepare("select id, state from jobs").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (mut found, mut states) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let (id, state): (String, String) = row.unwrap();
        *states.entry(state.clone()).or_insert(0i64) += 1;
        assert!(found.insert(id, state).is_none());
    }
    for id in record.keys() {
        assert!(found.contains_key(id), "{id} was accepted and is lost");
    }
    let sql = "select sum(completed), sum(failed) from tallies";
    let tallies = conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let count = |state: &str| states.get(state).copied().unwrap_or(0);
    assert_eq!((count("COMPLETED"), count("FAILED")), tallies, "each end is counted once");
    assert_eq!((count("IN_QUEUE"), count("IN_PROGRESS")), (0, 0));
    found.len()
}
