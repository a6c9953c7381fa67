//! Tests of load balancing endpoints with real workers. The echo worker is an HTTP server there.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use service::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::harness::{Harness, KEY};

const WORKER_ID: &str = "x-runpod-worker-id";

/// The most bytes of a body, in each direction.
const LIMIT: usize = 30 << 20;

/// Makes a load balancing endpoint with at most one worker, and returns its id. `more` overrides
/// the usual settings.
async fn balanced(service: &Harness, more: Value) -> String {
    let mut body = json!({ "name": "balanced", "type": "LOAD_BALANCER", "image": "echo:1",
        "gpu": { "pools": ["ADA_24"] }, "workers": { "max": 1, "idleTimeout": 60 },
        "scaling": { "type": "REQUEST_COUNT", "requestCount": 1 } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, shown) = service.queue(Method::POST, "serverless", Some(body)).await;
    assert_eq!(status, 201, "{shown}");
    shown["id"].as_str().unwrap().to_owned()
}

async fn impatient(change: impl FnOnce(&mut Options)) -> Harness {
    Harness::with(|options| {
        options.timing.health_interval = Duration::from_millis(100);
        options.timing.worker_wait = Duration::from_millis(400);
        options.timing.affinity_wait = Duration::from_millis(400);
        change(options);
    })
    .await
}

/// Returns the address of the service, `127.0.0.1:PORT`.
fn address(service: &Harness) -> String {
    let address = service.addresses.queue.strip_prefix("http://").unwrap();
    address.strip_suffix("/v2").unwrap().to_owned()
}

fn request(service: &Harness, id: &str, path: &str) -> reqwest::RequestBuilder {
    let url = format!("http://{}/lb/{id}{path}", address(service));
    service.client.get(url).bearer_auth(KEY)
}

async fn get(service: &Harness, id: &str, path: &str) -> Response {
    request(service, id, path).send().await.unwrap()
}

async fn answered(service: &Harness, id: &str, path: &str) -> Value {
    let response = get(service, id, path).await;
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

/// Checks that a request is refused with this status, and returns `error` and `message` of the
/// answer.
async fn refusal(response: Response, status: u16) -> (String, String) {
    assert_eq!(response.status().as_u16(), status);
    let body: Value = response.json().await.unwrap();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (text("error"), text("message"))
}

#[tokio::test]
async fn requests_go_to_workers_by_path_and_by_host() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    assert!(service.pods(&id).await.is_empty());
    let response = get(&service, &id, "//a%2Fb/?c=d%20e").await;
    let worker = response.headers()[WORKER_ID].to_str().unwrap().to_owned();
    let shown: Value = response.json().await.unwrap();
    assert_eq!((&shown["method"], &shown["path"]), (&json!("GET"), &json!("//a%2Fb/")));
    assert_eq!((&shown["query"], &shown["worker"]), (&json!("c=d%20e"), &json!(worker)));
    assert_eq!(shown["headers"].get("authorization"), None, "the key is not for workers: {shown}");
    assert_eq!(service.pods(&id).await, [worker]);
    let host = format!("{id}.localhost:8080");
    let by_host = service.client.post(format!("http://{}/v1/endpoints", address(&service)));
    let by_host = by_host.header("host", &host).bearer_auth(KEY).send().await.unwrap();
    let shown: Value = by_host.json().await.unwrap();
    assert_eq!((&shown["method"], &shown["path"]), (&json!("POST"), &json!("/v1/endpoints")));
    assert_eq!(shown["headers"]["host"], host);
    for path in ["", "/"] {
        assert_eq!(answered(&service, &id, path).await["path"], "/");
    }
    let head = service.client.head(format!("http://{}/lb/{id}/x", address(&service)));
    assert_eq!(head.bearer_auth(KEY).send().await.unwrap().status(), 200);
    let echoed = request(&service, &id, "/").body("said").header("content-type", "text/x");
    let echoed = echoed.send().await.unwrap();
    assert_eq!(echoed.headers()["content-type"], "text/x");
    assert_eq!(echoed.text().await.unwrap(), "said");
    let refused = get(&service, &id, "/?status=418").await;
    assert_eq!(refused.status(), 418, "what the worker answers is what the client gets");
    let keyless = service.client.get(format!("http://{}/lb/{id}/", address(&service)));
    let (error, _) = refusal(keyless.send().await.unwrap(), 401).await;
    assert_eq!(error, "unauthorized");
    let mut logged = service.access_log().into_iter().filter(|line| line["operation"] == "GET /lb");
    assert_eq!(logged.next_back().unwrap()["status"], 401);
}

#[tokio::test]
async fn what_is_no_load_balancing_endpoint_is_refused_both_ways() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    for fresh in [true, false] {
        if !fresh {
            // The fleet needs some time until it knows the endpoint.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let run = format!("{id}/run");
        let (status, shown) = service.queue(Method::POST, &run, Some(json!({ "input": {} }))).await;
        assert_eq!(status, 400, "{shown}");
        assert!(shown["error"].as_str().unwrap().contains(&format!("/lb/{id}/")), "{shown}");
    }
    let (status, shown) = service.queue(Method::GET, &format!("{id}/status/x"), None).await;
    assert_eq!(status, 400, "{shown}");
    let queue = service.endpoint(json!({})).await;
    let (error, _) = refusal(get(&service, &queue, "/").await, 400).await;
    assert!(error.contains(&format!("/v2/{queue}/run")), "{error}");
    let (error, _) = refusal(get(&service, "0123456789abcd", "/").await, 404).await;
    assert_eq!(error, "endpoint not found");
}

#[tokio::test]
async fn version_2_names_the_addresses_of_an_endpoint() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({ "env": { "HEALTH_CHECK_PATH": "/ready" } })).await;
    let (_, shown) = service.queue(Method::GET, &format!("serverless/{id}"), None).await;
    let base = shown["requestUrls"]["base"].as_str().unwrap();
    assert_eq!(shown["requestUrls"]["health"], format!("{base}/ready"));
    let health = service.client.get(format!("{base}/ready")).bearer_auth(KEY).send().await;
    assert_eq!(health.unwrap().text().await.unwrap(), "pong");
    let other = service.client.get(format!("{base}/ping")).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(other.json::<Value>().await.unwrap()["path"], "/ping");
}

/// The service gives each worker free ports, and replaces the values that the template sets,
/// because all workers share this machine.
#[tokio::test]
async fn each_worker_has_ports_of_its_own() {
    let service = Harness::start().await;
    let env = json!({ "PORT": "80", "PORT_HEALTH": "81" });
    let id = balanced(&service, json!({ "env": env, "workers": { "min": 2, "max": 2 } })).await;
    service.healthy(&id, |health| health["workers"]["idle"] == 2).await;
    let mut ports = Vec::new();
    for worker in service.pods(&id).await {
        for name in ["PORT", "PORT_HEALTH"] {
            let path = format!("/?environment={name}");
            let asked = request(&service, &id, &path).header(WORKER_ID, format!("strict {worker}"));
            let port: String = asked.send().await.unwrap().json().await.unwrap();
            ports.push(port.parse::<u16>().unwrap());
        }
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 4, "{ports:?}");
    let path = answered(&service, &id, "/?environment=HEALTH_CHECK_PATH").await;
    assert_eq!(path, "/ping");
    let channel = answered(&service, &id, "/?environment=RUNPOD_WEBHOOK_GET_JOB").await;
    assert_eq!(channel, Value::Null, "it has no jobs to take");
}

#[tokio::test]
async fn a_websocket_goes_through_both_ways() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    let url = format!("ws://{id}.localhost/chat");
    let mut asked = url.into_client_request().unwrap();
    let bearer = format!("Bearer {KEY}").parse().unwrap();
    asked.headers_mut().insert("authorization", bearer);
    let stream = TcpStream::connect(address(&service)).await.unwrap();
    let (mut socket, response) = client_async(asked, stream).await.unwrap();
    assert_eq!(response.headers()[WORKER_ID].len(), 14);
    for text in ["first", "second"] {
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(text));
    }
    let large = Message::binary(vec![7; 1 << 20]);
    socket.send(large.clone()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), large);
    service.healthy(&id, |health| health["workers"]["running"] == 1).await;
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    service.healthy(&id, |health| health["workers"]["idle"] == 1).await;
}

/// The client reads each part of the answer before it sends the next part of the request.
#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    let mut stream = TcpStream::connect(address(&service)).await.unwrap();
    let head = format!(
        "POST /lb/{id}/?duplex=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    for part in ["one", "two", "three"] {
        let chunk = format!("{:x}\r\n{part}\r\n", part.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while !seen.contains(&chunk) {
            assert!(Instant::now() < until, "{seen}");
            let mut more = [0; 1024];
            let count = stream.read(&mut more).await.unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&more[..count]));
        }
    }
    assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
}

#[tokio::test]
async fn the_least_busy_worker_gets_the_request() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({ "workers": { "min": 3, "max": 3 } })).await;
    service.healthy(&id, |health| health["workers"]["idle"] == 3).await;
    let mut at_work = Vec::new();
    for _ in 0..3 {
        at_work.push(tokio::spawn(request(&service, &id, "/?sleep_ms=1500").send()));
    }
    service.healthy(&id, |health| health["workers"]["running"] == 3).await;
    assert_eq!(service.health(&id).await["jobs"]["inProgress"], 3);
    let mut workers = Vec::new();
    for answer in at_work {
        let shown: Value = answer.await.unwrap().unwrap().json().await.unwrap();
        workers.push(shown["worker"].as_str().unwrap().to_owned());
    }
    workers.sort();
    assert_eq!(workers, service.pods(&id).await);
}

#[tokio::test]
async fn a_request_may_name_its_worker() {
    let service = impatient(|_| {}).await;
    let id = balanced(&service, json!({ "workers": { "min": 2, "max": 2 } })).await;
    service.healthy(&id, |health| health["workers"]["idle"] == 2).await;
    let second = service.pods(&id).await.remove(1);
    let named =
        |value: &str, path: &str| request(&service, &id, path).header(WORKER_ID, value).send();
    let busy = tokio::spawn(named(&second, "/?sleep_ms=1000"));
    service.healthy(&id, |health| health["workers"]["running"] == 1).await;
    for mode in ["", "strict ", "strict-resume "] {
        let answer = named(&format!("{mode}{second}"), "/").await.unwrap();
        assert_eq!(answer.headers()[WORKER_ID], second.as_str(), "{mode}");
    }
    busy.await.unwrap().unwrap();
    let gone = "00000000000000";
    let soft = named(gone, "/").await.unwrap();
    assert_eq!(soft.status(), 200, "any other will do");
    let strict = named(&format!("strict {gone}"), "/").await.unwrap();
    let (error, message) = refusal(strict, 404).await;
    assert_eq!(error, "affinity_worker_gone");
    assert!(message.contains(gone), "{message}");
    let (error, _) = refusal(named("loose w", "/").await.unwrap(), 400).await;
    assert!(error.contains("strict-resume WORKER"), "{error}");
    named(&format!("strict {second}"), "/?health=500").await.unwrap();
    service.healthy(&id, |health| health["workers"]["unhealthy"] == 1).await;
    assert_eq!(named(&second, "/").await.unwrap().status(), 200, "the other one takes it");
    let (error, message) =
        refusal(named(&format!("strict {second}"), "/").await.unwrap(), 400).await;
    assert_eq!(error, "worker_timeout");
    assert!(message.contains("timed out waiting for worker"), "{message}");
}

#[tokio::test]
async fn a_worker_gets_no_request_while_it_initializes_or_is_unhealthy() {
    let service = impatient(|options| options.timing.worker_wait = Duration::from_secs(20)).await;
    let env = json!({ "ECHO_INITIALIZING_MS": "1200" });
    let id = balanced(&service, json!({ "env": env })).await;
    let began = Instant::now();
    let waiting = tokio::spawn(request(&service, &id, "/").send());
    service.healthy(&id, |health| health["workers"]["initializing"] == 1).await;
    assert_eq!(service.health(&id).await["jobs"]["inQueue"], 1);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    assert!(began.elapsed() > Duration::from_millis(1200), "{:?}", began.elapsed());
    answered(&service, &id, "/?health=503").await;
    service.healthy(&id, |health| health["workers"]["unhealthy"] == 1).await;
    let waiting = request(&service, &id, "/").timeout(Duration::from_millis(500)).send();
    assert!(waiting.await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_request_waits_for_a_worker_and_not_for_ever() {
    let service = impatient(|_| {}).await;
    let id = balanced(&service, json!({ "workers": { "max": 0 } })).await;
    let began = Instant::now();
    let (error, message) = refusal(get(&service, &id, "/").await, 400).await;
    assert_eq!(error, "no workers available");
    assert!(message.contains("no worker was healthy within"), "{message}");
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
}

/// A healthy worker that listens at another port than `PORT` gives 502.
#[tokio::test]
async fn a_worker_that_listens_elsewhere_is_a_bad_gateway() {
    let service = Harness::start().await;
    let echo = env!("CARGO_BIN_EXE_service-alone");
    let script = format!("PORT=$PORT_HEALTH exec {echo} echo");
    let id = balanced(
        &service,
        json!({ "entrypoint": ["sh", "-c"], "cmd": [script], "env": { "PORT_HEALTH": "81" } }),
    )
    .await;
    let (error, _) = refusal(get(&service, &id, "/").await, 502).await;
    assert!(error.contains("does not take connections at its PORT"), "{error}");
}

#[tokio::test]
async fn an_unhealthy_worker_is_replaced_after_a_while() {
    let service = impatient(|options| {
        options.timing.worker_wait = Duration::from_secs(20);
        options.timing.unhealthy = Duration::from_millis(500);
    })
    .await;
    let id = balanced(&service, json!({})).await;
    let first = answered(&service, &id, "/?health=500").await["worker"].take();
    service.healthy(&id, |health| health["workers"]["unhealthy"] == 1).await;
    let second = answered(&service, &id, "/").await["worker"].take();
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_worker_that_dies_is_a_bad_gateway_and_is_replaced() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    let first = answered(&service, &id, "/").await["worker"].take();
    let (error, _) = refusal(get(&service, &id, "/?sleep_ms=200&exit=3").await, 502).await;
    assert!(error.contains(first.as_str().unwrap()), "{error}");
    assert!(error.contains("before it answered"), "{error}");
    service.healthy(&id, |health| health["workers"]["unhealthy"] == 1).await;
    assert_ne!(answered(&service, &id, "/").await["worker"], first);
}

#[tokio::test]
async fn bodies_have_a_limit_each_way() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    let body = vec![1; LIMIT];
    let whole = request(&service, &id, "/").body(body).send().await.unwrap();
    assert_eq!(whole.bytes().await.unwrap().len(), LIMIT);
    let more = request(&service, &id, "/").body(vec![1; LIMIT + 1]).send().await.unwrap();
    let (error, _) = refusal(more, 413).await;
    assert_eq!(error, "the body of the request is larger than 30 MB");
    assert_eq!(unannounced(&service, &id).await, "HTTP/1.1 413");
    let exact = get(&service, &id, &format!("/?output_bytes={LIMIT}")).await;
    assert_eq!(exact.bytes().await.unwrap().len(), LIMIT);
    let more = get(&service, &id, &format!("/?output_bytes={}", LIMIT + 1)).await;
    let (error, _) = refusal(more, 502).await;
    assert!(error.ends_with("is larger than 30 MB"), "{error}");
}

/// Sends a chunked body that is too large. Returns the beginning of the answer.
async fn unannounced(service: &Harness, id: &str) -> String {
    let mut stream = TcpStream::connect(address(service)).await.unwrap();
    let head = format!(
        "POST /lb/{id}/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![1; 1 << 20], b"\r\n".to_vec()];
    let chunk = chunk.concat();
    for _ in 0..31 {
        stream.write_all(&chunk).await.unwrap();
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_has_a_time() {
    let service = impatient(|options| {
        options.timing.request = Duration::from_millis(500);
        options.timing.worker_wait = Duration::from_secs(20);
    })
    .await;
    let id = balanced(&service, json!({})).await;
    let (error, _) = refusal(get(&service, &id, "/?sleep_ms=5000").await, 504).await;
    assert!(error.contains("has not answered within"), "{error}");
    service.healthy(&id, |health| health["workers"]["idle"] == 1).await;
}

#[tokio::test]
async fn a_client_that_hangs_up_frees_the_worker() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({})).await;
    answered(&service, &id, "/").await;
    for body in ["", "text"] {
        let left = request(&service, &id, "/?sleep_ms=60000").body(body);
        let left = left.timeout(Duration::from_millis(400)).send();
        assert!(left.await.unwrap_err().is_timeout());
        let free =
            |health: &Value| health["workers"]["idle"] == 1 && health["jobs"]["inProgress"] == 0;
        service.healthy(&id, free).await;
    }
}

/// The request of a client that hangs up does not wait for a worker any more, and calls for none.
#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_is_forgotten() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({ "workers": { "max": 0 } })).await;
    for body in ["", "text"] {
        let left = request(&service, &id, "/").body(body).timeout(Duration::from_millis(300));
        assert!(left.send().await.unwrap_err().is_timeout());
        service.healthy(&id, |health| health["jobs"]["inQueue"] == 0).await;
    }
}

#[tokio::test]
async fn workers_follow_the_number_of_requests() {
    let service = Harness::start().await;
    let scaling = json!({ "type": "REQUEST_COUNT", "requestCount": 2 });
    let workers = json!({ "max": 3, "idleTimeout": 1 });
    let id = balanced(&service, json!({ "scaling": scaling, "workers": workers })).await;
    let at_work: Vec<_> =
        (0..5).map(|_| tokio::spawn(request(&service, &id, "/?sleep_ms=1500").send())).collect();
    service
        .healthy(&id, |health| {
            health["workers"]["ready"].as_i64().unwrap()
                + health["workers"]["initializing"].as_i64().unwrap()
                == 3
        })
        .await;
    for answer in at_work {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    }
    for _ in 0..400 {
        if service.pods(&id).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the workers stay");
}

#[tokio::test]
async fn a_roll_out_lets_running_requests_finish() {
    let service = Harness::start().await;
    let id = balanced(&service, json!({ "env": { "COLOUR": "red" } })).await;
    assert_eq!(answered(&service, &id, "/?environment=COLOUR").await, "red");
    let running = tokio::spawn(request(&service, &id, "/?sleep_ms=1500&environment=COLOUR").send());
    service.healthy(&id, |health| health["jobs"]["inProgress"] == 1).await;
    let change = json!({ "env": { "COLOUR": "green" } });
    let (status, shown) =
        service.queue(Method::PATCH, &format!("serverless/{id}"), Some(change)).await;
    assert_eq!(status, 200, "{shown}");
    let mut colour = Value::Null;
    for _ in 0..100 {
        colour = answered(&service, &id, "/?environment=COLOUR").await;
        if colour == "green" {
            break;
        }
    }
    assert_eq!(colour, "green");
    let finished = running.await.unwrap().unwrap();
    assert_eq!(finished.json::<Value>().await.unwrap(), "red");
}

#[tokio::test]
async fn a_service_that_stops_lets_running_requests_finish() {
    let service = Harness::with(|options| options.timing.finish = Duration::from_secs(10)).await;
    let id = balanced(&service, json!({})).await;
    answered(&service, &id, "/").await;
    let running = tokio::spawn(request(&service, &id, "/?sleep_ms=1000").send());
    service.healthy(&id, |health| health["jobs"]["inProgress"] == 1).await;
    service.stop.cancel();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (error, _) = refusal(get(&service, &id, "/").await, 503).await;
    assert_eq!(error, "the service is stopping");
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    service.stop().await;
}
