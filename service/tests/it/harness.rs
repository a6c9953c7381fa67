//! The harness of the tests: each test gets a service and a client of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use service::{Addresses, Options};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The key of every service in these tests.
pub(crate) const KEY: &str = "test-key";

/// A running service.
pub(crate) struct Harness {
    pub(crate) addresses: Addresses,
    pub(crate) client: reqwest::Client,
    pub(crate) stop: CancellationToken,
    pub(crate) data: PathBuf,
    pub(crate) running: JoinHandle<()>,
    folder: Option<TempDir>,
}

/// Returns a client that uses no proxy and waits at most 30 seconds for an answer.
pub(crate) fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _already = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap()
}

impl Harness {
    pub(crate) async fn start() -> Harness {
        Harness::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Harness {
        let folder = tempfile::tempdir().unwrap();
        let mut harness = Harness::over(folder.path(), change).await;
        harness.folder = Some(folder);
        harness
    }

    /// Starts a service with this data folder, which remains after the service.
    pub(crate) async fn over(folder: &Path, change: impl FnOnce(&mut Options)) -> Harness {
        let mut options = Options::new(folder.to_owned());
        options.key = Some(KEY.to_owned());
        let alone = env!("CARGO_BIN_EXE_service-alone");
        options.worker_guard = vec![alone.into(), "guard".into()];
        options.echo_worker = vec![alone.into(), "echo".into()];
        options.timing.crash_pause = Duration::from_millis(100);
        options.timing.finish = Duration::ZERO;
        options.timing.ping_interval = Duration::from_secs(1);
        if std::env::var_os("SERVICE_TEST_LOG").is_some() {
            options.verbose = true;
            options.log = Arc::new(|line| eprintln!("{}", line.text));
        }
        change(&mut options);
        let server = service::start(options).await.unwrap();
        let addresses = server.addresses().clone();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { server.run(token).await.unwrap() });
        let data = folder.to_owned();
        Harness { addresses, client: client(), stop, data, running, folder: None }
    }

    /// Stops the service, and waits until it has ended. Returns its data folder; `None` if the
    /// folder belongs to the test.
    pub(crate) async fn stop(self) -> Option<TempDir> {
        self.stop.cancel();
        self.running.await.unwrap();
        self.folder
    }

    /// Sends a REST request. Returns the status and the body of the answer; an empty body is null.
    pub(crate) async fn rest(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let url = format!("{}{path}", self.addresses.rest);
        self.send(method, &url, body).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.client.request(method, url).bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        (status, body)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.rest(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Sends a POST that must succeed. Returns its answer.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.rest(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// Sends a request that must be refused with this status. Returns the message.
    pub(crate) async fn refused(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        status: u16,
    ) -> String {
        let (found, answer) = self.rest(method.clone(), path, body).await;
        assert_eq!(found.as_u16(), status, "{method} {path}: {answer}");
        assert_eq!(answer["status"], status, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    /// Sends a GraphQL request. Returns the status and the body of the answer.
    pub(crate) async fn graphql(&self, query: &str, variables: Value) -> (StatusCode, Value) {
        let url = format!("{}?api_key={KEY}", self.addresses.graphql);
        let body = json!({ "query": query, "variables": variables });
        let response = self.client.post(url).json(&body).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }

    /// Sends a GraphQL request that must succeed. Returns its data.
    pub(crate) async fn data(&self, query: &str, variables: Value) -> Value {
        let (status, mut body) = self.graphql(query, variables).await;
        assert!(status == StatusCode::OK && body.get("errors").is_none(), "{status} {body}");
        body["data"].take()
    }

    /// Sends a GraphQL operation that must fail. Returns the message of its first error.
    pub(crate) async fn fails(&self, query: &str, variables: Value) -> String {
        let (status, body) = self.graphql(query, variables).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["errors"][0]["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    pub(crate) async fn volume(&self, name: &str, size: i64) -> String {
        let body = json!({ "name": name, "size": size, "dataCenterId": "EU-RO-1" });
        self.post("/networkvolumes", body).await["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn template(&self, name: &str) -> String {
        let body = json!({ "name": name, "imageName": "echo:1", "isServerless": true });
        self.post("/templates", body).await["id"].as_str().unwrap().to_owned()
    }

    /// Returns the entries of the access log.
    pub(crate) fn access_log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.data.join("access.log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends a request to the job API. The path begins with the endpoint.
    pub(crate) async fn queue(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let url = format!("{}/{path}", self.addresses.queue);
        self.send(method, &url, body).await
    }

    /// Makes an endpoint with a template of its own, and returns its id. `more` overrides the usual
    /// settings.
    pub(crate) async fn endpoint(&self, more: Value) -> String {
        let name = format!("t-{}", self.access_log().len());
        let template = match more.get("templateId") {
            Some(template) => template.clone(),
            None => json!(self.template(&name).await),
        };
        let mut body = json!({ "name": name, "templateId": template,
            "gpuTypeIds": ["NVIDIA L4"], "workersMax": 1, "idleTimeout": 60 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/endpoints", body).await["id"].as_str().unwrap().to_owned()
    }

    /// Submits a job with this input and returns its id.
    pub(crate) async fn run(&self, endpoint: &str, input: Value) -> String {
        self.submit(endpoint, json!({ "input": input })).await
    }

    /// Submits a job with this body and returns its id.
    pub(crate) async fn submit(&self, endpoint: &str, body: Value) -> String {
        let (status, answer) =
            self.queue(Method::POST, &format!("{endpoint}/run"), Some(body)).await;
        assert_eq!((status.as_u16(), &answer["status"]), (200, &json!("IN_QUEUE")), "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a job is in this state, and returns it.
    pub(crate) async fn until(&self, endpoint: &str, job: &str, state: &str) -> Value {
        let path = format!("{endpoint}/status/{job}");
        let mut last = Value::Null;
        for _ in 0..600 {
            let (status, shown) = self.queue(Method::GET, &path, None).await;
            assert_eq!(status, 200, "{shown}");
            if shown["status"] == state {
                return shown;
            }
            last = shown;
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the job is not {state}: {last}");
    }

    pub(crate) async fn health(&self, endpoint: &str) -> Value {
        self.queue(Method::GET, &format!("{endpoint}/health"), None).await.1
    }

    /// Waits until the health of an endpoint passes the check, and returns it.
    pub(crate) async fn healthy(&self, endpoint: &str, check: impl Fn(&Value) -> bool) -> Value {
        let mut health = Value::Null;
        for _ in 0..400 {
            health = self.health(endpoint).await;
            if check(&health) {
                return health;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the endpoint stays as it is: {health}");
    }

    /// Returns the ids of the workers of an endpoint.
    pub(crate) async fn pods(&self, endpoint: &str) -> Vec<String> {
        let query =
            "query($id: String!) { myself { endpoint(id: $id) { pods { id desiredStatus } } } }";
        let shown = self.data(query, json!({ "id": endpoint })).await;
        let pods = shown["myself"]["endpoint"]["pods"].as_array().unwrap().clone();
        pods.iter().map(|pod| pod["id"].as_str().unwrap().to_owned()).collect()
    }
}
