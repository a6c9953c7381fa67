//! Tests of keys with fewer rights: each interface, each form in which a request shows a key, and
//! the refused requests.

use reqwest::Method;
use serde_json::{Value, json};
use service::{Interface, Rights};

use crate::harness::{Harness, KEY};

/// Sends a request with a key as a bearer token; returns the status and the body as text.
async fn send(
    harness: &Harness,
    key: &str,
    method: Method,
    url: &str,
    body: Value,
) -> (u16, String) {
    let request = harness.client.request(method, url).bearer_auth(key).json(&body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

fn create(harness: &Harness, name: &str, rights: Rights) -> String {
    service::create_key(&harness.data, name, rights).unwrap()
}

/// A request, and the names of the keys that must not send it.
struct Case {
    method: Method,
    url: String,
    body: Value,
    refused: &'static [&'static str],
}

fn case(method: Method, url: String, body: Value, refused: &'static [&'static str]) -> Case {
    Case { method, url, body, refused }
}

const REST_READS: &[&str] = &["graphql", "jobs", "one"];
const REST_CHANGES: &[&str] = &["read", "graphql", "jobs", "one"];
const GRAPHQL_READS: &[&str] = &["rest", "jobs", "one"];
const GRAPHQL_CHANGES: &[&str] = &["read", "rest", "jobs", "one"];
const JOB_READS: &[&str] = &["rest", "graphql"];
const JOB_CHANGES: &[&str] = &["read", "rest", "graphql"];

/// Makes a key of each kind, and returns each with its name. `one` is for the jobs of this
/// endpoint.
fn keys(harness: &Harness, endpoint: &str) -> Vec<(&'static str, String)> {
    let only = |interface| Rights { interface: Some(interface), ..Rights::default() };
    let kinds = [
        ("every", Rights::default()),
        ("read", Rights { read_only: true, ..Rights::default() }),
        ("rest", only(Interface::Rest)),
        ("graphql", only(Interface::Graphql)),
        ("jobs", only(Interface::Jobs)),
        ("one", Rights { endpoint: Some(endpoint.to_owned()), ..Rights::default() }),
    ];
    kinds.into_iter().map(|(name, rights)| (name, create(harness, name, rights))).collect()
}

fn management_cases(harness: &Harness, endpoint: &str) -> Vec<Case> {
    let (rest, queue) = (&harness.addresses.rest, &harness.addresses.queue);
    let graphql = |text: &str, refused| {
        let body = json!({ "query": text, "operationName": null });
        case(Method::POST, harness.addresses.graphql.clone(), body, refused)
    };
    let mut chosen = graphql(
        "query q { myself { id } } mutation m { deleteEndpoint(id: \"x\") }",
        GRAPHQL_CHANGES,
    );
    chosen.body["operationName"] = json!("q");
    let none = || json!({});
    vec![
        case(Method::GET, format!("{rest}/endpoints"), none(), REST_READS),
        case(Method::PATCH, format!("{rest}/endpoints/{endpoint}"), none(), REST_CHANGES),
        case(Method::DELETE, format!("{rest}/endpoints/absent"), none(), REST_CHANGES),
        case(Method::GET, format!("{queue}/serverless"), none(), REST_READS),
        case(Method::DELETE, format!("{queue}/serverless/absent"), none(), REST_CHANGES),
        case(Method::POST, format!("{queue}/tags"), none(), REST_CHANGES),
        graphql("{ myself { id } }", GRAPHQL_READS),
        graphql("mutation { deleteEndpoint(id: \"x\") }", GRAPHQL_CHANGES),
        chosen,
    ]
}

fn job_cases(harness: &Harness, endpoint: &str, other: &str, job: &str) -> Vec<Case> {
    let queue = &harness.addresses.queue;
    let get =
        |path: String, refused| case(Method::GET, format!("{queue}/{path}"), json!({}), refused);
    let post = |path: String, refused| {
        case(Method::POST, format!("{queue}/{path}"), json!({ "input": {} }), refused)
    };
    vec![
        get(format!("{endpoint}/health"), JOB_READS),
        get(format!("{endpoint}/requests"), JOB_READS),
        get(format!("{endpoint}/status/{job}"), JOB_READS),
        get(format!("{endpoint}/status-sync/{job}"), JOB_READS),
        get(format!("{endpoint}/status/{job}?ttl=20000"), JOB_CHANGES),
        get(format!("{endpoint}/stream/{job}"), JOB_CHANGES),
        get(format!("{endpoint}/openai/v1/models"), JOB_CHANGES),
        get(format!("{endpoint}/nowhere"), JOB_CHANGES),
        post(format!("{endpoint}/run"), JOB_CHANGES),
        post(format!("{endpoint}/runsync"), JOB_CHANGES),
        post(format!("{endpoint}/cancel/{job}"), JOB_CHANGES),
        post(format!("{endpoint}/retry/{job}"), JOB_CHANGES),
        post(format!("{endpoint}/purge-queue"), JOB_CHANGES),
        get(format!("{other}/health"), &["rest", "graphql", "one"]),
        post(format!("{other}/run"), &["read", "rest", "graphql", "one"]),
    ]
}

#[tokio::test]
async fn each_request_is_refused_to_the_keys_without_the_right() {
    let harness = Harness::start().await;
    let endpoint = harness.endpoint(json!({})).await;
    let other = harness.endpoint(json!({})).await;
    let job = harness.run(&endpoint, json!({ "a": 1 })).await;
    let keys = keys(&harness, &endpoint);
    let mut cases = management_cases(&harness, &endpoint);
    cases.extend(job_cases(&harness, &endpoint, &other, &job));
    for Case { method, url, body, refused } in &cases {
        for (name, key) in &keys {
            let (status, text) = send(&harness, key, method.clone(), url, body.clone()).await;
            let is_refused = refused.contains(name);
            // Version 2 answers 403 in the place of 401.
            let is_so = matches!(status, 401 | 403);
            assert_eq!(is_so, is_refused, "{name}: {method} {url}: {status} {text}");
            if is_refused {
                let why = format!("the key `{name}` does not allow this: it is ");
                assert!(text.contains(&why), "{method} {url}: {text}");
            }
        }
        let (status, text) = send(&harness, KEY, method.clone(), url, body.clone()).await;
        assert_ne!(status, 401, "{method} {url}: {text}");
    }
}

#[tokio::test]
async fn workers_and_leases_take_no_key_with_fewer_rights() {
    let harness = Harness::start().await;
    let endpoint = harness.endpoint(json!({})).await;
    let key = create(&harness, "every", Rights::default());
    let queue = &harness.addresses.queue;
    for url in [
        harness.addresses.lease.clone(),
        format!("{queue}/{endpoint}/job-take/worker"),
        format!("{queue}/{endpoint}/job-stop/worker"),
        format!("{queue}/{endpoint}/ping/worker"),
    ] {
        let (status, text) = send(&harness, &key, Method::GET, &url, json!({})).await;
        assert_eq!(status, 401, "{url}: {text}");
    }
}

#[tokio::test]
async fn a_key_counts_in_every_form_until_it_is_revoked() {
    let harness = Harness::start().await;
    let endpoint = harness.endpoint(json!({})).await;
    let key = create(&harness, "reader", Rights { read_only: true, ..Rights::default() });
    let health = format!("{}/{endpoint}/health", harness.addresses.queue);
    let run = format!("{}/{endpoint}/run", harness.addresses.queue);
    let raw = async |method: Method, url: &str| {
        let request = harness.client.request(method, url).header("authorization", &key);
        request.json(&json!({ "input": {} })).send().await.unwrap().status().as_u16()
    };
    let by_query = async |query: &str| {
        let url = format!("{}?api_key={key}", harness.addresses.graphql);
        let request = harness.client.post(url).json(&json!({ "query": query }));
        request.send().await.unwrap().status().as_u16()
    };
    let change = "mutation { deleteEndpoint(id: \"x\") }";
    assert_eq!((raw(Method::GET, &health).await, raw(Method::POST, &run).await), (200, 401));
    assert_eq!((by_query("{ myself { id } }").await, by_query(change).await), (200, 401));
    service::revoke_key(&harness.data, "reader").unwrap();
    assert_eq!((raw(Method::GET, &health).await, by_query("{ myself { id } }").await), (401, 401));
    // A new key of the same name is a different key.
    let again = create(&harness, "reader", Rights::default());
    let rest = format!("{}/endpoints", harness.addresses.rest);
    assert_eq!(send(&harness, &key, Method::GET, &rest, json!({})).await.0, 401);
    assert_eq!(send(&harness, &again, Method::GET, &rest, json!({})).await.0, 200);
}
