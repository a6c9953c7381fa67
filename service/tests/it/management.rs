//! Tests of the REST management API.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Harness, KEY};

#[tokio::test]
async fn a_volume_lives_from_create_to_delete() {
    let service = Harness::start().await;
    let id = service.volume("models", 100).await;
    let shown = json!({ "id": id, "name": "models", "size": 100, "dataCenterId": "EU-RO-1" });
    assert_eq!(service.get(&format!("/networkvolumes/{id}")).await, shown);
    assert_eq!(service.get("/networkvolumes").await, json!([shown]));
    let path = format!("/networkvolumes/{id}");
    let (status, body) = service.rest(Method::PATCH, &path, Some(json!({ "size": 200 }))).await;
    assert_eq!(
        (status.as_u16(), &body["size"], &body["name"]),
        (200, &json!(200), &json!("models"))
    );
    let synonym = format!("{path}/update");
    assert_eq!(service.post(&synonym, json!({ "name": "m2" })).await["name"], "m2");
    let (status, body) = service.rest(Method::DELETE, &path, None).await;
    assert_eq!((status.as_u16(), body), (204, Value::Null));
    service.refused(Method::GET, &path, None, 404).await;
    service.refused(Method::DELETE, &path, None, 404).await;
    assert_eq!(service.get("/networkvolumes").await, json!([]));
}

#[tokio::test]
async fn volumes_only_grow_and_never_move() {
    let service = Harness::start().await;
    let path = format!("/networkvolumes/{}", service.volume("v", 100).await);
    for (change, expected) in [
        (json!({ "size": 100 }), "greater than the current size"),
        (json!({ "size": 50 }), "100 GB"),
        (json!({ "size": 4001 }), "between 0 and 4000"),
        (json!({ "size": "200" }), "whole number"),
        (json!({ "size": 150.5 }), "whole number"),
        (json!({ "name": "" }), "name"),
        (json!({ "dataCenterId": "US-KS-2" }), "cannot be changed"),
        (json!([]), "JSON object"),
    ] {
        let message = service.refused(Method::PATCH, &path, Some(change.clone()), 400).await;
        assert!(message.contains(expected), "{change}: {message}");
    }
    assert_eq!(service.get(&path).await["size"], 100);
    for body in [
        json!({ "size": 1, "dataCenterId": "EU-RO-1" }),
        json!({ "name": "x", "dataCenterId": "EU-RO-1" }),
        json!({ "name": "x", "size": 1 }),
        json!({ "name": "x", "size": -1, "dataCenterId": "EU-RO-1" }),
        json!({ "name": "x", "size": 1, "dataCenterId": "MOON-1" }),
    ] {
        service.refused(Method::POST, "/networkvolumes", Some(body), 400).await;
    }
}

#[tokio::test]
async fn names_of_volumes_repeat_and_lists_keep_the_order() {
    let service = Harness::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(json!(service.volume("same", 1).await));
    }
    let list = service.get("/networkvolumes").await;
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|volume| volume["id"].clone()).collect();
    assert_eq!(ids, made);
}

#[tokio::test]
async fn templates_have_unique_names_and_defaults() {
    let service = Harness::start().await;
    let id = service.template("vllm").await;
    let path = format!("/templates/{id}");
    let shown = service.get(&path).await;
    assert_eq!(shown["containerDiskInGb"], 50);
    assert_eq!(shown["ports"], json!(["8888/http", "22/tcp"]));
    assert_eq!((&shown["env"], &shown["isServerless"]), (&json!({}), &json!(true)));
    let same = json!({ "name": "vllm", "imageName": "x" });
    let message = service.refused(Method::POST, "/templates", Some(same), 400).await;
    assert!(message.contains("unique"), "{message}");
    let change = json!({ "env": { "A": "1" }, "dockerStartCmd": ["python", "-u"], "ports": [] });
    let (_, body) = service.rest(Method::PATCH, &path, Some(change)).await;
    assert_eq!((&body["env"], &body["ports"]), (&json!({ "A": "1" }), &json!([])));
    assert_eq!(body["imageName"], "echo:1");
    for wrong in [
        json!({ "isServerless": false }),
        json!({ "category": "AMD" }),
        json!({ "env": { "A": 1 } }),
        json!({ "env": { "A=B": "1" } }),
        json!({ "ports": ["80"] }),
        json!({ "imageName": "" }),
        json!({ "containerRegistryAuthId": "nothing" }),
    ] {
        service.refused(Method::PATCH, &path, Some(wrong), 400).await;
    }
}

#[tokio::test]
async fn endpoints_over_rest_hold_what_they_use() {
    let service = Harness::start().await;
    let (volume, template) = (service.volume("v", 1).await, service.template("t").await);
    let made = service
        .post(
            "/endpoints",
            json!({ "name": "chat", "templateId": template, "networkVolumeId": volume,
                "gpuTypeIds": ["NVIDIA L4", "NVIDIA GeForce RTX 4090"], "workersMax": 0 }),
        )
        .await;
    let path = format!("/endpoints/{}", made["id"].as_str().unwrap());
    assert_eq!(made["gpuTypeIds"], json!(["NVIDIA L4", "NVIDIA GeForce RTX 4090"]));
    assert_eq!((&made["idleTimeout"], &made["scalerValue"]), (&json!(5), &json!(4)));
    assert_eq!(service.get(&path).await, made);
    let held_path = format!("/networkvolumes/{volume}");
    let held = service.refused(Method::DELETE, &held_path, None, 400);
    assert!(held.await.contains("remove this network volume from all pods"));
    let held_path = format!("/templates/{template}");
    let held = service.refused(Method::DELETE, &held_path, None, 400);
    assert!(held.await.contains("in use"));
    let change = json!({ "networkVolumeId": null, "workersMin": 1, "workersMax": 2 });
    let (_, body) = service.rest(Method::PATCH, &path, Some(change)).await;
    assert_eq!((&body["networkVolumeId"], &body["workersMin"]), (&Value::Null, &json!(1)));
    service.rest(Method::DELETE, &format!("/networkvolumes/{volume}"), None).await;
    assert_eq!(service.get("/networkvolumes").await, json!([]));
    let with = service.get(&format!("{path}?includeTemplate=true&includeWorkers=true")).await;
    assert_eq!(with["template"]["id"], json!(template));
    assert!(with["workers"].is_array(), "{with}");
    for wrong in [
        json!({ "workersMin": 3 }),
        json!({ "gpuTypeIds": ["NVIDIA L5"] }),
        json!({ "idleTimeout": 0 }),
        json!({ "scalerType": "WORKER_COUNT" }),
        json!({ "templateId": "nothing" }),
        json!({ "networkVolumeId": "nothing" }),
        json!({ "computeType": "CPU" }),
        json!({ "dataCenterIds": ["MOON-1"] }),
    ] {
        service.refused(Method::PATCH, &path, Some(wrong), 400).await;
    }
    let (status, _) = service.rest(Method::DELETE, &path, None).await;
    assert_eq!(status, 204);
    assert_eq!(service.rest(Method::DELETE, &format!("/templates/{template}"), None).await.0, 204);
}

#[tokio::test]
async fn the_value_of_the_scaler_is_a_number() {
    let service = Harness::start().await;
    let id = service.endpoint(json!({ "scalerValue": 0.5, "workersMax": 0 })).await;
    let path = format!("/endpoints/{id}");
    let shown = service.get(&path).await;
    assert_eq!(
        (&shown["scalerValue"], &shown["executionTimeoutMs"]),
        (&json!(0.5), &json!(600_000))
    );
    let query =
        "query($id: String!) { myself { endpoint(id: $id) { scalerValue executionTimeoutMs } } }";
    let read = async || service.data(query, json!({ "id": id })).await["myself"]["endpoint"].take();
    let expected = json!({ "scalerValue": 0.5, "executionTimeoutMs": 600_000 });
    assert_eq!(read().await, expected);
    let save = format!(
        "mutation {{ saveEndpoint(input: {{id: \"{id}\", name: \"eee\", gpuIds: \"ADA_24\", \
         scalerValue: 2.5}}) {{ scalerValue }} }}"
    );
    assert_eq!(service.data(&save, json!({})).await["saveEndpoint"]["scalerValue"], 2.5);
    // Whole numbers are written without a fraction, because some clients cannot read 4.0 into an
    // integer.
    for value in [json!(4), json!(4.0)] {
        let body = Some(json!({ "scalerValue": value }));
        let (_, changed) = service.rest(Method::PATCH, &path, body).await;
        assert_eq!(changed["scalerValue"].to_string(), "4");
        assert_eq!(read().await["scalerValue"].to_string(), "4");
    }
    for value in [json!(0), json!(-1.5), json!("1")] {
        let body = Some(json!({ "scalerValue": value }));
        let message = service.refused(Method::PATCH, &path, body, 400).await;
        assert!(message.starts_with("scalerValue must be "), "{message}");
    }
}

#[tokio::test]
async fn what_is_refused_is_named_as_the_client_named_it() {
    let service = Harness::start().await;
    let id = service.endpoint(json!({ "workersMax": 0 })).await;
    let path = format!("/endpoints/{id}");
    for (body, expected) in [
        (
            json!({ "workersMax": 1_000_000_000_000i64 }),
            "workersMax must be between 0 and 2147483647, not 1000000000000",
        ),
        (json!({ "workersMax": -1 }), "workersMax must be between 0 and 2147483647, not -1"),
        (json!({ "dataCenterIds": ["MARS-1"] }), "dataCenterIds[0] must be one of "),
    ] {
        let message = service.refused(Method::PATCH, &path, Some(body), 400).await;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn registry_credentials_are_write_only() {
    let service = Harness::start().await;
    let body = json!({ "name": "hub", "username": "me", "password": "s3cret-pass" });
    let made = service.post("/containerregistryauth", body.clone()).await;
    assert_eq!(made, json!({ "id": made["id"], "name": "hub" }));
    assert_eq!(service.get("/containerregistryauth").await, json!([made]));
    let same = service.refused(Method::POST, "/containerregistryauth", Some(body), 400).await;
    assert!(same.contains("unique"), "{same}");
    let path = format!("/containerregistryauth/{}", made["id"].as_str().unwrap());
    service.refused(Method::PATCH, &path, Some(json!({})), 405).await;
    let template = json!({ "name": "t", "imageName": "x", "containerRegistryAuthId": made["id"] });
    let template = service.post("/templates", template).await;
    assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
    let path = format!("/templates/{}", template["id"].as_str().unwrap());
    assert_eq!(service.get(&path).await["containerRegistryAuthId"], Value::Null);
    for file in std::fs::read_dir(&service.data).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(11).any(|part| part == b"s3cret-pass"));
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_are_answered_as_documented() {
    let service = Harness::start().await;
    let url = |path: &str| format!("{}{path}", service.addresses.rest);
    let unauthorized = service.client.get(url("/networkvolumes")).bearer_auth("wrong").send().await;
    let unauthorized = unauthorized.unwrap();
    assert_eq!(unauthorized.status(), 401);
    let body: Value = unauthorized.json().await.unwrap();
    assert_eq!(body, json!({ "error": "unauthorized", "status": 401 }));
    assert_eq!(service.client.get(url("/networkvolumes")).send().await.unwrap().status(), 401);
    service.refused(Method::PUT, "/networkvolumes", None, 405).await;
    service.refused(Method::GET, "/nothing", None, 404).await;
    let malformed = service.client.post(url("/networkvolumes")).bearer_auth(KEY).body("{\"a\":");
    let malformed = malformed.send().await.unwrap();
    assert_eq!(malformed.status(), 400);
    assert!(malformed.text().await.unwrap().contains("not JSON"));
    let large = service.client.post(url("/templates")).bearer_auth(KEY).body(vec![b' '; 3 << 20]);
    match large.send().await {
        Ok(answer) => assert_eq!(answer.status(), 413),
        // The service may stop reading before the client has written everything.
        Err(error) => assert!(error.is_request(), "{error:?}"),
    }
    service.volume("still alive", 1).await;
}

#[tokio::test]
async fn a_bound_template_is_hidden_and_goes_with_its_endpoint() {
    let service = Harness::start().await;
    let query =
        "mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id templateId } }";
    let input = json!({ "name": "inline", "gpuIds": "ADA_24", "workersMax": 0,
        "template": { "name": "inside", "imageName": "echo:1" } });
    let made = service.data(query, json!({ "input": input })).await["saveEndpoint"].take();
    assert_eq!(service.get("/templates").await, json!([]));
    let all = service.get("/templates?includeEndpointBoundTemplates=true").await;
    assert_eq!(all[0]["id"], made["templateId"]);
    let path = format!("/endpoints/{}", made["id"].as_str().unwrap());
    assert_eq!(service.rest(Method::DELETE, &path, None).await.0, 204);
    let all = service.get("/templates?includeEndpointBoundTemplates=true").await;
    assert_eq!(all, json!([]));
}

/// The service refuses environments and commands with a zero byte, because no process can be
/// started with one.
#[tokio::test]
async fn environments_and_commands_are_what_a_process_can_have() {
    let service = Harness::start().await;
    let template = service.template("t").await;
    let save = "mutation Save($input: EndpointInput!) { saveEndpoint(input: $input) { id } }";
    let input = |key: &str, value: &str| {
        let env = json!([{ "key": key, "value": value }]);
        json!({ "input": { "name": "one", "templateId": template, "gpuIds": "ADA_24", "env": env } })
    };
    for (key, value) in [("A", "x\0y"), ("A=B", "x"), ("", "x"), ("A\0", "x")] {
        let message = service.fails(save, input(key, value)).await;
        assert!(message.starts_with("env has a "), "{key:?}: {message}");
    }
    service.data(save, input("A", "x")).await;
    let command = json!({ "name": "c", "imageName": "i", "dockerStartCmd": ["a\0b"] });
    let (status, body) = service.rest(Method::POST, "/templates", Some(command)).await;
    let message = json!("dockerStartCmd[0] must have no zero byte");
    assert_eq!((status.as_u16(), &body["error"]), (400, &message));
}
