//! Tests of the console over plain HTTP: signing in, calls that are passed on, and events.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use service::{Interface, Rights};

use crate::harness::{Harness, KEY};

/// A signed-in client.
struct Visitor<'a> {
    service: &'a Harness,
    cookie: String,
    token: String,
}

fn base(service: &Harness) -> &str {
    service.addresses.rest.strip_suffix("/v1").unwrap()
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

async fn sign_in(service: &Harness, key: &str) -> Response {
    let url = format!("{}/console/session", base(service));
    service.client.post(url).json(&json!({ "key": key })).send().await.unwrap()
}

async fn visitor(service: &Harness) -> Visitor<'_> {
    visitor_with(service, KEY).await
}

async fn visitor_with<'s>(service: &'s Harness, key: &str) -> Visitor<'s> {
    let response = sign_in(service, key).await;
    assert_eq!(response.status(), 200);
    let cookie = header(&response, "set-cookie").split(';').next().unwrap().to_owned();
    let token = response.json::<Value>().await.unwrap()["token"].as_str().unwrap().to_owned();
    Visitor { service, cookie, token }
}

impl Visitor<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", base(self.service));
        let request = self.service.client.request(method, url);
        request.header("cookie", &self.cookie).header("x-plumb-console", &self.token)
    }

    async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    async fn follow(&self, topic: &str) -> Events {
        let response = self.get(&format!("/console/events?topic={topic}")).await;
        assert_eq!(response.status(), 200, "{topic}");
        assert_eq!(header(&response, "content-type"), "text/event-stream");
        Events { response, text: String::new() }
    }
}

/// An open stream of events.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    /// Returns the text of the next event; `None` once the stream has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if event != ":" {
                    return Some(event);
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await;
            let chunk = chunk.expect("the stream says something").unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Returns the next state of the topic that passes the check.
    async fn until(&mut self, check: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next().await.expect("the stream goes on");
            let data = event.strip_prefix("data: ").unwrap_or_else(|| panic!("{event}"));
            let mut data: Value = serde_json::from_str(data).unwrap();
            assert!(data["now"].as_i64().unwrap() > 1_700_000_000_000);
            if check(&data["state"]) {
                return data["state"].take();
            }
        }
    }
}

#[tokio::test]
async fn the_page_is_confined_and_holds_no_secret() {
    let service = Harness::start().await;
    for path in ["/", "/console/main.js", "/console/base.css", "/console/icon.svg"] {
        let response =
            service.client.get(format!("{}{path}", base(&service))).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let policy = header(&response, "content-security-policy");
        for rule in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(header(&response, "referrer-policy"), "no-referrer");
        assert!(!response.text().await.unwrap().contains(KEY));
    }
    for path in ["/console/nothing.js", "/console/..%2fmod.rs", "/console/"] {
        let response =
            service.client.get(format!("{}{path}", base(&service))).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_session_takes_the_key_once_and_both_of_its_secrets() {
    let service = Harness::start().await;
    let refused = sign_in(&service, "wrong").await;
    assert_eq!((refused.status().as_u16(), header(&refused, "set-cookie")), (401, ""));
    let response = sign_in(&service, KEY).await;
    let cookie = header(&response, "set-cookie").to_owned();
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/console"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains(KEY) && !response.text().await.unwrap().contains(KEY));

    let visitor = visitor(&service).await;
    let list = "/console/api/v1/endpoints";
    assert_eq!(visitor.json(list).await, json!([]));
    let url = format!("{}{list}", base(&service));
    let alone =
        |name: &'static str, value: &str| service.client.get(&url).header(name, value).send();
    for response in [
        service.client.get(&url).send().await.unwrap(),
        alone("cookie", &visitor.cookie).await.unwrap(),
        alone("x-plumb-console", &visitor.token).await.unwrap(),
        // The key is accepted by the APIs only.
        service.client.get(&url).bearer_auth(KEY).send().await.unwrap(),
    ] {
        assert_eq!(response.status(), 401);
    }
    // The session is accepted by the console of this service only.
    assert_eq!(visitor.get("/v1/endpoints").await.status(), 401);
    assert_eq!(visitor.get("/v2/any/health").await.status(), 401);
    let other = Harness::start().await;
    let stranger = Visitor { service: &other, ..visitor };
    assert_eq!(stranger.get(list).await.status(), 401);
}

#[tokio::test]
async fn signing_out_ends_the_session_and_its_streams() {
    let service = Harness::start().await;
    let (visitor, other) = (visitor(&service).await, visitor(&service).await);
    let mut events = visitor.follow("endpoints").await;
    events.until(|state| state["total"] == 0).await;
    let out = visitor.request(Method::DELETE, "/console/session").send().await.unwrap();
    assert_eq!(out.status(), 204);
    assert!(header(&out, "set-cookie").contains("Max-Age=0"));
    assert_eq!(events.next().await, None);
    assert_eq!(visitor.get("/console/session").await.status(), 401);
    assert_eq!(other.get("/console/session").await.status(), 200);
}

#[tokio::test]
async fn other_pages_and_strange_names_are_refused() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    let list = "/console/api/v1/endpoints";
    let with = |name: &'static str, value: String| {
        visitor.request(Method::GET, list).header(name, value).send()
    };
    let own = base(&service).to_owned();
    assert_eq!(with("origin", own.clone()).await.unwrap().status(), 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        assert_eq!(with("origin", origin.to_owned()).await.unwrap().status(), 403, "{origin}");
    }
    let post = visitor.request(Method::POST, "/console/api/v1/templates").json(&json!({}));
    assert_eq!(post.header("sec-fetch-site", "cross-site").send().await.unwrap().status(), 403);
    let port = own.rsplit(':').next().unwrap();
    for path in ["/", list] {
        let host = format!("evil.example:{port}");
        let response =
            visitor.request(Method::GET, path).header("host", host).send().await.unwrap();
        assert_eq!(response.status(), 403, "{path}");
    }
    let local = visitor.request(Method::GET, list).header("host", format!("localhost:{port}"));
    assert_eq!(local.send().await.unwrap().status(), 200);
    // The form of another site could send this text without a preflight request.
    let form = service.client.post(format!("{own}/console/session"));
    let form = form.header("content-type", "text/plain").body(json!({ "key": KEY }).to_string());
    assert_eq!(form.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn only_the_rest_and_job_apis_are_passed_on() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    for path in ["graphql", "lease", "console/session", "v1", "../v1/endpoints"] {
        assert_eq!(visitor.get(&format!("/console/api/{path}")).await.status(), 404, "{path}");
    }
    let endpoint = service.endpoint(json!({ "workersMax": 0 })).await;
    let body = json!({ "input": { "n": 1 } });
    let run = visitor.request(Method::POST, &format!("/console/api/v2/{endpoint}/run"));
    let job: Value = run.json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(job["status"], "IN_QUEUE");
    let logged = service.access_log();
    let paths: Vec<_> = logged.iter().filter(|line| line["operation"] == "POST /run").collect();
    assert_eq!(paths.len(), 1, "it is logged once, as what it is");
}

#[tokio::test]
async fn a_job_is_followed_from_its_submission_to_its_result() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    let endpoint = service.endpoint(json!({})).await;
    let mut list = visitor.follow("endpoints").await;
    list.until(|state| state["endpoints"][0]["id"] == *endpoint).await;
    let input = json!({ "sleep_ms": 400, "text": "<img src=x onerror=alert(1)>" });
    let id = service.run(&endpoint, input).await;
    let mut job = visitor.follow(&format!("job/{endpoint}/{id}")).await;
    job.until(|state| state["state"] == "IN_PROGRESS" && state["worker"].is_string()).await;
    list.until(|state| state["endpoints"][0]["workers"]["running"] == 1).await;
    let done = job.until(|state| state["state"] == "COMPLETED").await;
    assert!(done["finished"].as_i64() >= done["started"].as_i64());
    let output = done["output"]["text"].as_str().unwrap();
    assert!(output.contains("<img src=x onerror=alert(1)>"), "it is data: {output}");
    list.until(|state| state["endpoints"][0]["jobs"]["completed"] == 1).await;
    let shown = visitor.follow(&format!("endpoint/{endpoint}")).await.until(|_| true).await;
    assert_eq!(shown["jobList"][0]["id"], *id);
    assert_eq!(shown["workerList"][0]["state"], "idle");
    assert!(shown["settings"]["template"]["command"].as_array().unwrap().is_empty());
    service.rest(Method::DELETE, &format!("/endpoints/{endpoint}"), None).await;
    assert_eq!(job.next().await.as_deref(), Some("event: gone\ndata: {}"));
    assert_eq!(job.next().await, None);
    assert_eq!(visitor.get("/console/events?topic=all").await.status(), 400);
}

#[tokio::test]
async fn inputs_come_as_they_were_sent_and_outputs_in_parts() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    let endpoint = service.endpoint(json!({})).await;
    let text = r#"{"z":1.50,"big":12345678901234567890123,"output_bytes":200000}"#;
    let url = format!("{}/{endpoint}/run", service.addresses.queue);
    let sent = service.client.post(url).bearer_auth(KEY).body(format!("{{\"input\":{text}}}"));
    let job: Value = sent.send().await.unwrap().json().await.unwrap();
    let id = job["id"].as_str().unwrap();
    let path = |part: &str| format!("/console/jobs/{endpoint}/{id}/{part}");
    let whole = visitor.get(&path("input")).await;
    assert_eq!(header(&whole, "x-plumb-bytes"), text.len().to_string());
    assert_eq!(whole.text().await.unwrap(), text);
    let cut = visitor.get(&path("input?most=8")).await;
    assert_eq!(header(&cut, "x-plumb-bytes"), text.len().to_string());
    assert_eq!(cut.text().await.unwrap(), &text[..8]);
    service.until(&endpoint, id, "COMPLETED").await;
    let mut events = visitor.follow(&format!("job/{endpoint}/{id}")).await;
    let shown = events.until(|state| state["state"] == "COMPLETED").await;
    assert_eq!(shown["output"]["bytes"], 200_002);
    assert_eq!(shown["output"]["text"].as_str().unwrap().len(), 64 << 10);
    assert_eq!(visitor.get(&path("output")).await.text().await.unwrap().len(), 200_002);
    assert_eq!(visitor.get(&path("request")).await.status(), 404);
    let strange = format!("/console/jobs/other/{id}/input");
    assert_eq!(visitor.get(&strange).await.status(), 404);
}

#[tokio::test]
async fn the_logs_of_an_endpoint_are_found_when_their_workers_are_gone() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    let endpoint = service.endpoint(json!({})).await;
    let logs = format!("/console/logs/{endpoint}");
    assert_eq!(visitor.json(&logs).await, json!({ "logs": [] }));
    let id = service.run(&endpoint, json!({ "log": "hello", "crash": true })).await;
    service.until(&endpoint, &id, "FAILED").await;
    let found = visitor.json(&logs).await["logs"].take();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().any(|log| log["lives"] == false && log["bytes"].as_u64() >= Some(6)));
    let worker = found[2]["worker"].as_str().unwrap();
    let follow = format!("/console/api/v2/serverless/{endpoint}/workers/{worker}/logs");
    assert!(visitor.get(&follow).await.text().await.unwrap().contains("hello"));
    assert_eq!(visitor.get("/console/logs/nothing").await.status(), 404);
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let service = Harness::start().await;
    let visitor = visitor(&service).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(visitor.follow("endpoints").await);
    }
    assert_eq!(visitor.get("/console/events?topic=endpoints").await.status(), 503);
    open.clear();
    for _ in 0..100 {
        if visitor.get("/console/events?topic=endpoints").await.status() == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("those that were closed make room");
}

#[tokio::test]
async fn a_key_with_fewer_rights_opens_as_much_as_it_allows() {
    let service = Harness::start().await;
    let make = |name: &str, rights| service::create_key(&service.data, name, rights).unwrap();
    let reading = make("reading", Rights { read_only: true, ..Rights::default() });
    let jobs = make("jobs", Rights { interface: Some(Interface::Jobs), ..Rights::default() });
    let refused = sign_in(&service, &jobs).await;
    assert_eq!(refused.status(), 401);
    assert!(refused.text().await.unwrap().contains("it is for the job API only"));

    let visitor = visitor_with(&service, &reading).await;
    assert_eq!(visitor.json("/console/api/v1/endpoints").await, json!([]));
    let keys = visitor.json("/console/keys").await["keys"].take();
    let own = keys.as_array().unwrap().iter().find(|key| key["isOwn"] == true).unwrap();
    assert_eq!((&own["name"], &own["rights"]), (&json!("reading"), &json!("read-only")));
    assert!(!keys.to_string().contains(&reading));
    let body = json!({ "name": "t", "imageName": "i" });
    let change = visitor.request(Method::POST, "/console/api/v1/templates").json(&body);
    let change = change.send().await.unwrap();
    assert_eq!(change.status(), 403, "401 would say that the session has ended");
    assert!(change.text().await.unwrap().contains("read-only"));

    let mut events = visitor.follow("endpoints").await;
    events.until(|_| true).await;
    service::revoke_key(&service.data, "reading").unwrap();
    assert_eq!(events.next().await, None);
    assert_eq!(visitor.get("/console/session").await.status(), 401);
}
