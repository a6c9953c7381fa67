//! Tests of faults, rates and quirks.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use service::{Options, Quirk};

use crate::harness::{Harness, KEY};

async fn faulty(fault: &str) -> Harness {
    let fault = fault.parse().unwrap();
    Harness::with(|options| options.faults.push(fault)).await
}

async fn quirky(quirks: &str) -> Harness {
    let quirks = Quirk::parse_list(quirks).unwrap();
    Harness::with(|options: &mut Options| options.quirks = quirks).await
}

/// Sends three requests to create a volume. Returns the statuses of the answers, and the number of
/// volumes afterwards; `None` is a request without an answer.
async fn three(service: &Harness) -> (Vec<Option<u16>>, usize) {
    let mut answers = Vec::new();
    for _ in 0..3 {
        let url = format!("{}/networkvolumes", service.addresses.rest);
        let body = json!({ "name": "v", "size": 1, "dataCenterId": "EU-RO-1" });
        let sent = service.client.post(url).bearer_auth(KEY).json(&body).send().await;
        answers.push(sent.ok().map(|answer| answer.status().as_u16()));
    }
    (answers, service.get("/networkvolumes").await.as_array().unwrap().len())
}

#[tokio::test]
async fn each_kind_of_fault_does_what_it_says() {
    let check = async |fault: &str, answer: Option<u16>, effects: usize| {
        let service = faulty(&format!("op=POST /networkvolumes,nth=2,{fault}")).await;
        let found = three(&service).await;
        assert_eq!(found, (vec![Some(200), answer, Some(200)], effects), "{fault}");
        service.access_log().len()
    };
    assert_eq!(check("kind=lost", None, 3).await, 4);
    assert_eq!(check("kind=cut", None, 2).await, 4);
    check("kind=error500-before", Some(500), 2).await;
    check("kind=error500-after", Some(500), 3).await;
    check("kind=status429:3", Some(429), 2).await;
}

#[tokio::test]
async fn latency_hang_and_stale_lists() {
    let service = faulty("op=POST /networkvolumes,latency=120").await;
    let started = Instant::now();
    service.volume("v", 1).await;
    assert!(started.elapsed() >= Duration::from_millis(120));
    let service = faulty("op=list,kind=stale-list:60000,times=1").await;
    service.volume("v", 1).await;
    assert_eq!(service.get("/networkvolumes").await, json!([]));
    assert_eq!(service.get("/networkvolumes").await.as_array().unwrap().len(), 1);
    let service = faulty("op=GET /networkvolumes,kind=hang").await;
    let url = format!("{}/networkvolumes", service.addresses.rest);
    let asked = service.client.get(url).bearer_auth(KEY).timeout(Duration::from_millis(200));
    assert!(asked.send().await.unwrap_err().is_timeout());
    service.volume("v", 1).await;
}

#[tokio::test]
async fn graphql_calls_fail_by_their_field() {
    let service = faulty("op=createNetworkVolume,nth=1,kind=lost").await;
    let query = "mutation { createNetworkVolume(input: {name: \"a\", size: 1, dataCenterId: \"CA-MTL-1\"}) { id } }";
    let url = format!("{}?api_key={KEY}", service.addresses.graphql);
    let sent = service.client.post(&url).json(&json!({ "query": query })).send().await;
    assert!(sent.is_err());
    service.data(query, json!({})).await;
    let listed = service.data("{ myself { networkVolumes { id } } }", json!({})).await;
    assert_eq!(listed["myself"]["networkVolumes"].as_array().unwrap().len(), 2);
    let log = service.access_log();
    assert_eq!((&log[0]["status"], &log[0]["mutating"]), (&json!(0), &json!(true)));
}

#[tokio::test]
async fn the_rate_is_bounded_when_asked_for() {
    let service = Harness::with(|options| options.rate = "5".parse().unwrap()).await;
    let url = format!("{}/networkvolumes", service.addresses.rest);
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let answer = service.client.get(&url).bearer_auth(KEY).send().await.unwrap();
        if answer.status() == 429 {
            assert_eq!(answer.headers()["retry-after"], "1");
        }
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses[..5], [200; 5]);
    assert!(statuses[5..].contains(&429), "{statuses:?}");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(service.client.get(&url).bearer_auth(KEY).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn quirks_of_lists() {
    let ids = |list: Value| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|object| object["id"].clone()).collect()
    };
    let service = quirky("shuffled-lists").await;
    let mut made = vec![json!(service.volume("a", 1).await), json!(service.volume("b", 1).await)];
    let mut listed = ids(service.get("/networkvolumes").await);
    assert_ne!(listed, made);
    made.sort_by_key(Value::to_string);
    listed.sort_by_key(Value::to_string);
    assert_eq!(listed, made);
    let service = quirky("list-omits-one").await;
    let made = [json!(service.volume("a", 1).await), json!(service.volume("b", 1).await)];
    assert_eq!(ids(service.get("/networkvolumes").await), made[..1]);
    assert_eq!(ids(service.get("/networkvolumes").await), made);
    let service = quirky("list-doubles-one").await;
    let made = [json!(service.volume("a", 1).await), json!(service.volume("b", 1).await)];
    let doubled = [&made[..], &made[..1]].concat();
    assert_eq!(ids(service.get("/networkvolumes").await), doubled);
    let query = "{ myself { networkVolumes { id } } }";
    let listed = service.data(query, json!({})).await["myself"]["networkVolumes"].take();
    assert_eq!(ids(listed), doubled);
    let service = quirky("stale-lists=300").await;
    let id = service.volume("a", 1).await;
    assert_eq!(service.get("/networkvolumes").await, json!([]));
    assert_eq!(service.get(&format!("/networkvolumes/{id}")).await["size"], 1);
    tokio::time::sleep(Duration::from_millis(350)).await;
    let path = format!("/networkvolumes/{id}");
    service.rest(Method::PATCH, &path, Some(json!({ "size": 2 }))).await;
    assert_eq!(service.get("/networkvolumes").await[0]["size"], 1);
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(service.get("/networkvolumes").await[0]["size"], 2);
}

#[tokio::test]
async fn quirks_of_answers() {
    let service = quirky("created-201,no-body,html-errors").await;
    let body = json!({ "name": "v", "size": 1, "dataCenterId": "EU-RO-1" });
    let (status, made) = service.rest(Method::POST, "/networkvolumes", Some(body)).await;
    assert_eq!(status, 201);
    let path = format!("/networkvolumes/{}", made["id"].as_str().unwrap());
    let (status, body) = service.rest(Method::PATCH, &path, Some(json!({ "size": 2 }))).await;
    assert_eq!((status.as_u16(), body), (204, Value::Null));
    assert_eq!(service.get(&path).await["size"], 2);
    let url = format!("{}/networkvolumes/nothing", service.addresses.rest);
    let error = service.client.get(url).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(error.status(), 404);
    assert!(error.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(error.text().await.unwrap().starts_with("<html>"));
    let service = quirky("gone-410").await;
    service.refused(Method::GET, "/networkvolumes", None, 410).await;
    service.data("{ myself { id } }", json!({})).await;
}

#[tokio::test]
async fn quirks_of_endpoints_and_templates() {
    let service =
        quirky("null-as-empty,server-defaults,fb-suffix,bound-templates-hidden,template-delay=1")
            .await;
    let template = service.template("t").await;
    let body = json!({ "name": "chat", "templateId": template, "workersMax": 0 });
    let made = service.post("/endpoints", body).await;
    assert_eq!(made["name"], "chat -fb");
    assert_eq!((&made["networkVolumeId"], &made["flashboot"]), (&json!(""), &json!(true)));
    assert_eq!(made["gpuTypeIds"].as_array().unwrap().len(), 49);
    let query = "{ myself { endpoints { name networkVolumeId } } }";
    let shown = service.data(query, json!({})).await["myself"]["endpoints"][0].take();
    assert_eq!(shown, json!({ "name": "chat -fb", "networkVolumeId": "" }));
    assert_eq!(service.get("/templates").await, json!([]));
    let path = format!("/templates/{template}");
    service.refused(Method::GET, &path, None, 404).await;
    service.get(&format!("{path}?includeEndpointBoundTemplates=true")).await;
    let endpoint = format!("/endpoints/{}", made["id"].as_str().unwrap());
    service.rest(Method::DELETE, &endpoint, None).await;
    let message = service.refused(Method::DELETE, &path, None, 400).await;
    assert!(message.contains("a moment ago"), "{message}");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
}

/// The list of volumes that the service has filled in follows the given volume, so the former
/// volume can be deleted.
#[tokio::test]
async fn volumes_that_the_service_filled_in_follow_the_one_that_is_given() {
    let service = quirky("server-defaults").await;
    let template = service.template("t").await;
    let (a, b) = (service.volume("a", 1).await, service.volume("b", 1).await);
    let body = json!({
        "name": "chat", "templateId": template, "workersMax": 0, "networkVolumeId": a,
    });
    let made = service.post("/endpoints", body).await;
    assert_eq!(made["networkVolumeIds"], json!([a]));
    let path = format!("/endpoints/{}", made["id"].as_str().unwrap());
    for (id, ids) in [(json!(b), json!([b])), (json!(""), json!([])), (json!(null), json!([]))] {
        let (status, changed) =
            service.rest(Method::PATCH, &path, Some(json!({ "networkVolumeId": id }))).await;
        assert_eq!((status.as_u16(), &changed["networkVolumeIds"]), (200, &ids));
    }
    for id in [a, b] {
        let path = format!("/networkvolumes/{id}");
        assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
    }
}
