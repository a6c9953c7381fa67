//! Tests of the problems of version 2.

use reqwest::Method;
use serde_json::{Value, json};
use service::{Interface, Rights};

use crate::harness::{Harness, KEY};
use crate::v2::{V2, id, queue};

#[tokio::test]
async fn problems_have_the_form_of_version_2() {
    let v2 = V2::start().await;
    let url = format!("{}/serverless", v2.0.addresses.queue);
    let response = v2.0.client.get(&url).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await.unwrap();
    assert_eq!(
        problem,
        json!({ "title": "Unauthorized", "status": 401, "detail": "unauthorized" })
    );
    let wrong = json!({ "name": "", "size": 9, "dataCenterId": "EU-RO-1" });
    let (status, problem) = v2.send(Method::POST, "/network-volumes", Some(wrong)).await;
    assert_eq!(status, 422);
    assert_eq!(
        problem["errors"],
        json!([
            "name must not be empty",
            "size must be between 10 and 4096, not 9",
            "dataCenter is required",
            "there is no field dataCenterId",
        ])
    );
    assert_eq!(v2.send(Method::GET, "/network-volumes/x", None).await.0, 404);
    v2.refused(Method::PUT, "/network-volumes", json!({}), 405).await;
    let long = json!({ "name": "x".repeat(102_400), "size": 10, "dataCenter": "EU-RO-1" });
    v2.refused(Method::POST, "/network-volumes", long, 413).await;
    for path in ["/clusters", "/clusters/x/pods", "/sandboxes/x", "/cost-centers"] {
        let why = v2.refused(Method::GET, path, Value::Null, 501).await;
        assert!(why.starts_with("This service"), "{why}");
    }
    let (status, _) = v2.send(Method::GET, "/network-volumes?unknown=1", None).await;
    assert_eq!(status, 200, "unknown parameters are ignored");
    v2.refused(Method::GET, "/catalog/gpus?product=MOON", Value::Null, 422).await;
}

/// A rule holds in both versions, but its message has the field names of the version.
#[tokio::test]
async fn a_broken_rule_names_the_fields_of_its_version() {
    let v2 = V2::start().await;
    let pod = |mounts: Value| json!({ "name": "p", "image": "x", "gpu": { "id": "NVIDIA L4" }, "mounts": mounts });
    let own = |size: i64, path: &str| json!({ "persistent": { "size": size, "path": path } });
    let volume = v2.0.volume("v", 10).await;
    let network = json!({ "network": [{ "volumeId": volume, "path": "w" }] });
    let made = id(&v2.make("/pods", pod(own(20, "/w"))).await);
    let made = format!("/pods/{made}");
    let cases = [
        (
            Method::POST,
            "/serverless",
            queue(json!({ "workers": { "min": 5, "max": 2 } })),
            "workers.min must not be greater than workers.max: 5 > 2",
        ),
        (
            Method::POST,
            "/serverless",
            queue(json!({ "registry": "none" })),
            "registry \"none\" not found",
        ),
        (
            Method::POST,
            "/network-volumes",
            json!({ "name": "v", "size": 10, "dataCenter": "MARS" }),
            "dataCenter must be one of ",
        ),
        (
            Method::POST,
            "/pods",
            pod(own(20, "w")),
            "mounts.persistent.path must be an absolute path",
        ),
        (Method::POST, "/pods", pod(network), "mounts.network[0].path must be an absolute path"),
        (
            Method::PATCH,
            &made,
            json!({ "mounts": own(10, "/w") }),
            "mounts.persistent.size cannot become less",
        ),
    ];
    for (method, path, body, expected) in cases {
        let said = v2.refused(method, path, body, 400).await;
        assert!(said.starts_with(expected), "{said}");
    }
    let old = json!({ "name": "v", "size": 10, "dataCenterId": "MARS" });
    let said = v2.0.refused(Method::POST, "/networkvolumes", Some(old), 400).await;
    assert!(said.starts_with("dataCenterId must be one of "), "{said}");
}

#[tokio::test]
async fn paths_below_a_group_belong_to_no_endpoint() {
    let v2 = V2::start().await;
    for path in ["", "/", "/nowhere", "/account", "/pods/", "/pods/status/x", "/serverless/a/b/c"] {
        assert_eq!(v2.refused(Method::GET, path, Value::Null, 404).await, "path not found");
    }
    v2.refused(Method::POST, "/pods/cancel/x", json!({}), 404).await;
    let (status, problem) = v2.send(Method::GET, "/abcdefghijklmn/nowhere", None).await;
    assert_eq!((status, &problem), (404, &json!({ "error": "path not found", "status": 404 })));
}

#[tokio::test]
async fn a_key_without_the_right_is_forbidden() {
    let v2 = V2::start().await;
    let rights = Rights { interface: Some(Interface::Jobs), ..Rights::default() };
    let key = service::create_key(&v2.0.data, "jobs", rights).unwrap();
    let url = format!("{}/pods", v2.0.addresses.queue);
    let response = v2.0.client.get(url).bearer_auth(key).send().await.unwrap();
    assert_eq!(response.status(), 403);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["title"], "Forbidden");
    assert_eq!(problem["detail"], "the key `jobs` does not allow this: it is for the job API only");
}

/// The limit on the size of a body also counts the settings that its template adds.
#[tokio::test]
async fn settings_are_measured_with_their_template() {
    let v2 = V2::start().await;
    let env = |name: &str| json!({ name: "x".repeat(60_000) });
    for serverless in [true, false] {
        let template = json!({ "name": format!("t-{serverless}"), "image": "echo:1",
            "serverless": serverless, "env": env("A") });
        let template = id(&v2.make("/templates", template).await);
        let (path, mut body) = if serverless {
            ("/serverless", queue(json!({})))
        } else {
            ("/pods", json!({ "name": "p", "gpu": { "id": "NVIDIA L4" } }))
        };
        body["templateId"] = json!(template);
        let mut large = body.clone();
        large["env"] = env("B");
        let said = v2.refused(Method::POST, path, large.clone(), 413).await;
        assert!(said.contains("with the settings of its template"), "{said}");
        let made = id(&v2.make(path, body).await);
        let change = json!({ "templateId": template, "env": large["env"] });
        v2.refused(Method::PATCH, &format!("{path}/{made}"), change, 413).await;
    }
}

#[tokio::test]
async fn answers_tell_what_is_left_of_the_rate() {
    let service = Harness::with(|options| options.rate = "2/minute,9/day".parse().unwrap()).await;
    let url = format!("{}/pods", service.addresses.queue);
    let ask = async |key: &str| {
        let answer = service.client.get(&url).bearer_auth(key).send().await.unwrap();
        let header =
            |name| answer.headers().get(name).map(|text| text.to_str().unwrap().to_owned());
        let (quota, policy) = (header("ratelimit"), header("ratelimit-policy"));
        let after = header("retry-after");
        (answer.status().as_u16(), quota, policy, after, answer.text().await.unwrap())
    };
    let (status, quota, policy, ..) = ask(KEY).await;
    assert_eq!(status, 200);
    assert_eq!(quota.unwrap(), "\"minute\";r=1;t=60, \"day\";r=8;t=86400");
    assert_eq!(policy.as_deref(), Some("\"minute\";q=2;w=60, \"day\";q=9;w=86400"));
    let (status, quota, ..) = ask("wrong").await;
    assert_eq!((status, quota), (401, None), "strangers learn nothing");
    assert_eq!(ask(KEY).await.0, 200);
    let (status, quota, _, after, body) = ask(KEY).await;
    assert_eq!((status, quota.is_some()), (429, true));
    assert!((50..=60).contains(&after.unwrap().parse::<u64>().unwrap()));
    assert!(body.contains("rate limit exceeded for the minute window"), "{body}");
    let free = V2::start().await;
    let url = format!("{}/pods", free.0.addresses.queue);
    let answer = free.0.client.get(url).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(answer.headers().get("ratelimit"), None, "who has no limit is told of none");
}
