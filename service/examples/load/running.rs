//! A service in a process of its own, and its use of memory and processor time.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::Client;

/// A running service.
pub(crate) struct Service {
    child: Child,
    host: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The processor time, user and system together, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Processor {
    /// The processor time of the service.
    pub(crate) service: f64,
    /// The processor time of its workers and their guards.
    pub(crate) workers: f64,
    /// The processor time of this program.
    pub(crate) load: f64,
}

impl Service {
    /// Starts a service with this data folder, and waits until it answers.
    pub(crate) async fn start(folder: &Path) -> Service {
        let me = std::env::current_exe().unwrap();
        let path = folder.join("serve.json");
        drop(std::fs::remove_file(&path));
        let child = Command::new(me).arg("serve").arg(folder).spawn().unwrap();
        let mut service = Service { child, host: String::new() };
        while service.host.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let Ok(text) = std::fs::read(&path) else { continue };
            let told: Value = serde_json::from_slice(&text).unwrap();
            let url = told["queue_url"].as_str().unwrap();
            url.trim_start_matches("http://").trim_end_matches("/v2").clone_into(&mut service.host);
        }
        service.client().await.get("/v1/templates").await;
        service
    }

    /// Returns a client with a connection of its own.
    pub(crate) async fn client(&self) -> Client {
        Client::open(&self.host).await.unwrap()
    }

    /// Returns the address of the service, `HOST:PORT`.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Makes an endpoint, and waits until all its workers are idle. Returns its id.
    pub(crate) async fn endpoint(&self, name: &str, workers: usize) -> String {
        let mut client = self.client().await;
        let template = json!({ "name": name, "imageName": "echo", "isServerless": true });
        let template = client.post("/v1/templates", &template.to_string()).await;
        let body = json!({ "name": name, "templateId": template["id"], "workersMin": workers,
            "workersMax": workers, "gpuTypeIds": ["NVIDIA L4"] });
        let made = client.post("/v1/endpoints", &body.to_string()).await;
        let id = made["id"].as_str().unwrap().to_owned();
        self.staffed(&id, workers).await;
        id
    }

    /// Waits until so many workers of an endpoint are idle.
    pub(crate) async fn staffed(&self, endpoint: &str, workers: usize) {
        let mut client = self.client().await;
        let path = format!("/v2/{endpoint}/health");
        while client.get(&path).await["workers"]["idle"] != workers {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the memory of the service's process, in megabytes.
    pub(crate) fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }

    /// Returns the processor time that was used so far.
    pub(crate) fn processor(&self) -> Processor {
        let service = self.child.id();
        // A worker is the child of a guard, which is the child of the service.
        let workers = children(service).into_iter().flat_map(|guard| {
            let mut all = children(guard);
            all.push(guard);
            all
        });
        Processor {
            service: seconds(service),
            workers: workers.map(seconds).sum(),
            load: seconds(std::process::id()),
        }
    }
}

fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let lists = tasks.map(|task| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    });
    lists
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

fn seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
